// SPDX-License-Identifier: GPL-3.0-or-later
//! State that has expired, for a checkpoint to delete.

use crate::history::window::Window;
use crate::state::report::RetryKey;

/// Windows, refused messages and updates that are no longer needed.
#[derive(Default)]
pub struct Expired {
    /// Windows of own counts.
    pub local: Vec<Window>,
    /// Windows of merged counts.
    pub merged: Vec<Window>,
    /// Windows of the list of bulk.
    pub held: Vec<Window>,
    /// Refused messages that need no longer be remembered.
    pub retries: Vec<RetryKey>,
    /// Updates that came before this time need not be kept for others; none says that all are kept.
    pub updates_before: Option<u64>,
    /// The time; none when nobody told it.
    pub now: Option<u64>,
}
