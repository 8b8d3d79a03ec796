# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Follows docs/fleet-postgres.md; to be sourced by run.

ADDRESS=([db]=192.0.2.1 [agg1]=192.0.2.2 [agg2]=192.0.2.3 [mx1]=192.0.2.11 [mx2]=192.0.2.12)
aggregator=([agg1]=agg1 [agg2]=agg2)
member+=([agg1]=--server [agg2]=--server)

sql() { # STATEMENT
    inside db runuser -u postgres -- psql -At bulkmark -c "$1"
}

# The first command prints SQL, and changes nothing.
only_says() {
    local lines
    follow agg1 "$guide" "### On the first aggregator" --until "bulkmark fleet setup --log"
    grep -q '^create schema if not exists bulkmark' "$work/told" || { cat "$work/told" >&2 && die "the dry run prints no SQL"; }
    lines=$(wc -l <"$work/told")
    [[ $(sql "select count(*) from pg_namespace where nspname = 'bulkmark'") == 0 ]] || die "the dry run made a schema"
    [[ $(sql "select count(*) from pg_roles where rolname in ('mx1', 'agg1', 'bulkmark_reporter')") == 0 ]] || die "the dry run made roles"
    ok "the dry run prints $lines lines, SQL among them, and does nothing"
}

set_up_engine() {
    local name
    make_layer postgres postgresql
    make_machine db postgres "$guide"
    for name in "${!member[@]}"; do make_machine "$name" base "$guide"; done
    for name in "${!ADDRESS[@]}"; do start "$name"; done
    for name in "${!ADDRESS[@]}"; do booted "$name"; done
    set_up_machines
    follow db "$guide" "### On the machine with PostgreSQL"
    only_says
    follow agg1 "$guide" "### On the first aggregator" --from "bulkmark fleet setup --log"
    members_join
    all_are_well
    power_off agg1
    quietly inside db systemctl restart postgresql
    is_shared "PostgreSQL was restarted"
    all_are_well
    take_out agg1 mx2
    follow agg1 "$guide" "### On the first aggregator" --from "bulkmark fleet setup --log" --until "cp "
    is_out
}
