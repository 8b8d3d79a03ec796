# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A mail server with bulkmark for a short while, for the demonstration and its recording; to be sourced. Everything happens on loopback
# and below its own directory, $work, which is removed afterwards, as are all processes. The caller sets $bulkmark, the program, and writes
# $config before start_milter.

# shellcheck source=tests/mta/lib.bash
. "$(dirname "${BASH_SOURCE[0]}")/mta/lib.bash"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Even on a busy machine no part of this takes longer.
readonly root PATIENCE=600

work='' config='' milter_pid='' explained=''

fail() {
    explained=yes
    printf '\nThe demonstration FAILED: %s\n' "$*" >&2
    exit 1
}

clean_up() {
    local status=$?
    trap '' INT TERM HUP
    trap - ERR
    set +e
    if [[ $status -ne 0 && $status -ne 130 && -z $explained ]]; then
        printf '\nThe demonstration FAILED unexpectedly (exit code %s).\n' "$status" >&2
    fi
    if [[ $status -ne 0 && $status -ne 130 && -s $work/milter.log ]]; then
        printf 'The last lines of the milter:\n' >&2
        tail -n 5 "$work/milter.log" >&2
    fi
    [[ -z $work ]] || "$root/tests/mta/postfix" stop "$work/postfix"
    if [[ -n $milter_pid ]]; then
        kill "$milter_pid" 2>/dev/null
        wait "$milter_pid" 2>/dev/null
    fi
    [[ -z $work ]] || rm -rf "$work"
    exit "$status"
}

# Waits until a command succeeds.
wait_for() {
    local what=$1 deadline=$((SECONDS + PATIENCE))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || fail "$what did not come within $PATIENCE seconds"
        sleep 0.02
    done
}

# The milter

log_has() {
    grep -q -- "$1" "$work/milter.log"
}

# Whether the milter listens, or ended, which makes waiting useless.
began() {
    log_has " listens on " || ! kill -0 "$milter_pid" 2>/dev/null
}

start_milter() {
    mkdir "$work/state"
    : >"$work/milter.log"
    "$bulkmark" milter --config "$config" 2>>"$work/milter.log" &
    milter_pid=$!
    wait_for "the milter's start" began
    milter=$(sed -n 's/.* listens on //p' "$work/milter.log")
    [[ -n $milter ]] || fail "the milter did not start"
}

has_reloaded() { # TIMES
    (($(grep -c "milter.toml: read again" "$work/milter.log") >= $1))
}

# Applies the changed files.
reload_milter() {
    local before
    before=$(grep -c "milter.toml: read again" "$work/milter.log") || true
    kill -HUP "$milter_pid"
    wait_for "the reload" has_reloaded $((before + 1))
}

# Postfix

start_postfix() {
    local try
    for try in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        answers "$port" || break
    done
    "$root/tests/mta/postfix" start "$work/postfix" "$port" "$milter" || fail "Postfix did not start (try $try)"
}

# A small SMTP client: the connection is file descriptor 3, the last reply is in $code and $text.

reply() {
    local line
    while read -r -t "$PATIENCE" line <&3; do
        line=${line%$'\r'}
        code=${line:0:3} text=${line:4}
        [[ ${line:3:1} == - ]] || return 0
    done
    fail "Postfix hung up"
}

say() {
    local expected=$1
    printf '%s\r\n' "$2" >&3
    reply
    [[ $code == "$expected" ]] || fail "Postfix answers \"$code $text\" to \"$2\""
}

# Connects as the client $1 with the name $2: mail from loopback itself is exempt from counting.
connect() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    reply
    say 250 "EHLO $2"
    say 220 "XCLIENT ADDR=$1 NAME=$2"
    say 250 "EHLO $2"
}

disconnect() {
    say 221 QUIT
    exec 3>&-
}

# Sends the message that "letter" prints from $1 to $2; the result is in $code and $text.
send() {
    say 250 "MAIL FROM:<$1>"
    say 250 "RCPT TO:<$2>"
    say 354 DATA
    sent=$((sent + 1))
    { letter "$2" && echo .; } | sed 's/$/\r/' >&3
    reply
}

# The delivered mail

all_delivered() {
    local files=("$work"/postfix/maildir/all/new/*)
    ((${#files[@]} >= delivered))
}

# Waits until all accepted messages are delivered, and prints the recipient and the header of each.
read_headers() {
    shopt -s nullglob
    wait_for "the delivery" all_delivered
    headers=()
    local recipient value
    while read -r recipient value; do
        [[ -z ${headers[$recipient]:-} ]] || fail "$recipient got a message with two headers, or two messages"
        headers[$recipient]=$value
    done < <(awk 'FNR == 1 { to = ""; body = 0 } body { next } /^$/ { body = 1 }
                  /^Delivered-To:/ { to = $2 } /^X-Bulkmark:/ { sub(/^[^:]*: /, ""); print to, $0 }' \
        "$work"/postfix/maildir/all/new/*)
}

# The mail

shop() {
    cat <<END
From: Discount Harbour <offers@shop.test>
To: $1
Subject: Only today: prices below the waterline
Message-ID: <$sent.$$@shop.test>

Dear customer, only today all anchors, ropes and rubber boats are sold at half the price.
Order now, and a captain's hat is yours for nothing. This offer will never come back.
END
}

# The directory, which the end of the script removes.
begin() {
    [[ -x $bulkmark ]] || die "there is no program $bulkmark"
    need_root
    command -v postfix >/dev/null || "$root/tests/mta/install" postfix
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    work=$(mktemp -d "${TMPDIR:-/tmp}/bulkmark-$me.XXXXXX")
    chmod 755 "$work"
    config=$work/milter.toml
    declare -gA headers=()
    sent=0 delivered=0 refused=0
}
