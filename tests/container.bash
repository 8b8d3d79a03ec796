# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Separate machines for tests: each a Debian 12 that systemd boots in a container, with the tested packages. To be sourced.
#
# A Debian is made once, as the directory target/machines/base, and a guide's packages are a layer on it. An Ubuntu stands beside it. Machines are
# overlays of these: all of their writes go to memory, so that no disk delays them. Needs root, and a kernel that lets containers
# boot; without these it reports that and skips, and on CI it fails.

# shellcheck source=tests/mta/lib.bash
. "$(dirname "${BASH_SOURCE[0]}")/mta/lib.bash"

readonly SUITE=bookworm
readonly PACKAGES=systemd,systemd-sysv,dbus,postfix,rpm,ucf,python3-cffi-backend,ansible-core,openssh-server,openssl
readonly UBUNTU=noble UBUNTU_PACKAGES=apt,systemd,systemd-sysv,dbus,python3,curl,ca-certificates,ucf

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root machines=$root/target/machines
# Tests wait for an event until it happens. This bound only makes a test end at all, however busy the machine is.
readonly PATIENCE=900
work='' spaces=()
# By the names of machines: nspawn's process, the first one inside, and the address, if there is a network.
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
    if declare -F tidy >/dev/null; then tidy "$status"; fi
    for name in "${!containers[@]}"; do halt "$name"; done
    for name in "${spaces[@]}"; do ip netns delete "$name"; done
    if [[ -n $work ]]; then
        findmnt --raw --noheadings --output TARGET | grep -F "$work" | sort -r | xargs --no-run-if-empty umount --lazy
        rmdir "$work"
    fi
    exit "$status"
}

ok() {
    printf 'ok  %s\n' "$*"
}

# Whether a command succeeds within some time.
within() { # SECONDS COMMAND...
    local deadline=$((SECONDS + $1))
    until "${@:2}"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.2
    done
}

wait_for() { # COMMAND...
    within "$PATIENCE" "$@" || die "in vain: $*"
}

# A directory in memory for all files of a test, and its removal.
begin() { # NAME
    test=$1
    [[ $EUID -eq 0 ]] || skip "it needs root"
    "$root/tests/mta/install" mmdebstrap systemd-container iproute2
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    work=$(mktemp -d "${TMPDIR:-/tmp}/bulkmark-$test.XXXXXX")
    # Other users inside a machine must get through it.
    mount -t tmpfs -o mode=755 bulkmark "$work" || skip "nothing can be mounted"
}

# Makes $machines/NAME by a function, unless it is newer than both files. The first of several tests makes it, and the others wait.
make_once() { # NAME FILE FILE FUNCTION...
    local directory=$machines/$1 lock
    mkdir -p "$machines"
    exec {lock}>"$directory.lock"
    flock "$lock"
    if [[ ! $directory -nt $2 || ! $directory -nt $3 ]]; then
        rm -rf "$directory" "$directory.part"
        "${@:4}"
        touch "$directory.part"
        mv "$directory.part" "$directory"
    fi
    exec {lock}>&-
}

make_base() {
    make_once base "${BASH_SOURCE[0]}" "${BASH_SOURCE[0]}" bootstrap "$machines/base.part" "$SUITE" "$PACKAGES" "$(mirror)"
}

# Debian has no package with Ubuntu's keys.
make_ubuntu() {
    make_once ubuntu "${BASH_SOURCE[0]}" "${BASH_SOURCE[0]}" bootstrap_ubuntu
}

bootstrap_ubuntu() {
    local mirror=http://archive.ubuntu.com/ubuntu
    curl --silent --show-error --fail --output "$work/keys.deb" "$mirror/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb" ||
        skip "$mirror does not answer"
    echo "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8  $work/keys.deb" | sha256sum --quiet --check
    dpkg-deb --extract "$work/keys.deb" "$work/keys"
    bootstrap "$machines/ubuntu.part" "$UBUNTU" "$UBUNTU_PACKAGES" "$mirror" --keyring="$work/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"
}

bootstrap() { # DIRECTORY SUITE PACKAGES MIRROR [OPTION...]
    echo "$test: making a system, $2 ($3)"
    mmdebstrap --mode=root --variant=minbase --dpkgopt=force-unsafe-io --include="$3" "${@:5}" "$2" "$1" "$4" >"$work/bootstrap" 2>&1 || {
        tail -n 20 "$work/bootstrap" >&2
        skip "$2 cannot be made from $4"
    }
    rm "$1/etc/dpkg/dpkg.cfg.d"/*mmdebstrap 2>/dev/null || true
    # Otherwise its first boot would count as the very first one, and enable every unit.
    rm -f "$1/etc/machine-id"
    chroot "$1" systemd-machine-id-setup 2>/dev/null
}

# A layer with more packages. Their services start when a machine boots, and not before.
make_layer() { # NAME PACKAGE...
    make_base
    make_once "$1" "$machines/base" "${BASH_SOURCE[1]}" install_packages_into "$@"
}

install_packages_into() { # NAME PACKAGE...
    local new=$work/$1 name=$1
    shift
    echo "$test: making a Debian 12 with $*"
    machine "$name" base
    cp /etc/resolv.conf "$new/etc/resolv.conf"
    printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
    chmod 755 "$new/usr/sbin/policy-rc.d"
    {
        chroot "$new" apt-get -qq update &&
            DEBIAN_FRONTEND=noninteractive chroot "$new" apt-get install -qq -y --no-install-recommends "$@"
    } >"$work/apt" 2>&1 || {
        tail -n 20 "$work/apt" >&2
        skip "its packages could not be installed"
    }
    rm -rf "$new/usr/sbin/policy-rc.d" "$new/etc/resolv.conf" "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/*
    umount "$new"
    mv "$work/over/$name/changed" "$machines/$name.part"
    rm -r "$work/over/$name"
}

# Makes a machine $work/NAME from the base, or with a layer on it, or from Ubuntu.
machine() { # NAME base|ubuntu|LAYER
    local lower=$machines/$2
    [[ $2 == @(base|ubuntu) ]] || lower+=:$machines/base
    mkdir -p "$work/$1" "$work/over/$1"/{changed,work}
    mount -t overlay -o "lowerdir=$lower,upperdir=$work/over/$1/changed,workdir=$work/over/$1/work" overlay "$work/$1" ||
        skip "there are no overlays"
}

# Makes a network of the machines in ADDRESS; the switch is a network namespace, too.
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

# Names a machine; all machines in ADDRESS know each other as NAME.example.org.
name() { # MACHINE NAME
    local other
    echo "$2" >"$work/$1/etc/hostname"
    {
        printf '%s\n' "127.0.0.1 localhost" "127.0.1.1 $2 ${2%%.*}"
        for other in "${!ADDRESS[@]}"; do echo "${ADDRESS[$other]} $other.example.org"; done
    } >"$work/$1/etc/hosts"
}

# Boots $work/NAME, in the network of its address, or with its own loopback alone; its first process has the number 1 there.
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
    local leader deadline=$((SECONDS + PATIENCE))
    until leader=$(cat "/proc/${containers[$1]}/task/${containers[$1]}/children" 2>/dev/null) && leader=${leader%% *} &&
        [[ -n $leader && $(nsenter -a -t "$leader" systemctl is-system-running --wait 2>/dev/null) =~ ^(running|degraded)$ ]]; do
        if ((SECONDS >= deadline)) || ! kill -0 "${containers[$1]}" 2>/dev/null; then
            tail -n 20 "$work/$1.console" >&2
            skip "the container does not boot; above is what it says"
        fi
        sleep 0.2
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

# Follows a guide on a machine; see tests/follow.
follow() { # MACHINE GUIDE HEADING [OPTION...]
    quietly inside "$1" python3 follow "$2.md" "${@:3}"
}

# The container's first process understands this as "power off, now".
halt() { # NAME
    kill -s RTMIN+14 "${leaders[$1]:-none}" 2>/dev/null || kill -KILL "${containers[$1]}" 2>/dev/null
    wait "${containers[$1]}" 2>/dev/null || true
    unset "containers[$1]" "leaders[$1]"
}
