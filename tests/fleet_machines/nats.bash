# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/fleet-nats.md, followed; to be sourced by run. The aggregators are on machines of the log.

ADDRESS=([log1]=192.0.2.1 [log2]=192.0.2.2 [log3]=192.0.2.3 [mx1]=192.0.2.11 [mx2]=192.0.2.12)
aggregator=([agg1]=log1 [agg2]=log2)
member+=([log1]=--server [log2]=--server)

nodes_are_well() {
    local name
    for name in log1 log2 log3; do wait_for is_healthy "$name"; done
}

is_healthy() { # MACHINE
    inside "$1" python3 -c "from urllib.request import urlopen; urlopen('http://127.0.0.1:8222/healthz')" >"$work/well" 2>&1
}

set_up_engine() {
    local name
    make_with nats procps
    "$root/tests/mta/nats" package "$work" || skip "there is no package of nats-server"
    for name in "${!ADDRESS[@]}"; do
        make_machine "$name" "$work/nats" "$guide"
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
    nodes_are_well
    follow log1 "$guide" "### On the first aggregator again"
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
