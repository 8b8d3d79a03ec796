// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's chain on disk. Each step is a row, written in one transaction with what it settles; a checkpoint writes the cells, and with
//! them where the chain stands in them. So what is read is a checkpoint and the steps since.

use crate::ledger::disk::errors::{Fault, damaged};
use crate::ledger::disk::rows::{seal, unseal};
use crate::ledger::disk::schema::{FLEET, MARKS, STEPS, begin_fleet, get_meta, is_of_fleet, put_meta};
use crate::ledger::history::fields::Fields;
use crate::ledger::history::fleet::FleetMark;
use crate::ledger::history::spool_mark::SpoolMark;
use crate::ledger::history::step::Step;
use crate::ledger::history::vector::{Chain, Origin};
use crate::ledger::state::changes::KeptStep;
use crate::ledger::state::counts::Counts;
use crate::ledger::state::fleet::fold::Fleet;
use crate::ledger::state::fleet::marks::Known;
use crate::ledger::state::merged::{Applied, MergedCounts};
use redb::{Database, ReadableDatabase, ReadableTable, TableError, WriteTransaction};
use std::sync::Arc;

/// Bytes of steps that stay when they are in the cells: the log may come back without its end, and those who kept it append it again.
/// At two million messages a day that is half a day.
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

/// Writes where the chain stands in the cells, of which all are written with it.
pub(crate) fn write(txn: &WriteTransaction, counts: &Counts) -> Result<(), redb::Error> {
    let Fleet { mark, origin, time, marks } = &counts.fleet;
    if mark.version > 0 {
        begin_fleet(txn)?;
    } else if !counts.adopted || !is_of_fleet(txn)? {
        return Ok(());
    }
    put_meta(txn, FLEET, &encode(mark, *origin, *time))?;
    let mut table = txn.open_table(MARKS)?;
    let put = |table: &mut redb::Table<'_, (&str, u64), &[u8]>, client: &str, spool: u64, known: &Known| {
        let mut row = known.at.to_le_bytes().to_vec();
        known.mark.encode(&mut row);
        table.insert((client, spool), &*seal(MARKS_NAME, &mark_key(client, spool), &row)).map(drop)
    };
    if counts.adopted {
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
    if counts.adopted {
        // They may be of another chain.
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

/// Origin, version, epoch, made, covers, place, time, chain.
fn encode(mark: &FleetMark, origin: Origin, time: u64) -> Vec<u8> {
    let FleetMark { version, chain, epoch, made, covers, place } = *mark;
    let numbers = [origin.0, version, epoch, made, covers, place, time].map(u64::to_le_bytes);
    [&numbers.concat()[..], &chain.0].concat()
}

/// The same without marks.
pub(crate) fn decode(row: &[u8]) -> Result<Fleet, Fault> {
    let mut fields = Fields(row);
    let origin = Origin(fields.u64()?);
    let (version, epoch, made) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (covers, place, time) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mark = FleetMark { version, chain: Chain(fields.take()?), epoch, made, covers, place };
    Ok(Fleet { mark, origin, time, ..Fleet::default() })
}

pub(crate) fn decode_mark(client: &str, spool: u64, row: &[u8]) -> Result<Known, Fault> {
    let mut fields = Fields(unseal(MARKS_NAME, &mark_key(client, spool), row)?);
    let at = fields.u64()?;
    let mark = SpoolMark::decode(&mut fields)?.ok_or_else(|| damaged("the mark of a spool is none"))?;
    Ok(Known { at, mark })
}

/// Where the chain stands in what is read of the cells; then the steps since are added to them.
pub(crate) fn load(txn: &WriteTransaction, merged: &mut MergedCounts) -> Result<Fleet, Fault> {
    if !is_of_fleet(txn)? {
        return Ok(Fleet::default());
    }
    let mut fleet = get_meta(txn, FLEET)?.map_or_else(|| Ok(Fleet::default()), |row| decode(&row))?;
    for row in txn.open_table(MARKS)?.range::<(&str, u64)>(..)? {
        let (key, row) = row?;
        let (client, spool) = key.value();
        fleet.marks.restore(client.to_owned(), spool, decode_mark(client, spool, row.value())?);
    }
    let known = fleet.mark.version;
    for row in txn.open_table(STEPS)?.range(known + 1..)? {
        let (version, row) = row?;
        let (version, row) = (version.value(), row.value());
        let mut fields = Fields(unseal(STEPS_NAME, &version.to_le_bytes(), row)?);
        let place = fields.u64()?;
        let step = Step::decode(fields.0).map_err(|e| damaged(e.to_string()))?;
        let applied = fleet.apply(merged, &step, fields.0, place).map_err(|e| damaged(e.to_string()))?;
        if applied != Applied::New {
            return Err(damaged(format!("step {version} of the fleet does not follow the one before it")));
        }
    }
    Ok(fleet)
}

/// The kept steps behind this version, in a row, about `limit` bytes of them. None when the first of them is not kept.
pub(crate) fn steps_since(db: &Database, version: u64, limit: usize) -> Result<Vec<(u64, Arc<[u8]>)>, Fault> {
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
