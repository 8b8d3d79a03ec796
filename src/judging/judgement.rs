// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of a message once it is judged.

use bulkmark_verdict::{Content, Finding, Outcome};

/// What became of a message.
#[derive(Debug)]
pub struct Judgement {
    /// How far the judging came.
    pub finding: Finding,
    /// What is to be done, and said.
    pub outcome: Outcome,
    /// What it says, where it was read.
    pub content: Option<Content>,
    /// Signatures that were reported for it.
    pub reported: usize,
}
