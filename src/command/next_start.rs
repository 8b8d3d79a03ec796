// SPDX-License-Identifier: GPL-3.0-or-later
//! What the next start of a daemon will do with its ledger, told before it does.

use super::daemon::Unsent;
use crate::control;
use bulkmark_counts::Role;
use bulkmark_ledger::{NextStart, OpenError};
use bulkmark_sync::Parameters;
use bulkmark_types::FederationKey;
use std::io;
use std::path::Path;

/// A daemon, as its configuration has it.
pub(super) struct Daemon<'a> {
    pub(super) role: Role,
    pub(super) state_dir: &'a Path,
    pub(super) control: &'a Path,
    pub(super) key: &'a FederationKey,
}

/// A line for the administrator if the ledger that is there was made otherwise than the configuration says; none if it goes on, and
/// if this user cannot see it.
pub(super) fn warning(of: &Daemon<'_>) -> Option<String> {
    let directory = of.state_dir.display();
    let begins = |id: u64, unsent: u64| {
        format!(
            "at the next start the {} begins a new ledger: that in {directory} was made under another federation key ({id:016x} there, \
             {:016x} here), and will be kept beside it{}",
            of.role,
            of.key.id(),
            Unsent(unsent)
        )
    };
    match bulkmark_ledger::next_start(of.state_dir, of.role, of.key) {
        Ok(NextStart::Empty | NextStart::Fits) => None,
        Ok(NextStart::OtherKey { id, unsent }) => Some(begins(id, unsent)),
        Err(OpenError::InUse { .. }) => running(of).map(|(id, unsent)| begins(id, unsent)),
        Err(OpenError::Io { reason, .. }) if reason.kind() == io::ErrorKind::PermissionDenied => None,
        Err(e) => Some(format!("the {} will not start: {e}", of.role)),
    }
}

/// The number of the key of the daemon that runs, if it is another, and the reports that no server took.
fn running(of: &Daemon<'_>) -> Option<(u64, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let status = runtime.block_on(control::status(of.control, 1)).ok()?;
    let (_, id) = Parameters::read(&status.parameters).ok()?;
    let next = Parameters::next_key(&status.parameters);
    let goes_on = id == of.key.id() || next == Some(of.key.id()) || of.key.next_id() == Some(id);
    (!goes_on).then_some((id, status.ledger.spool as u64))
}
