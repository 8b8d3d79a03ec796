// SPDX-License-Identifier: GPL-3.0-or-later
//! Which updates a server keeps, and what it knows of those that it does not keep any more.
//!
//! Of each origin the last updates are kept without a gap, up to its mark. Those before them are gone, and it is written down up to
//! where, and when all that they counted is over. From then on a server that lacks them can go on without them, and misses nothing.

use crate::disk::errors::Fault;
use crate::disk::schema::{META, UPDATES, get_meta, put_meta};
use bulkmark_counts::history::past::{Past, over_at};
use bulkmark_counts::history::vector::{Chain, Mark, Origin};
use bulkmark_counts::history::window::Calendar;
use bulkmark_counts::state::changes::Expired;
use bulkmark_counts::state::roles::State;
use redb::{ReadableTable, Table, WriteTransaction};
use std::collections::BTreeMap;

/// The row of `meta`.
pub(crate) const PAST: &str = "past";

type Updates<'a> = Table<'a, (u64, u64), &'static [u8]>;

/// An update in its row: when it came, and its bytes. The checksum behind them is looked at when it is handed on.
fn parts(row: &[u8]) -> Option<(u64, &[u8])> {
    let (at, rest) = row.split_first_chunk()?;
    Some((u64::from_le_bytes(*at), rest.split_last_chunk::<4>()?.0))
}

/// What is written down of updates that are gone.
fn load(txn: &WriteTransaction) -> Result<BTreeMap<Origin, Past>, Fault> {
    let row = get_meta(txn, PAST)?.unwrap_or_default();
    let all = Past::decode_all(&row).unwrap_or_default();
    Ok(all.into_iter().map(|past| (past.origin, past)).collect())
}

/// Takes out the updates that need not be kept. Whoever keeps none for others needs none after a checkpoint. A server keeps the
/// newest of each origin in any case: it is the proof of the history.
pub(crate) fn drop_updates(
    txn: &WriteTransaction,
    state: &State,
    expired: &Expired,
    told: &[Past],
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
        // What is damaged is known to be gone, and not since when.
        Err(_) => BTreeMap::new(),
    };
    let mut all = known.clone();
    all.extend(told.iter().map(|past| (past.origin, *past)));
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

/// A holder keeps none, unless it is one of a fleet whom others follow: then as long as a server does for milters.
fn drop_of_holder(mut table: Updates<'_>, state: &State, expired: &Expired) -> Result<(), redb::Error> {
    if !state.counts().settings.federation.serves {
        return Ok(table.retain(|_, _| false)?);
    }
    let Some(before) = expired.updates_before else { return Ok(()) };
    let vector = state.vector();
    table.retain(|(origin, version), row| {
        parts(row).is_some_and(|(at, _)| at >= before) || vector.get(Origin(origin)).version == version
    })?;
    Ok(())
}

/// Which updates may go.
struct Rule {
    /// Those that came before this time.
    before: u64,
    /// Of these, such as count nowhere at this time any more; all, where no other server is to be told.
    over: Option<u64>,
    calendar: Calendar,
}

impl Rule {
    /// Takes out the first updates of an origin, as far as they may go. The last of them.
    fn drop_of(
        &self,
        table: &mut Updates<'_>,
        origin: Origin,
        mark: Mark,
    ) -> Result<Option<Past>, redb::Error> {
        let (mut gone, mut kept) = (None::<Past>, false);
        table.retain_in((origin.0, 0)..(origin.0, mark.version), |(_, version), row| {
            let found =
                parts(row).and_then(|(at, update)| Some((at, update, over_at(self.calendar, update)?)));
            let Some((at, update, over_at)) = found else {
                kept = true;
                return true;
            };
            kept |= at >= self.before || self.over.is_some_and(|now| now < over_at);
            if !kept {
                let over_at = gone.map_or(0, |past: Past| past.over_at).max(over_at);
                gone = Some(Past { origin, mark: Mark { version, chain: Chain::of(update) }, over_at });
            }
            kept
        })?;
        Ok(gone)
    }
}

/// After a snapshot, or a step over what is over: what is kept of an origin does not reach its mark, and is of no more use.
fn forget_before_marks(table: &mut Updates<'_>, state: &State) -> Result<(), redb::Error> {
    for (origin, mark) in state.vector().iter() {
        let last = table.range((origin.0, 0)..=(origin.0, u64::MAX))?.next_back().transpose()?;
        let last = last.map_or(0, |(key, _)| key.value().1);
        if last < mark.version {
            table.retain_in((origin.0, 0)..=(origin.0, u64::MAX), |_, _| false)?;
        }
    }
    Ok(())
}

/// Writes down what is missing without a word about it: what came with a snapshot, or was taken out by an earlier program. It was
/// counted until now at the latest.
fn note_unknown(
    table: &Updates<'_>,
    state: &State,
    now: u64,
    all: &mut BTreeMap<Origin, Past>,
) -> Result<(), redb::Error> {
    let counts = state.counts();
    let calendar = Calendar::new(&counts.settings);
    // What limited clients brought is in windows that are not looked at here; none of them began later.
    let of_people = counts.has_people().then(|| calendar.of_people(now));
    let held = counts.merged.windows().iter().map(|window| window.window);
    let windows = held.chain([calendar.at(now)]).chain(of_people);
    let over_at = windows.map(|window| calendar.over_at(window)).max().unwrap_or_default();
    for (origin, mark) in state.vector().iter() {
        let first = table.range((origin.0, 0)..=(origin.0, u64::MAX))?.next().transpose()?;
        let before = match &first {
            None => mark,
            Some((key, row)) => {
                let chain = parts(row.value()).and_then(|(_, update)| update.get(16..32)?.try_into().ok());
                Mark { version: key.value().1.saturating_sub(1), chain: Chain(chain.unwrap_or_default()) }
            }
        };
        if before.version > all.get(&origin).map_or(0, |past| past.mark.version) {
            all.insert(origin, Past { origin, mark: before, over_at });
        }
    }
    Ok(())
}
