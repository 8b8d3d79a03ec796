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

/// Applies the updates that came after the last checkpoint.
pub(crate) fn replay_updates(
    txn: &WriteTransaction,
    merged: &mut MergedCounts,
    own: &[Origin],
) -> Result<(), Fault> {
    for row in txn.open_table(UPDATES)?.range::<(u64, u64)>(..)? {
        let (key, value) = row?;
        let (origin, version) = key.value();
        if own.contains(&Origin(origin)) || version <= merged.vector().get(Origin(origin)).version {
            continue;
        }
        let key = [origin.to_le_bytes(), version.to_le_bytes()].concat();
        let mut fields = Fields(unseal("updates", &key, value.value())?);
        let at = fields.u64()?;
        let update = Update::decode(fields.0).map_err(|e| damaged(format!("{e}")))?;
        merged.apply(&update, fields.0, at).map_err(|e| damaged(format!("{e}")))?;
    }
    Ok(())
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
