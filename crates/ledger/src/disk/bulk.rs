// SPDX-License-Identifier: GPL-3.0-or-later
//! The list of bulk on disk: its position, its signatures, and the notes since the checkpoint.

use crate::disk::errors::{Fault, damaged};
use crate::disk::rows::{SliceKey, seal, slice_key, unseal};
use crate::disk::schema::{BULK, BULK_NOTES, BULK_STATE, get_meta, put_meta};
use bulkmark_counts::history::bulk::{BulkMark, MAX_ENTRIES, Note, Section, decode_entries, encode_entries};
use bulkmark_counts::history::window::Window;
use bulkmark_counts::state::changes::Changes;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::roles::State;
use redb::{ReadableTable, WriteTransaction};

/// Decodes a row: a part of the held signatures of a window.
pub(crate) fn section_of((start, length, part): SliceKey, row: &[u8]) -> Result<Section, Fault> {
    let window = Window::from((start, length));
    let bytes = unseal("bulk", &slice_key(window, part), row)?;
    let entries = decode_entries(bytes, MAX_ENTRIES);
    let entries = entries.ok_or_else(|| damaged("a row of the table bulk cannot be read"))?;
    Ok(Section { window, entries })
}

/// Decodes a row of a note: the time when it was made or received, and its bytes.
pub(crate) fn note_of(number: u64, row: &[u8]) -> Result<(u64, &[u8]), Fault> {
    let value = unseal("bulk notes", &number.to_le_bytes(), row)?;
    let (at, bytes) = value.split_first_chunk().ok_or_else(|| damaged("a note of bulk is too short"))?;
    Ok((u64::from_le_bytes(*at), bytes))
}

/// Decodes the position of the list at the last checkpoint.
pub(crate) fn mark_of(row: &[u8]) -> Result<BulkMark, Fault> {
    BulkMark::decode(row).map(|(mark, _)| mark).ok_or_else(|| damaged("a row is too short"))
}

/// Reads the list.
pub(crate) fn load(txn: &WriteTransaction, counts: &mut Counts) -> Result<(), Fault> {
    let Some(row) = get_meta(txn, BULK_STATE)? else { return Ok(()) };
    counts.bulk = mark_of(&row)?;
    for row in txn.open_table(BULK)?.range::<SliceKey>(..)? {
        let (key, row) = row?;
        let section = section_of(key.value(), row.value())?;
        // The next checkpoint finds out whether the window has expired.
        counts.held.raise(&section, section.window.start, |_, _, _| ());
    }
    counts.held.mark_clean();
    Ok(())
}

/// Adds the notes since the checkpoint to the list.
pub(crate) fn load_notes(txn: &WriteTransaction, counts: &mut Counts, is_server: bool) -> Result<(), Fault> {
    if !counts.bulk.is_begun() || counts.fleet.mark.version > 0 {
        return Ok(());
    }
    for row in txn.open_table(BULK_NOTES)?.range::<u64>(counts.bulk.number + 1..)? {
        let (key, row) = row?;
        let (at, bytes) = note_of(key.value(), row.value())?;
        let note = Note::decode(bytes).filter(|note| note.number == counts.bulk.number + 1);
        let note = note.ok_or_else(|| damaged(format!("note {} of bulk cannot be read", key.value())))?;
        if is_server {
            // The note's vector is this server's own.
            counts.take_note(&Note { moved: Vec::new(), ..note }, bytes, at);
        } else {
            counts.take_note(&note, bytes, at);
        }
    }
    Ok(())
}

/// Writes the notes of a commit.
pub(crate) fn write_notes(txn: &WriteTransaction, changes: &Changes) -> Result<(), redb::Error> {
    if changes.notes.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(BULK_NOTES)?;
    for note in &changes.notes {
        let value = [&note.at.to_le_bytes()[..], &note.bytes].concat();
        table.insert(note.number, &*seal("bulk notes", &note.number.to_le_bytes(), &value))?;
    }
    Ok(())
}

/// Deletes the old list once a new one has begun. Call it before writing the new one's entries.
pub(crate) fn take_out_old(txn: &WriteTransaction, state: &State) -> Result<(), redb::Error> {
    if state.counts().unwritten.relisted {
        txn.open_table(BULK)?.retain(|_, _| false)?;
        txn.open_table(BULK_NOTES)?.retain(|_, _| false)?;
    }
    Ok(())
}

/// Writes the changes at a checkpoint, and deletes expired entries.
pub(crate) fn write(txn: &WriteTransaction, state: &State, expired: &Expired) -> Result<(), redb::Error> {
    let counts = state.counts();
    if !counts.bulk.is_begun() && !counts.unwritten.relisted {
        return Ok(());
    }
    let mut table = txn.open_table(BULK)?;
    for window in &expired.held {
        let (start, length) = window.key();
        table.retain_in((start, length, 0)..=(start, length, u32::MAX), |_, _| false)?;
    }
    for (part, Section { window, entries }) in counts.held.dirty() {
        let (start, length) = window.key();
        let row = seal("bulk", &slice_key(window, part), &encode_entries(&entries));
        table.insert((start, length, part), &*row)?;
    }
    put_meta(txn, BULK_STATE, &counts.bulk.encode())?;
    let mut notes = txn.open_table(BULK_NOTES)?;
    match (state, expired.updates_before) {
        (State::Server(_), None) => (),
        // The newest note stays: a milter that has it needs nothing.
        (State::Server(_), Some(before)) => {
            let mut end = 0;
            for row in notes.range(..counts.bulk.number)? {
                let (number, row) = row?;
                let at = row.value().first_chunk().map_or(0, |at| u64::from_le_bytes(*at));
                // Notes are in the order of their times, so all after this one stay as well.
                if at >= before {
                    break;
                }
                end = number.value() + 1;
            }
            notes.retain_in(..end, |_, _| false)?;
        }
        _ => notes.retain(|_, _| false)?,
    }
    Ok(())
}
