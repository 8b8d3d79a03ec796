// SPDX-License-Identifier: GPL-3.0-or-later
//! What the handle does for bulk that is told apart: of a server that tells it, and of a milter with a partial copy that holds it.

use crate::errors::LedgerError;
use crate::handle::{Ledger, name};
use bulkmark_counts::history::bulk::{BulkMark, Note, Section};
use bulkmark_counts::state::cache::Cache;
use bulkmark_counts::state::partial::{BulkAssembly, NoteGap};
use bulkmark_types::Signature;
use std::sync::Arc;
use tokio::sync::watch;

/// Tells when the list of bulk moves.
pub struct BulkMoves(watch::Receiver<BulkMark>);

impl BulkMoves {
    /// Takes the present state for known.
    pub fn mark_unchanged(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits until it is another one than was known. False when the ledger was closed.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Ledger {
    /// How far the list of bulk is, on disk.
    #[must_use]
    pub fn bulk(&self) -> BulkMark {
        *self.shared.bulk.borrow()
    }

    /// Tells of every change of [`bulk`](Self::bulk).
    #[must_use]
    pub fn bulk_moves(&self) -> BulkMoves {
        BulkMoves(self.shared.bulk.subscribe())
    }

    /// Has a server tell bulk apart from the count `bound` on, or from a lower one if it does so already.
    ///
    /// # Errors
    /// When that is not on disk, or there is no random number.
    pub async fn tell_bulk(&self, bound: u32) -> Result<BulkMark, LedgerError> {
        let known = self.bulk();
        if known.is_begun() && known.bound <= bound {
            return Ok(known);
        }
        let new = name()?;
        self.ask_server(move |server| server.list_bulk(bound, new)).await
    }

    /// Takes what another server told of bulk.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn hear_bulk(&self, sections: Vec<Section>, now: u64) -> Result<(), LedgerError> {
        self.ask_server(move |server| server.receive_bulk(&sections, now)).await
    }

    /// Takes a note, whose bytes are these, of the list with this number. False when it was known before.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it does not follow what is known.
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

    /// Takes a whole list for all that others counted.
    ///
    /// # Errors
    /// When it is not on disk.
    pub async fn adopt_bulk(&self, assembly: BulkAssembly) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.adopt_bulk(assembly)).await
    }

    /// The counts of `signatures` at the time `now`, in their order.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn counts(&self, signatures: Vec<Signature>, now: u64) -> Result<Vec<u32>, LedgerError> {
        self.read(move |state| signatures.iter().map(|&signature| state.count(signature, now)).collect())
            .await
    }
}
