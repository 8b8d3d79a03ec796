// SPDX-License-Identifier: GPL-3.0-or-later
//! Operations for a server and its peers.

use super::{Ledger, name};
use crate::errors::LedgerError;
use bulkmark_counts::history::past::Past;
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::update::Update;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::state::merged::Applied;
use bulkmark_counts::state::roles::State;
use bulkmark_counts::state::server::Server;
use bulkmark_filter::ParameterError;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Records why a server cannot continue: memory and file must be made to agree again.
fn set_broken(server: &mut Server, error: &ParameterError) {
    server.counts.broken = Some(format!("a new origin could not begin: {error}"));
}

impl Ledger {
    /// Whether a server still waits for the vectors of some peers since its start.
    #[must_use]
    pub fn awaits_peers(&self) -> bool {
        self.shared.awaits_peers.load(Ordering::Relaxed)
    }

    /// Receives a peer's version vector, which shows whether this server's file is an old copy.
    ///
    /// # Errors
    /// If the consequences are not on disk.
    pub async fn receive_vector(&self, peer: String, theirs: Vector, now: u64) -> Result<(), LedgerError> {
        let new = Origin(name()?);
        let work = move |server: &mut Server| {
            server.receive(&peer, &theirs, now, new).unwrap_or_else(|e| set_broken(server, &e));
        };
        self.ask_server(work).await
    }

    /// Stops waiting for peers. Returns those whose vector has not come since the start; `None` if the server was not waiting.
    ///
    /// # Errors
    /// If that is not on disk.
    pub async fn stop_waiting(&self, now: u64) -> Result<Option<Vec<String>>, LedgerError> {
        let new = Origin(name()?);
        let work = move |server: &mut Server| {
            server.stop_waiting(now, new).unwrap_or_else(|e| {
                set_broken(server, &e);
                None
            })
        };
        self.ask_server(work).await
    }

    /// Keeps updates for other servers, too, from now on.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn keep_for_peers(&self) -> Result<(), LedgerError> {
        let keep = |state: &mut State| state.counts_mut().settings.federation.for_peers = true;
        self.ask(keep).await
    }

    /// Skips the beginnings of histories that no longer count anywhere.
    ///
    /// # Errors
    /// If that is not on disk.
    pub async fn skip_past(&self, past: Vec<Past>, now: u64) -> Result<(), LedgerError> {
        self.ask_server(move |server| server.skip_past(&past, now)).await
    }

    /// Applies updates one after another, in one commit, up to the first that cannot be applied. Returns whether any of them was new.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_all(
        &self,
        updates: Vec<(Update, Arc<[u8]>)>,
        now: u64,
    ) -> Result<Result<bool, Refusal>, LedgerError> {
        let new = Origin(name()?);
        let work = move |server: &mut Server| {
            let mut any = false;
            for (update, bytes) in updates {
                any |= server.apply(&update, bytes, now, new)? == Applied::New;
            }
            Ok(any)
        };
        self.ask_server(work).await
    }

    /// Checks whether a snapshot with the vector `theirs` could be adopted.
    ///
    /// # Errors
    /// If the ledger is not available; the inner error is the reason for a refusal.
    pub async fn may_adopt(&self, theirs: Vector) -> Result<Result<(), Refusal>, LedgerError> {
        self.query(move |state| match state {
            State::Server(server) => server.may_adopt(&theirs),
            State::Cache(_) | State::Site(_) => Ok(()),
        })
        .await
    }
}
