// SPDX-License-Identifier: GPL-3.0-or-later
//! The updates that a server no longer keeps: a row of `meta` has the mark up to which they are gone, and the time when all their counts
//! have expired. From then on a server that lacks them can continue without them, and misses nothing.

use crate::disk::errors::Fault;
use crate::disk::kept_updates::{Rule, Updates, before_first, drop_of_holder, forget_before_marks};
use crate::disk::schema::{META, UPDATES, get_meta, put_meta};
use bulkmark_counts::history::past::Past;
use bulkmark_counts::history::vector::Origin;
use bulkmark_counts::history::window::Calendar;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::roles::State;
use redb::{ReadableTable, WriteTransaction};
use std::collections::BTreeMap;

/// The row of `meta`.
pub(crate) const PAST: &str = "past";

/// Loads the record of updates that are gone.
fn load(txn: &WriteTransaction) -> Result<BTreeMap<Origin, Past>, Fault> {
    let row = get_meta(txn, PAST)?.unwrap_or_default();
    let all = Past::decode_all(&row).unwrap_or_default();
    Ok(all.into_iter().map(|past| (past.origin, past)).collect())
}

/// Deletes the updates that need not be kept. A ledger that serves nobody needs none after a checkpoint. A server always keeps the
/// newest of each origin: it proves the history.
pub(crate) fn drop_updates(
    txn: &WriteTransaction,
    state: &State,
    expired: &Expired,
    skipped: &[Past],
) -> Result<(), redb::Error> {
    let mut table = txn.open_table(UPDATES)?;
    if !matches!(state, State::Server(_)) {
        return drop_of_holder(table, state, expired);
    }
    if state.counts().unwritten.is_apart() {
        forget_before_marks(&mut table, state)?;
    }
    let known = match load(txn) {
        Ok(known) => known,
        Err(Fault::Io(e)) => return Err(redb::Error::Io(e)),
        // After damage the updates are known to be gone, but not since when.
        Err(_) => BTreeMap::new(),
    };
    let mut all = known.clone();
    all.extend(skipped.iter().map(|past| (past.origin, *past)));
    if let Some(before) = expired.updates_before {
        let rule = Rule {
            before,
            over: expired.now.filter(|_| state.counts().settings.federation.for_peers),
            calendar: Calendar::new(&state.counts().settings),
        };
        for (origin, mark) in state.vector().iter() {
            if let Some(gone) = rule.drop_of(&mut table, origin, mark)? {
                let over_at = all.get(&origin).map_or(0, |past| past.over_at).max(gone.over_at);
                all.insert(origin, Past { over_at, ..gone });
            }
        }
    }
    if let Some(now) = expired.now {
        note_unknown(&table, state, now, &mut all)?;
    }
    drop(table);
    if all != known || txn.open_table(META)?.get(PAST)?.is_none() {
        put_meta(txn, PAST, &Past::encode_all(&all.into_values().collect::<Vec<_>>()))?;
    }
    Ok(())
}

/// Records updates that are missing without a record: they came with a snapshot, or an older program deleted them. They counted until
/// now at the latest.
fn note_unknown(
    table: &Updates<'_>,
    state: &State,
    now: u64,
    all: &mut BTreeMap<Origin, Past>,
) -> Result<(), redb::Error> {
    let counts = state.counts();
    let calendar = Calendar::new(&counts.settings);
    // The windows of limited clients' counts are not examined here; none of them began later.
    let of_user_reports = counts.has_user_reports().then(|| calendar.of_user_reports(now));
    let held = counts.merged.windows().iter().map(|window| window.window);
    let windows = held.chain([calendar.at(now)]).chain(of_user_reports);
    let over_at = windows.map(|window| calendar.over_at(window)).max().unwrap_or_default();
    for (origin, mark) in state.vector().iter() {
        let before = before_first(table, origin, mark)?;
        if before.version > all.get(&origin).map_or(0, |past| past.mark.version) {
            all.insert(origin, Past { origin, mark: before, over_at });
        }
    }
    Ok(())
}
