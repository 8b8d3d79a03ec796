// SPDX-License-Identifier: GPL-3.0-or-later
//! Changes since the last checkpoint: reports of the journal and updates of others, which are added to the cells.

use crate::disk::errors::{Fault, damaged, no_memory};
use crate::disk::rows::{decode_batch, unseal};
use crate::disk::schema::{JOURNAL, UPDATES};
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::update::Update;
use bulkmark_counts::history::vector::{Mark, Origin};
use bulkmark_counts::state::changes::JournalEntry;
use bulkmark_counts::state::limited::Limited;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::peer_check::HeldBack;
use bulkmark_filter::ParameterError;
use redb::{ReadableTable, WriteTransaction};
use std::collections::BTreeMap;
use std::ops::Range;

/// Applies the updates that came after the last checkpoint in the order in which they came: which windows have a place depends on it.
pub(crate) fn replay_updates(
    txn: &WriteTransaction,
    merged: &mut MergedCounts,
    own: &[Origin],
) -> Result<(), Fault> {
    let table = txn.open_table(UPDATES)?;
    let mut keys = Vec::new();
    let mut last = (0, 0);
    for row in table.range::<(u64, u64)>(..)? {
        let (key, value) = row?;
        let (origin, version) = key.value();
        if own.contains(&Origin(origin)) || version <= merged.vector().get(Origin(origin)).version {
            continue;
        }
        let (at, _) = row_of(&key.value(), value.value())?;
        // A clock that was set back must not change the order of an origin's versions.
        last = (origin, if last.0 == origin { at.max(last.1) } else { at });
        keys.push((last.1, origin, version));
    }
    keys.sort_unstable();
    for (_, origin, version) in keys {
        let row = table.get((origin, version))?.ok_or_else(|| damaged("an update is gone"))?;
        let (at, bytes) = row_of(&(origin, version), row.value())?;
        let update = Update::decode(bytes).map_err(|e| damaged(format!("{e}")))?;
        merged.apply(&update, bytes, at).map_err(|e| damaged(format!("{e}")))?;
    }
    Ok(())
}

/// An update's row: when it came, and its bytes.
fn row_of<'a>((origin, version): &(u64, u64), row: &'a [u8]) -> Result<(u64, &'a [u8]), Fault> {
    let key = [origin.to_le_bytes(), version.to_le_bytes()].concat();
    let mut fields = Fields(unseal("updates", &key, row)?);
    Ok((fields.u64()?, fields.0))
}

/// Adds the reports of the journal whose numbers are in `range`; returns the number after the last of them. The journal must begin at
/// the checkpoint and have no gap.
pub(crate) fn replay(
    txn: &WriteTransaction,
    checkpoint: u64,
    range: Range<u64>,
    mut add: impl FnMut(u64, JournalEntry) -> Result<(), ParameterError>,
) -> Result<u64, Fault> {
    let (mut next, mut end) = (checkpoint, range.start);
    for row in txn.open_table(JOURNAL)?.range::<u64>(..)? {
        let (key, batch) = row?;
        let first = key.value();
        if first != next {
            return Err(damaged(format!("the journal continues at report {first} instead of {next}")));
        }
        for entry in decode_batch(unseal("journal", &first.to_le_bytes(), batch.value())?)? {
            if range.contains(&next) {
                add(next, entry).map_err(no_memory)?;
                end = next + 1;
            }
            next += 1;
        }
    }
    Ok(end)
}

/// Holds back a report of the journal that is in no update; a report of a client whose counts were withdrawn is dropped.
pub(crate) fn hold(
    held: &mut BTreeMap<Origin, HeldBack>,
    own: (Origin, Mark),
    limited: &Limited,
    entry: JournalEntry,
) {
    let of_client = entry.client.map(|client| limited.of_any_origin(client).map(|member| (client, member)));
    let (origin, mark, capacity) = match of_client {
        None => (own.0, own.1, None),
        Some(None) => return,
        Some(Some((client, member))) => (client, member.mark, Some(member.capacity)),
    };
    let held = held.entry(origin).or_default();
    held.version = mark.version;
    held.push(entry, capacity);
}

/// Adds a report of the journal to its client's counts; a report of a client whose counts were withdrawn is dropped.
pub(crate) fn replay_limited(
    limited: &mut Limited,
    client: Origin,
    entry: &JournalEntry,
    records: bool,
) -> Result<(), ParameterError> {
    let Some((member, bounds)) = limited.of_origin_mut(client) else { return Ok(()) };
    member.add(bounds, entry.window, entry.signature, entry.times, records)
}
