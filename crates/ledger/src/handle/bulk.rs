// SPDX-License-Identifier: GPL-3.0-or-later
//! The list of bulk: a server publishes it, and a milter with a partial copy holds it.

use crate::errors::LedgerError;
use crate::handle::{Ledger, name};
use bulkmark_counts::history::bulk::{BulkMark, Note, Section};
use bulkmark_counts::state::cache::Cache;
use bulkmark_counts::state::partial::{BulkAssembly, NoteGap};
use bulkmark_types::Signature;
use std::sync::Arc;
use tokio::sync::watch;

/// Signals changes of the list of bulk.
pub struct BulkChanges(watch::Receiver<BulkMark>);

impl BulkChanges {
    /// Marks the present state as seen.
    pub fn mark_unchanged(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits until the state differs from the one last seen. Returns false when the ledger was closed.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Ledger {
    /// Returns the position of the list of bulk on disk.
    #[must_use]
    pub fn bulk(&self) -> BulkMark {
        *self.shared.bulk.borrow()
    }

    /// Signals every change of [`bulk`](Self::bulk).
    #[must_use]
    pub fn bulk_changes(&self) -> BulkChanges {
        BulkChanges(self.shared.bulk.subscribe())
    }

    /// Makes a server list bulk from the count `bound` on, or from a lower one if it does so already.
    ///
    /// # Errors
    /// If that is not on disk, or there is no random number.
    pub async fn list_bulk(&self, bound: u32) -> Result<BulkMark, LedgerError> {
        let known = self.bulk();
        if known.is_begun() && known.bound <= bound {
            return Ok(known);
        }
        let new = name()?;
        self.ask_server(move |server| server.list_bulk(bound, new)).await
    }

    /// Applies bulk that another server listed.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn receive_bulk(&self, sections: Vec<Section>, now: u64) -> Result<(), LedgerError> {
        self.ask_server(move |server| server.receive_bulk(&sections, now)).await
    }

    /// Applies a note of the list with this number; `bytes` is its encoded form. Returns false if the note was known.
    ///
    /// # Errors
    /// If it is not on disk; the inner error if the note does not follow the last known one.
    pub async fn take_note(
        &self,
        list: u64,
        note: Note,
        bytes: Arc<[u8]>,
        now: u64,
    ) -> Result<Result<bool, NoteGap>, LedgerError> {
        let work = move |cache: &mut Cache| match cache.counts.bulk.list == list {
            true => cache.take_note(&note, bytes, now),
            false => Err(NoteGap { found: note.number(), known: 0 }),
        };
        self.ask_cache(work).await
    }

    /// Replaces all counts of others by a whole list.
    ///
    /// # Errors
    /// If it is not on disk.
    pub async fn adopt_bulk(&self, assembly: BulkAssembly) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.adopt_bulk(assembly)).await
    }

    /// Returns the counts of `signatures` at the time `now`, in their order.
    ///
    /// # Errors
    /// If there are no counts.
    pub async fn counts(&self, signatures: Vec<Signature>, now: u64) -> Result<Vec<u32>, LedgerError> {
        self.read(move |state| signatures.iter().map(|&signature| state.count(signature, now)).collect())
            .await
    }
}
