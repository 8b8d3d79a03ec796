# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Machines of their own for tests: each a Debian 12 that systemd boots in a container, with the packages to be tried. To be sourced.
#
# The Debian is made once and kept as target/debian-12.tar.gz, with what a guide is about as target/debian-12-NAME.tar.gz, so that a
# second run is quick. Needs root, and a kernel that lets containers boot; where it cannot run it says so, and on CI it fails.

# shellcheck source=tests/mta/lib.bash
. "$(dirname "${BASH_SOURCE[0]}")/mta/lib.bash"

readonly SUITE=bookworm
readonly PACKAGES=systemd,systemd-sysv,dbus,postfix,rpm,ucf,python3-cffi-backend,ansible-core,openssh-server,openssl

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root base=$root/target/debian-12.tar.gz
work='' spaces=()
# By the names of machines: nspawn's process, the first one inside, and where there is a network, the address in it.
declare -A containers=() leaders=() ADDRESS=()
readonly switch=bulkmark-switch-$$

skip() {
    [[ -z ${CI:-} ]] || die "$*"
    printf '%s: skipped, %s\n' "$test" "$*" >&2
    exit 0
}

clean_up() {
    local status=$? name
    trap '' INT TERM HUP
    set +e
    for name in "${!containers[@]}"; do halt "$name"; done
    for name in "${spaces[@]}"; do ip netns delete "$name"; done
    if [[ -n $work ]]; then
        findmnt --raw --noheadings --output TARGET | grep -F "$work/" | sort -r | xargs --no-run-if-empty umount --lazy
        rm -rf --one-file-system "$work"
    fi
    exit "$status"
}

ok() {
    printf 'ok  %s\n' "$*"
}

# Waits until a command succeeds; after a minute it is not going to.
wait_for() {
    local deadline=$((SECONDS + 60))
    until "$@"; do
        ((SECONDS < deadline)) || die "in vain: $*"
        sleep 0.05
    done
}

# A directory for all that a test makes, and its end.
begin() { # NAME
    test=$1
    [[ $EUID -eq 0 ]] || skip "it needs root"
    "$root/tests/mta/install" debootstrap systemd-container iproute2
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    work=$(mktemp -d "${TMPDIR:-/tmp}/bulkmark-$test.XXXXXX")
    # Others inside a machine come through it.
    chmod 755 "$work"
}

pack() { # DIRECTORY TARBALL
    rm -f "$1"/var/cache/apt/archives/*.deb
    tar -C "$1" -I 'gzip -1' -cf "$2.part" .
    mv "$2.part" "$2"
}

# Not one that an earlier state of this script made.
make_base() {
    [[ ! $base -nt ${BASH_SOURCE[0]} ]] || return 0
    echo "$test: making a Debian 12 ($PACKAGES)"
    debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$work/new" >"$work/debootstrap" 2>&1 || {
        tail -n 20 "$work/debootstrap" >&2
        df -h "$work" >&2
        skip "debootstrap failed"
    }
    pack "$work/new" "$base"
    rm -rf "$work/new"
}

# A Debian with more packages, unpacked as $work/NAME. Their services are started when it boots, and not before.
make_with() { # NAME PACKAGE...
    local tarball=$root/target/debian-12-$1.tar.gz name=$1
    shift
    make_base
    mkdir "$work/$name"
    if [[ $tarball -nt $base && $tarball -nt ${BASH_SOURCE[1]} ]]; then
        tar -C "$work/$name" -xf "$tarball"
        return
    fi
    echo "$test: making a Debian 12 with $*"
    tar -C "$work/$name" -xf "$base"
    cp /etc/resolv.conf "$work/$name/etc/resolv.conf"
    printf '#!/bin/sh\nexit 101\n' >"$work/$name/usr/sbin/policy-rc.d"
    chmod 755 "$work/$name/usr/sbin/policy-rc.d"
    {
        chroot "$work/$name" apt-get -qq update &&
            DEBIAN_FRONTEND=noninteractive chroot "$work/$name" apt-get install -qq -y --no-install-recommends "$@"
    } >"$work/apt" 2>&1 || {
        tail -n 20 "$work/apt" >&2
        skip "its packages could not be installed"
    }
    rm "$work/$name/usr/sbin/policy-rc.d" "$work/$name/etc/resolv.conf"
    # CI begins with nothing each time.
    [[ -n ${CI:-} ]] || pack "$work/$name" "$tarball"
}

# A machine $work/NAME that begins as this directory is, which nobody changes any more.
machine() { # NAME DIRECTORY
    mkdir -p "$work/$1" "$work/over/$1"/{changed,work}
    mount -t overlay -o "lowerdir=$2,upperdir=$work/over/$1/changed,workdir=$work/over/$1/work" overlay "$work/$1" 2>/dev/null ||
        cp -a "$2/." "$work/$1"
}

# A network of the machines that ADDRESS names; the switch is a place of its own, too.
make_network() {
    local name
    spaces=("$switch")
    ip netns add "$switch"
    ip -n "$switch" link add switch type bridge
    ip -n "$switch" link set switch up
    for name in "${!ADDRESS[@]}"; do
        spaces+=("bulkmark-$name-$$")
        ip netns add "bulkmark-$name-$$"
        ip -n "bulkmark-$name-$$" link add eth0 type veth peer name "$name" netns "$switch"
        ip -n "$switch" link set "$name" master switch up
        ip -n "bulkmark-$name-$$" address add "${ADDRESS[$name]}/24" dev eth0
        ip -n "bulkmark-$name-$$" link set eth0 up
        ip -n "bulkmark-$name-$$" link set lo up
    done
}

# Names a machine; all that ADDRESS has know one another as NAME.example.org.
name() { # MACHINE NAME
    local other
    echo "$2" >"$work/$1/etc/hostname"
    {
        printf '%s\n' "127.0.0.1 localhost" "127.0.1.1 $2 ${2%%.*}"
        for other in "${!ADDRESS[@]}"; do echo "${ADDRESS[$other]} $other.example.org"; done
    } >"$work/$1/etc/hosts"
}

# Boots $work/NAME, in the network that it has an address in, or with its own loopback alone; its first process has the number 1 there.
boot() { # NAME
    start "$1"
    booted "$1"
}

start() { # NAME
    local network=--private-network
    [[ -z ${ADDRESS[$1]:-} ]] || network=--network-namespace-path=/run/netns/bulkmark-$1-$$
    systemd-nspawn --boot --quiet --directory="$work/$1" --machine="$1-$$" --register=no --keep-unit --resolv-conf=off \
        --console=read-only "$network" </dev/null >"$work/$1.console" 2>&1 &
    containers[$1]=$!
}

booted() { # NAME
    local leader deadline=$((SECONDS + 120))
    until leader=$(cat "/proc/${containers[$1]}/task/${containers[$1]}/children" 2>/dev/null) && leader=${leader%% *} &&
        [[ -n $leader && $(nsenter -a -t "$leader" systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]]; do
        if ((SECONDS >= deadline)) || ! kill -0 "${containers[$1]}" 2>/dev/null; then
            tail -n 20 "$work/$1.console" >&2
            skip "the container does not boot; above is what it says"
        fi
        sleep 0.1
    done
    leaders[$1]=$leader
}

# Runs a command on a machine, in root's home.
inside() { # NAME COMMAND...
    nsenter -a -t "${leaders[$1]}" --wdns=/root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "${@:2}" </dev/null
}

quietly() {
    "$@" >"$work/told" 2>&1 || {
        cat "$work/told" >&2
        die "$*"
    }
}

# Does what a guide says, on a machine; see tests/follow.
follow() { # MACHINE GUIDE HEADING [OPTION...]
    quietly inside "$1" python3 follow "$2.md" "${@:3}"
}

# The container's first process takes this for "power off, now".
halt() { # NAME
    kill -s RTMIN+14 "${leaders[$1]:-none}" 2>/dev/null || kill -KILL "${containers[$1]}" 2>/dev/null
    wait "${containers[$1]}" 2>/dev/null || true
    unset "containers[$1]" "leaders[$1]"
}
