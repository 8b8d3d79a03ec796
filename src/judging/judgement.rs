// SPDX-License-Identifier: GPL-3.0-or-later
//! A judged message.

use bulkmark_verdict::{Content, Finding, Outcome};

/// The judgement of a message.
#[derive(Debug)]
pub struct Judgement {
    /// The finding.
    pub finding: Finding,
    /// The outcome.
    pub outcome: Outcome,
    /// Its content, if it was read.
    pub content: Option<Content>,
    /// The number of signatures that were reported for it.
    pub reported: usize,
    /// The name of its mailing on the page, if it is bulk and the page has it.
    pub mailing: Option<String>,
}
