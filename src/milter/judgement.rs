// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of a message once it is judged.

use crate::verdict::{Content, Finding, Outcome};

/// What became of a message.
pub(super) struct Judgement {
    pub(super) finding: Finding,
    pub(super) outcome: Outcome,
    /// What it says, where it was read.
    pub(super) content: Option<Content>,
    /// Signatures that were reported for it.
    pub(super) reported: usize,
}
