# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Follows docs/fleet-nats.md; to be sourced by run. The aggregators are on machines of the log.

ADDRESS=([log1]=192.0.2.1 [log2]=192.0.2.2 [log3]=192.0.2.3 [mx1]=192.0.2.11 [mx2]=192.0.2.12)
aggregator=([agg1]=log1 [agg2]=log2)
member+=([log1]=--server [log2]=--server)

# Asks a node; its answer is in $work/well.
asks_node() { # MACHINE PATH
    inside "$1" python3 -c "
from urllib.error import HTTPError
from urllib.request import urlopen
try: print(urlopen('http://127.0.0.1:8222/$2').read().decode())
except HTTPError as e: exit(e.read().decode())" >"$work/well" 2>&1
}

each_knows() { # NUMBER
    local name
    for name in log1 log2 log3; do
        asks_node "$name" jsz && grep -q "\"cluster_size\": $1\b" "$work/well" || return
    done
}

some_know() { # NUMBER
    local name
    for name in log1 log2 log3; do
        ! asks_node "$name" jsz || ! grep -q "\"cluster_size\": $1\b" "$work/well" || return 0
    done
    return 1
}

# If one of three new nodes is never accepted as a peer, as nats-server 2.10 does now and then, the guide's remedy is applied.
new_nodes_are_one() {
    local deadline=$((SECONDS + PATIENCE))
    until within 60 each_knows 3; do
        ((SECONDS < deadline)) || die "the nodes do not become one cluster: $(<"$work/well")"
        ! some_know 2 || begin_anew
    done
    nodes_are_well
}

begin_anew() {
    local name
    echo "$test: one node is not taken for a peer: all three begin anew"
    for name in log1 log2 log3; do quietly inside "$name" systemctl stop nats-server; done
    for name in log1 log2 log3; do quietly inside "$name" find /var/lib/nats -mindepth 1 -delete; done
    for name in log1 log2 log3; do quietly inside "$name" systemctl start nats-server; done
}

# A node that each of the others knows may still count as no peer.
streams_are_made() {
    local deadline=$((SECONDS + PATIENCE))
    until (follow log1 "$guide" "### On the first aggregator again"); do
        ((SECONDS < deadline)) && grep -q 'no suitable peers' "$work/told" || die "the streams are not made"
        begin_anew
        new_nodes_are_one
    done
}

# Likewise if a node does not find its streams again, or lags behind for good.
nodes_are_well() {
    local name deadline=$((SECONDS + PATIENCE))
    for name in log1 log2 log3; do
        until within 60 asks_node "$name" healthz; do
            ((SECONDS < deadline)) || die "$name is not well: $(<"$work/well")"
            grep -q -e 'group node unhealthy' -e 'not current with the meta leader' "$work/well" || continue
            echo "$test: $name is started once more: $(<"$work/well")"
            quietly inside "$name" systemctl restart nats-server
        done
    done
}

set_up_engine() {
    local name
    make_layer nats procps
    "$root/tests/mta/nats" package "$work" || skip "there is no package of nats-server"
    for name in "${!ADDRESS[@]}"; do
        make_machine "$name" nats "$guide"
        printf '%s\n' "${ADDRESS[log1]} agg1.example.org" "${ADDRESS[log2]} agg2.example.org" >>"$work/$name/etc/hosts"
        [[ $name != log* ]] || cp "$work"/nats-server_*.deb "$work/$name/root"
        start "$name"
    done
    for name in "${!ADDRESS[@]}"; do booted "$name"; done
    install_packages log3
    set_up_machines
    follow log1 "$guide" "### On the first aggregator"
    for name in log1 log2 log3; do
        follow "$name" "$guide" "### On each machine with NATS" --replace "server_name: log1=server_name: $name"
    done
    new_nodes_are_one
    streams_are_made
    members_join
    all_are_well
    power_off log1
    nodes_are_well
    all_are_well
    cp "$work/log1/root/fleet/fleet.toml" "$work/fleet.toml"
    take_out log1 mx2
    follow log1 "$guide" "### A member that comes or leaves"
    is_out
    cp "$work/fleet.toml" "$work/log1/root/fleet/fleet.toml"
    follow log1 "$guide" "### A member that comes or leaves"
    wait_for counts mx1 "$sent" 2
    is_shared "mx2 is a member again"
}
