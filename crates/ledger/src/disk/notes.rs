// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads the list of bulk beside the writer for its holders: notes, and the whole list.

use crate::disk::bulk::{mark_of, note_of, section_of};
use crate::disk::errors::unavailable;
use crate::disk::read::Reader;
use crate::disk::rows::{SliceKey, unseal};
use crate::disk::schema::{BULK, BULK_NOTES, BULK_STATE, META, VECTOR};
use crate::errors::LedgerError;
use bulkmark_counts::history::bulk::{BulkMark, Section, hash_of};
use bulkmark_counts::history::vector::{Origin, Vector};
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata as _, TableError};
use std::ops::Bound;
use std::sync::Arc;

/// A note's number and bytes.
pub(crate) type NoteBytes = (u64, Arc<[u8]>);

impl Reader {
    /// Returns the notes of the list `ours` that a holder at `theirs` lacks, oldest first, about `limit` bytes of them. `None` if the
    /// holder has another list, or the notes are no longer kept.
    ///
    /// # Errors
    /// If the disk failed or a row is damaged.
    pub fn notes(
        &self,
        ours: BulkMark,
        theirs: BulkMark,
        limit: usize,
    ) -> Result<Option<Vec<NoteBytes>>, LedgerError> {
        if theirs.list != ours.list || theirs.number > ours.number {
            return Ok(None);
        }
        if theirs.number == ours.number {
            return Ok((theirs.hash == ours.hash).then(Vec::new));
        }
        let txn = self.db.begin_read().map_err(unavailable)?;
        let table = match txn.open_table(BULK_NOTES) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table.map_err(unavailable)?,
        };
        if theirs.number > 0 {
            let last = table.get(theirs.number).map_err(unavailable)?;
            let Some(last) = last else { return Ok(None) };
            let (_, bytes) = note_of(theirs.number, last.value())?;
            if hash_of(bytes) != theirs.hash {
                return Ok(None);
            }
        }
        let (mut notes, mut bytes, mut next) = (Vec::new(), 0, theirs.number + 1);
        for row in table.range(next..=ours.number).map_err(unavailable)? {
            let (key, row) = row.map_err(unavailable)?;
            let number = key.value();
            if number != next || bytes >= limit {
                break;
            }
            let (_, note) = note_of(number, row.value())?;
            bytes += note.len();
            notes.push((number, note.into()));
            next += 1;
        }
        Ok(Some(notes).filter(|notes| !notes.is_empty()))
    }

    /// Returns the whole list of bulk as of the last checkpoint, a state that does not change while it is held; `None` if there is no list.
    ///
    /// # Errors
    /// If the disk failed or a row is damaged.
    pub fn bulk(&self) -> Result<Option<BulkRows>, LedgerError> {
        let txn = self.db.begin_read().map_err(unavailable)?;
        let meta = txn.open_table(META).map_err(unavailable)?;
        let row = |name: &str| -> Result<Option<Vec<u8>>, LedgerError> {
            let row = meta.get(name).map_err(unavailable)?;
            let row = row.map(|row| unseal("meta", name.as_bytes(), row.value()).map(<[u8]>::to_vec));
            row.transpose().map_err(LedgerError::from)
        };
        let Some(mark) = row(BULK_STATE)? else { return Ok(None) };
        let mark = mark_of(&mark)?;
        let vector = row(VECTOR)?.unwrap_or_default();
        let vector = Vector::from_own(&String::from_utf8_lossy(&vector))
            .map_err(|_| LedgerError::Unavailable("its version vector is damaged".to_owned()))?;
        let versions = vector.iter().map(|(origin, mark)| (origin, mark.version)).collect();
        drop(meta);
        Ok(mark.is_begun().then_some(BulkRows { txn, mark, versions }))
    }
}

/// A whole list of bulk at a checkpoint.
pub struct BulkRows {
    txn: ReadTransaction,
    /// The position of the list.
    pub mark: BulkMark,
    /// The version up to which each origin was counted.
    pub versions: Vec<(Origin, u64)>,
}

/// The position of a row in the list.
pub type BulkPlace = SliceKey;

impl BulkRows {
    /// Returns the number of rows.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn count(&self) -> Result<u64, LedgerError> {
        match self.txn.open_table(BULK) {
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            table => table.map_err(unavailable)?.len().map_err(unavailable),
        }
    }

    /// Returns the rows after this position, at most `most`; fewer only at the end. And the position of the last one.
    ///
    /// # Errors
    /// If the disk failed or a row is damaged.
    pub fn rows(
        &self,
        after: Option<BulkPlace>,
        most: usize,
    ) -> Result<(Vec<Section>, Option<BulkPlace>), LedgerError> {
        let table = match self.txn.open_table(BULK) {
            Err(TableError::TableDoesNotExist(_)) => return Ok((Vec::new(), None)),
            table => table.map_err(unavailable)?,
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut rows, mut last) = (Vec::new(), after);
        for row in table.range::<SliceKey>((from, Bound::Unbounded)).map_err(unavailable)?.take(most) {
            let (key, row) = row.map_err(unavailable)?;
            rows.push(section_of(key.value(), row.value())?);
            last = Some(key.value());
        }
        Ok((rows, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{commit, open};
    use bulkmark_counts::settings::{Role, Settings};
    use bulkmark_counts::state::bulk_counts::BulkCounts;
    use bulkmark_counts::state::expired::Expired;
    use bulkmark_counts::state::receipts::Reporter;
    use bulkmark_types::{FederationKey, Signature};
    use std::sync::Arc;

    const NOW: u64 = 20_000 * 86_400 + 1000;

    /// Three notes, of which the first is too old to be kept: its holder gets the later ones. A holder of fewer notes, of another note with
    /// this number or of another list gets the whole list as of the last checkpoint.
    #[test]
    fn a_holder_that_notes_do_not_help_gets_the_list() {
        let directory = tempfile::tempdir().unwrap();
        let (settings, key) = (Settings::default(), FederationKey::public());
        let mut loaded = open::open(directory.path(), Role::Server, &settings, &key, [1, 2])
            .unwrap_or_else(|e| panic!("{e}"));
        let (signature, mut marks) = (Signature::from_bytes([9; 16]), Vec::new());
        loaded.state.server().unwrap().list_bulk(10, 5);
        for number in 1..=3u32 {
            let server = loaded.state.server().unwrap();
            let reporter = Reporter { client: "mx".to_owned(), spool: 1 };
            let reports = [(signature, 10)];
            server.take_batch(reporter, number.into(), &reports, None, NOW, Origin(3)).unwrap();
            server.cut(NOW + u64::from(number));
            marks.push(server.counts.bulk);
            // At the third note the first two are too old.
            let expired = Expired { updates_before: Some(NOW + u64::from(number) - 1), ..Expired::default() };
            let changes = std::mem::take(&mut loaded.state.counts_mut().changes);
            let written = commit::checkpoint(&loaded.db, &loaded.state, &changes, &expired);
            written.unwrap_or_else(|e| panic!("{e}"));
            commit::mark_clean(&mut loaded.state);
        }
        let reader = Reader::new(Arc::clone(&loaded.db), Arc::default());
        let ours = marks[2];
        let notes = |theirs| reader.notes(ours, theirs, 1000).unwrap().map(|notes| notes.len());
        assert_eq!(marks.iter().map(|&theirs| notes(theirs)).collect::<Vec<_>>(), [None, Some(1), Some(0)]);
        assert_eq!(notes(BulkMark::default()), None);
        assert_eq!(notes(BulkMark { hash: 1, ..marks[1] }), None);
        assert_eq!(notes(BulkMark { hash: 1, ..ours }), None);
        let list = reader.bulk().unwrap().unwrap();
        assert_eq!((list.mark, list.count().unwrap(), list.versions.len()), (ours, 1, 1));
        let (rows, last) = list.rows(None, 16).unwrap();
        let mut held = BulkCounts::new(&settings);
        rows.iter().for_each(|section| held.raise(section, NOW, |_, _, _| ()));
        assert_eq!(held.count(signature, NOW), 30);
        assert!(list.rows(last, 16).unwrap().0.is_empty());
    }
}
