// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's chain on disk. Each step is a row, written in one transaction with the spool's batches that it covers; a checkpoint writes the
//! cells with their position in the chain. So a start reads a checkpoint and the steps since.

use crate::disk::errors::{Fault, damaged};
use crate::disk::rows::{seal, unseal};
use crate::disk::schema::{FLEET, MARKS, STEPS, begin_fleet, get_meta, is_of_fleet, put_meta};
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::fleet_mark::FleetMark;
use bulkmark_counts::history::spool_mark::SpoolMark;
use bulkmark_counts::history::step::Step;
use bulkmark_counts::history::vector::{Chain, Origin};
use bulkmark_counts::state::bulk_counts::BulkCounts;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::fleet::fold::Fleet;
use bulkmark_counts::state::fleet::keeps::Keeps;
use bulkmark_counts::state::fleet::marks::KnownMark;
use bulkmark_counts::state::kept::KeptStep;
use bulkmark_counts::state::merged::{Applied, MergedCounts};
use redb::{Database, ReadableDatabase, ReadableTable, TableError, WriteTransaction};
use std::sync::Arc;

/// Bytes of steps that are kept after the cells include them: if the log is restored without its end, its members append them again.
/// At two million messages a day they are half a day.
const KEEP_BYTES: usize = 64 << 20;

pub(crate) const STEPS_NAME: &str = "fleet steps";
pub(crate) const MARKS_NAME: &str = "fleet marks";

pub(crate) fn mark_key(client: &str, spool: u64) -> Vec<u8> {
    [client.as_bytes(), &spool.to_le_bytes()].concat()
}

pub(crate) fn write_steps(txn: &WriteTransaction, steps: &[KeptStep]) -> Result<(), redb::Error> {
    if steps.is_empty() {
        return Ok(());
    }
    begin_fleet(txn)?;
    let mut table = txn.open_table(STEPS)?;
    for KeptStep { version, place, bytes } in steps {
        let row = [&place.to_le_bytes()[..], bytes].concat();
        table.insert(version, &*seal(STEPS_NAME, &version.to_le_bytes(), &row))?;
    }
    Ok(())
}

/// Writes the position of the cells in the chain; all cells are written in the same transaction.
pub(crate) fn write(txn: &WriteTransaction, counts: &Counts) -> Result<(), redb::Error> {
    let Fleet { mark, origin, time, bound, marks } = &counts.fleet;
    if mark.version > 0 {
        begin_fleet(txn)?;
    } else if !counts.unwritten.is_apart() || !is_of_fleet(txn)? {
        return Ok(());
    }
    let mut row = encode(mark, *origin, *time);
    row.extend_from_slice(&bound.to_le_bytes());
    row.push(Keeps::of(&counts.settings).number());
    put_meta(txn, FLEET, &row)?;
    let mut table = txn.open_table(MARKS)?;
    let put =
        |table: &mut redb::Table<'_, (&str, u64), &[u8]>, client: &str, spool: u64, known: &KnownMark| {
            let mut row = known.at.to_le_bytes().to_vec();
            known.mark.encode(&mut row);
            table.insert((client, spool), &*seal(MARKS_NAME, &mark_key(client, spool), &row)).map(drop)
        };
    if counts.unwritten.is_apart() {
        table.retain(|_, _| false)?;
        marks.iter().try_for_each(|(client, spool, known)| put(&mut table, client, spool, known))?;
    } else {
        for (client, spool, known) in marks.dirty() {
            match known {
                Some(known) => put(&mut table, client, spool, known)?,
                None => drop(table.remove((client, spool))?),
            }
        }
    }
    let mut steps = txn.open_table(STEPS)?;
    if counts.unwritten.is_apart() {
        // The steps may belong to another chain.
        return Ok(steps.retain(|_, _| false)?);
    }
    let (mut bytes, mut first) = (0, 0);
    for row in steps.range::<u64>(..)?.rev() {
        let (version, row) = row?;
        bytes += row.value().len();
        if bytes > KEEP_BYTES {
            first = version.value() + 1;
            break;
        }
    }
    steps.retain_in(..first, |_, _| false)?;
    Ok(())
}

/// Encodes origin, version, epoch, made, covers, place, time, chain, and then the bound of bulk and the kind of copy.
fn encode(mark: &FleetMark, origin: Origin, time: u64) -> Vec<u8> {
    let FleetMark { version, chain, epoch, made, covers, place } = *mark;
    let numbers = [origin.0, version, epoch, made, covers, place, time].map(u64::to_le_bytes);
    [&numbers.concat()[..], &chain.0].concat()
}

/// The kind of copy in a ledger from before there was a list of bulk.
const BEFORE: Keeps = Keeps { cells: true, list: false };

/// Decodes the position without the marks, and the kind of copy.
pub(crate) fn decode(row: &[u8]) -> Result<(Fleet, Keeps), Fault> {
    let mut fields = Fields(row);
    let origin = Origin(fields.u64()?);
    let (version, epoch, made) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (covers, place, time) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mark = FleetMark { version, chain: Chain(fields.take()?), epoch, made, covers, place };
    let (bound, keeps) = if fields.0.is_empty() {
        (0, BEFORE)
    } else {
        let (bound, [number]) = (fields.u32()?, fields.take()?);
        (bound, Keeps::from_number(number).ok_or_else(|| damaged("the kind of a member's copy is invalid"))?)
    };
    Ok((Fleet { mark, origin, time, bound, ..Fleet::default() }, keeps))
}

pub(crate) fn decode_mark(client: &str, spool: u64, row: &[u8]) -> Result<KnownMark, Fault> {
    let mut fields = Fields(unseal(MARKS_NAME, &mark_key(client, spool), row)?);
    let at = fields.u64()?;
    let mark = SpoolMark::decode(&mut fields)?.ok_or_else(|| damaged("the mark of a spool is invalid"))?;
    Ok(KnownMark { at, mark })
}

/// Returns the kind of copy that this member of a fleet keeps; `None` for another ledger.
pub(crate) fn keeps(db: &Database) -> Result<Option<Keeps>, Fault> {
    let txn = db.begin_write()?;
    let row = get_meta(&txn, FLEET)?;
    txn.abort()?;
    row.map(|row| decode(&row).map(|(_, keeps)| keeps)).transpose()
}

/// Loads the position of the cells and of the list in the chain; then applies the steps since.
pub(crate) fn load(txn: &WriteTransaction, counts: &mut Counts) -> Result<(), Fault> {
    if !is_of_fleet(txn)? {
        return Ok(());
    }
    let wanted = Keeps::of(&counts.settings);
    let (mut fleet, kept) = match get_meta(txn, FLEET)? {
        Some(row) => decode(&row)?,
        None => (Fleet::default(), wanted),
    };
    if fleet.mark.version > 0 && (wanted.cells && !kept.cells || wanted.list && !kept.list && fleet.bound > 0)
    {
        // It was a holder of the other kind: start over with a snapshot.
        reset_fleet(counts);
        return Ok(());
    }
    for row in txn.open_table(MARKS)?.range::<(&str, u64)>(..)? {
        let (key, row) = row?;
        let (client, spool) = key.value();
        fleet.marks.restore(client, spool, decode_mark(client, spool, row.value())?);
    }
    counts.fleet = fleet;
    counts.mark_bulk();
    if kept != wanted && counts.fleet.mark.version > 0 {
        drop_unwanted(counts, wanted);
    }
    let known = counts.fleet.mark.version;
    for row in txn.open_table(STEPS)?.range(known + 1..)? {
        let (version, row) = row?;
        let (version, row) = (version.value(), row.value());
        let mut fields = Fields(unseal(STEPS_NAME, &version.to_le_bytes(), row)?);
        let place = fields.u64()?;
        let step = Step::decode(fields.0).map_err(|e| damaged(e.to_string()))?;
        let applied = counts.apply_to_fleet(&step, fields.0, place).map_err(|e| damaged(e.to_string()))?;
        counts.mark_bulk();
        if applied != Applied::New {
            return Err(damaged(format!("step {version} of the fleet does not follow the one before it")));
        }
    }
    Ok(())
}

/// Forgets all counts of the fleet.
fn reset_fleet(counts: &mut Counts) {
    let (merged, held) = (MergedCounts::new(&counts.settings), BulkCounts::new(&counts.settings));
    counts.replace_fleet(merged, held, Fleet::default());
}

/// Drops the parts that the configured kind of copy does not include.
fn drop_unwanted(counts: &mut Counts, wanted: Keeps) {
    if !wanted.cells {
        let mut merged = MergedCounts::new(&counts.settings);
        *merged.vector_mut() = counts.merged.vector().clone();
        let fleet = std::mem::take(&mut counts.fleet);
        counts.replace(merged);
        counts.fleet = fleet;
    }
    if !wanted.list {
        counts.held = BulkCounts::new(&counts.settings);
    }
    counts.relist();
}

/// A kept step: its version and its bytes.
pub type OldStep = (u64, Arc<[u8]>);

/// Returns the kept steps after this version, in order, about `limit` bytes of them; none if the first of them is not kept.
pub(crate) fn steps_since(db: &Database, version: u64, limit: usize) -> Result<Vec<OldStep>, Fault> {
    let txn = db.begin_read()?;
    let table = match txn.open_table(STEPS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    let (mut steps, mut bytes) = (Vec::new(), 0);
    for (row, next) in table.range(version.saturating_add(1)..)?.zip(version.saturating_add(1)..) {
        let (found, row) = row?;
        if found.value() != next || bytes >= limit {
            break;
        }
        let mut fields = Fields(unseal(STEPS_NAME, &next.to_le_bytes(), row.value())?);
        fields.u64()?;
        bytes += fields.0.len();
        steps.push((next, fields.0.into()));
    }
    Ok(steps)
}

/// Whether the kept step of this version has this hash.
pub(crate) fn knows_step(db: &Database, version: u64, chain: Chain) -> Result<bool, Fault> {
    let Some(before) = version.checked_sub(1) else { return Ok(chain == Chain::default()) };
    let step = steps_since(db, before, 1)?;
    Ok(step.first().is_some_and(|(_, bytes)| Chain::of(bytes) == chain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{commit, open};
    use bulkmark_counts::settings::{Role, Settings};
    use bulkmark_counts::state::expired::Expired;
    use bulkmark_types::FederationKey;

    /// After a checkpoint the file has the newest steps, for whoever appends them again to a log that lost its end; and no more of them
    /// than 64 MB, however many there were.
    #[test]
    fn the_newest_steps_stay_and_old_ones_leave() {
        const BYTES: usize = 1 << 20;
        let directory = tempfile::tempdir().unwrap();
        let (settings, key) = (Settings::default(), FederationKey::public());
        let mut loaded = open::open(directory.path(), Role::Server, &settings, &key, [1, 2])
            .unwrap_or_else(|e| panic!("{e}"));
        let counts = loaded.state.counts_mut();
        counts.fleet.mark.version = 70;
        let step = |version| KeptStep { version, place: version, bytes: vec![7; BYTES].into() };
        counts.changes.steps = (1..=70).map(step).collect();
        let changes = std::mem::take(&mut counts.changes);
        commit::checkpoint(&loaded.db, &loaded.state, &changes, &Expired::default())
            .unwrap_or_else(|e| panic!("{e}"));
        let kept = |version| {
            let steps = steps_since(&loaded.db, version, usize::MAX);
            steps.map(|steps| steps.len()).unwrap_or_else(|_| panic!("they cannot be read"))
        };
        let first = (0..70).find(|&version| kept(version) > 0);
        assert_eq!((first, kept(6), kept(7)), (Some(7), 0, 63), "64 MB with what each row has besides");
    }
}
