# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Functions shared by the scripts of this directory; to be sourced.

set -euo pipefail
umask 022
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

# Exit code of sysexits.h: a requirement is missing. The tests then skip the parts that need it.
readonly EX_UNAVAILABLE=69

me=${0##*/}

die() {
    printf '%s: %s\n' "$me" "$*" >&2
    exit 1
}

lacks() {
    printf '%s: %s\n' "$me" "$*" >&2
    exit "$EX_UNAVAILABLE"
}

need_root() {
    [[ $EUID -eq 0 ]] || lacks "needs root, since a mail server changes to other users"
}

need_program() {
    local program
    for program; do
        command -v "$program" >/dev/null || lacks "$program is missing; run tests/mta/install as root"
    done
}

# The mirror from which this machine gets its own packages, or Debian's.
mirror() {
    local found
    found=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        awk '$2 == "bookworm" || $2 == "trixie" { print $1; exit }')
    printf '%s\n' "${found:-http://deb.debian.org/debian}"
}

# Fetches a package of a release of Debian into the working directory, with our own lists. With PATTERN also the libraries that it
# needs on an empty system, except those whose names begin with PATTERN.
fetch_of() { # SUITE PACKAGE [PATTERN]
    local packages=("$2") options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$PWD/lists" -o APT::Sandbox::User=root -o Acquire::Languages=none)
    mkdir -p lists/partial || return
    echo "deb $(mirror) $1 main" >sources.list
    apt-get "${options[@]}" update || return
    if (($# > 2)); then
        : >nothing
        # apt keeps its knowledge of packages in a file, which must not be this machine's.
        mapfile -t packages < <(apt-get "${options[@]}" -o "Dir::State::status=$PWD/nothing" -o "Dir::Cache=$PWD/lists" --simulate \
            --no-install-recommends install "$2" | awk '$1 == "Inst" { print $2 }' | grep -E "^($2|lib.*|zlib1g)\$" | grep -vE "^$3")
        rm nothing
    fi
    apt-get "${options[@]}" download "${packages[@]}" && rm -r lists sources.list
}

# The arguments that all servers have in common.
check_arguments() {
    local base=$1 port=$2 milter=$3
    [[ $base == /* && $base != / ]] || die "BASE is \"$base\", expected an absolute path"
    [[ $port =~ ^[0-9]{1,5}$ ]] || die "SMTP_PORT is \"$port\", expected a number"
    [[ $milter == inet:*:* || $milter == unix:/* ]] ||
        die "MILTER is \"$milter\", expected inet:HOST:PORT or unix:/PATH"
    # Postfix binds with SO_REUSEPORT and would silently take a part of another program's connections.
    if answers "$port"; then
        die "port $port on 127.0.0.1 is taken"
    fi
}

# Whether a program listens on a port of 127.0.0.1.
answers() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Mail servers deliver as their own users, who must get through to BASE.
check_traversable() {
    local directory=$1
    while [[ $directory != / ]]; do
        case $(stat -c %A "$directory") in
        *[xt]) ;;
        *) die "$directory can be entered by its owner only, expected a directory for everybody (TMPDIR says where tests work)" ;;
        esac
        directory=${directory%/*}
        directory=${directory:-/}
    done
}

# The processes whose working directory is $1.
working_in() {
    local cwd
    for cwd in /proc/[0-9]*/cwd; do
        # A process that ended meanwhile has none.
        case $(readlink "$cwd" 2>/dev/null || true) in
        "$1" | "$1"/*)
            cwd=${cwd#/proc/}
            printf '%s\n' "${cwd%/cwd}"
            ;;
        esac
    done
}

# Waits until no process works in directory $1 any more; kills the rest after 10 seconds.
wait_until_left() {
    local deadline=$((SECONDS + 10)) left
    while left=$(working_in "$1") && [[ -n $left ]]; do
        if ((SECONDS >= deadline)); then
            # shellcheck disable=SC2086 # a list of numbers
            kill -KILL $left 2>/dev/null || true
        fi
        sleep 0.02
    done
}

# Starts a server, prints "ready", and stops it when standard input ends, in whatever way the parent ended. BASE is removed, too.
run() {
    started=$1
    trap 'trap "" INT TERM HUP; stop "$started"; rm -rf "$started"' EXIT
    trap 'exit 130' INT TERM HUP
    start "$@"
    echo ready
    while read -r _; do :; done
}

# An interrupted start must not leave an unknown server behind; "run" takes care of it itself.
stop_when_interrupted() {
    started=$1
    [[ -n $(trap -p INT) ]] || trap 'stop "$started"; exit 130' INT TERM HUP
}

# Runs the command that the user typed.
main() {
    local usage="usage: $me start|run BASE SMTP_PORT MILTER [$1], or $me stop BASE"
    shift
    case ${1:-} in
    start | run)
        (($# >= 4)) || die "$usage"
        "$@"
        ;;
    stop)
        (($# == 2)) || die "$usage"
        stop "$2"
        ;;
    *) die "$usage" ;;
    esac
}
