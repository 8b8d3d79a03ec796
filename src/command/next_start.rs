// SPDX-License-Identifier: GPL-3.0-or-later
//! The effect of a daemon's next start on its ledger.

use super::daemon::Unsent;
use crate::control;
use bulkmark_counts::Role;
use bulkmark_ledger::{NextStart, OpenError};
use bulkmark_sync::Parameters;
use bulkmark_types::FederationKey;
use std::io;
use std::path::Path;

/// A daemon, according to its configuration.
pub(super) struct Daemon<'a> {
    pub(super) role: Role,
    pub(super) state_dir: &'a Path,
    pub(super) control: &'a Path,
    pub(super) key: &'a FederationKey,
}

/// Returns a line for the administrator if the ledger does not match the configuration; none if it does, or if this user cannot see it.
pub(super) fn warning(daemon: &Daemon<'_>) -> Option<String> {
    let directory = daemon.state_dir.display();
    let begins = |id: u64, unsent: u64| {
        format!(
            "at the next start the {} begins a new ledger: that in {directory} was made under another federation key ({id:016x} there, \
             {:016x} here), and will be kept beside it{}",
            daemon.role,
            daemon.key.id(),
            Unsent(unsent)
        )
    };
    match bulkmark_ledger::next_start(daemon.state_dir, daemon.role, daemon.key) {
        Ok(NextStart::Empty | NextStart::Fits) => None,
        Ok(NextStart::OtherKey { id, unsent }) => Some(begins(id, unsent)),
        Err(OpenError::InUse { .. }) => running(daemon).map(|(id, unsent)| begins(id, unsent)),
        Err(OpenError::Io { reason, .. }) if reason.kind() == io::ErrorKind::PermissionDenied => None,
        Err(e) => Some(format!("the {} will not start: {e}", daemon.role)),
    }
}

/// Returns the key id of the running daemon, if it is another, and the number of reports that no server accepted.
fn running(daemon: &Daemon<'_>) -> Option<(u64, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let status = runtime.block_on(control::status(daemon.control, 1)).ok()?;
    let (_, id) = Parameters::read(&status.parameters).ok()?;
    let next = Parameters::next_key(&status.parameters);
    let key = &daemon.key;
    let goes_on = id == key.id() || next == Some(key.id()) || key.next_id() == Some(id);
    (!goes_on).then_some((id, status.ledger.spool as u64))
}
