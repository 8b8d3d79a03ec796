// SPDX-License-Identifier: GPL-3.0-or-later
//! The effect of a daemon's next start on its ledger.

use super::daemon::Unsent;
use super::show::called;
use crate::config::{ConfigError, Kind};
use crate::control::{self, DaemonStatus};
use bulkmark_counts::Role;
use bulkmark_ledger::{NextStart, OpenError};
use bulkmark_sync::Parameters;
use bulkmark_types::FederationKey;
use std::io;
use std::path::Path;

/// A daemon, according to its configuration.
pub(super) struct Daemon<'a> {
    pub(super) config: &'a Path,
    pub(super) kind: Kind,
    pub(super) role: Role,
    pub(super) state_dir: &'a Path,
    pub(super) control: &'a Path,
    pub(super) key: &'a FederationKey,
}

/// Returns a warning if the ledger has another key than the configuration; none if it has the same, or if this user cannot see it.
///
/// # Errors
/// If the daemon will not start with this ledger.
pub(super) fn warning(daemon: &Daemon<'_>) -> Result<Option<ConfigError>, ConfigError> {
    let about = |message| ConfigError::file(daemon.config, message);
    let directory = daemon.state_dir.display();
    let wont_start = |error: &OpenError| about(format!("the daemon will not start: {error}"));
    let begins = |id: u64, unsent: u64| {
        format!(
            "at the next start the {} begins a new ledger: that in {directory} was made under another federation key ({id:016x} there, \
             {:016x} here), and will be kept beside it{}",
            called(daemon.kind.name()),
            daemon.key.id(),
            Unsent(unsent)
        )
    };
    match bulkmark_ledger::next_start(daemon.state_dir, daemon.role, daemon.key) {
        Ok(NextStart::Empty | NextStart::Fits) => Ok(None),
        Ok(NextStart::OtherKey { id, unsent }) => Ok(Some(about(begins(id, unsent)))),
        Err(OpenError::InUse { .. }) => {
            let Some(status) = running(daemon) else { return Ok(None) };
            // After an upgrade, the running daemon is of another version.
            if let Some(Err(e)) = status.ledger_format.as_ref().map(|format| format.check(daemon.state_dir)) {
                return Err(wont_start(&e));
            }
            Ok(other_key(daemon, &status).map(|(id, unsent)| about(begins(id, unsent))))
        }
        Err(OpenError::Io { reason, .. }) if reason.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(e) => Err(wont_start(&e)),
    }
}

/// Returns the status of the running daemon, which holds the ledger.
fn running(daemon: &Daemon<'_>) -> Option<DaemonStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(control::status(daemon.control, 1)).ok()
}

/// Returns the key id of the running daemon, if it is another, and the number of reports that no server accepted.
fn other_key(daemon: &Daemon<'_>, status: &DaemonStatus) -> Option<(u64, u64)> {
    let (_, id) = Parameters::read(&status.parameters).ok()?;
    let next = Parameters::next_key(&status.parameters);
    let key = &daemon.key;
    let goes_on = id == key.id() || next == Some(key.id()) || key.next_id() == Some(id);
    (!goes_on).then_some((id, status.ledger.spool as u64))
}
