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
    /// Refused messages that are no longer remembered.
    pub retries: Vec<RetryKey>,
    /// Updates from before this time can be deleted; `None` if all are kept.
    pub updates_before: Option<u64>,
    /// The time; `None` if it is not known.
    pub now: Option<u64>,
}
