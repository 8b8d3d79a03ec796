// SPDX-License-Identifier: GPL-3.0-or-later
//! What a server's ledger is told of other servers.

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

/// Why a server cannot go on: memory and file must be made to agree again.
fn broken(server: &mut Server, error: &ParameterError) {
    server.counts.broken = Some(format!("a new origin could not begin: {error}"));
}

impl Ledger {
    /// Whether a server still has to hear from peers since its start.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.shared.listens.load(Ordering::Relaxed)
    }

    /// A peer says how far it knows each origin. By that a server knows whether its file is an old copy, which others know more of.
    ///
    /// # Errors
    /// When what follows from it is not on disk.
    pub async fn hear(&self, peer: String, theirs: Vector, now: u64) -> Result<(), LedgerError> {
        let new = Origin(name()?);
        let work = move |server: &mut Server| {
            server.receive(&peer, &theirs, now, new).unwrap_or_else(|e| broken(server, &e));
        };
        self.ask_server(work).await
    }

    /// Waits for peers no longer. Returns those that said nothing since the start; none when nothing waits.
    ///
    /// # Errors
    /// When that is not on disk.
    pub async fn go_on(&self, now: u64) -> Result<Option<Vec<String>>, LedgerError> {
        let new = Origin(name()?);
        let work = move |server: &mut Server| {
            server.stop_waiting(now, new).unwrap_or_else(|e| {
                broken(server, &e);
                None
            })
        };
        self.ask_server(work).await
    }

    /// From now on updates are kept for other servers, too.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn keep_for_peers(&self) -> Result<(), LedgerError> {
        let keep = |state: &mut State| state.counts_mut().settings.federation.for_peers = true;
        self.ask(keep).await
    }

    /// Passes over the beginnings of histories that count nowhere any more.
    ///
    /// # Errors
    /// When that is not on disk.
    pub async fn pass_over(&self, past: Vec<Past>, now: u64) -> Result<(), LedgerError> {
        self.ask_server(move |server| server.skip_past(&past, now)).await
    }

    /// Applies updates one after another, in one commit, up to the first that cannot be applied. Whether any of them was new.
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

    /// Whether a snapshot of what `theirs` says could be taken.
    ///
    /// # Errors
    /// When the ledger is not available; the inner one says why not.
    pub async fn may_adopt(&self, theirs: Vector) -> Result<Result<(), Refusal>, LedgerError> {
        self.look(move |state| match state {
            State::Server(server) => server.may_adopt(&theirs),
            State::Cache(_) | State::Site(_) => Ok(()),
        })
        .await
    }
}
