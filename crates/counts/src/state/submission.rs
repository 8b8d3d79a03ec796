// SPDX-License-Identifier: GPL-3.0-or-later
//! Submissions of user reports, the rules for their weight, and their result.

pub use bulkmark_trust::Side;
use bulkmark_types::{ReporterId, Signature};

/// A reporter's report on the signatures of one message.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The reporter.
    pub reporter: ReporterId,
    /// Spam or not spam.
    pub side: Side,
    /// The signatures.
    pub nominations: Vec<Nominated>,
    /// The weight of a fully trusted trap, 1 to [`UNIT`](bulkmark_types::UNIT); `None` for a user. A withdrawal has the weight of the
    /// withdrawn report.
    pub trap: Option<u32>,
    /// The rules for its weight.
    pub weighing: Weighing,
    /// The message's subject if it may be stored, else empty.
    pub subject: String,
    /// Whether the reporter only withdraws previous reports.
    pub only_withdraws: bool,
    /// Whether the report counts only for signatures where it withdraws the opposite one.
    pub nothing_new: bool,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}

impl Default for Submission {
    /// Without signatures.
    fn default() -> Self {
        Self {
            reporter: ReporterId::from_bytes([0; 16]),
            side: Side::Spam,
            nominations: Vec::new(),
            trap: None,
            weighing: Weighing::default(),
            subject: String::new(),
            only_withdraws: false,
            nothing_new: false,
            now: 0,
        }
    }
}

/// One of the signatures of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nominated {
    /// The signature.
    pub of: Signature,
    /// Its [nomination](bulkmark_types::nomination).
    pub nomination: Signature,
    /// Whether it is shared with other servers.
    pub shared: bool,
}

/// The rules for weighing reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weighing {
    /// The weight of newcomers, and the weight from which on a message is spam.
    pub settings: bulkmark_trust::Settings,
    /// The weight of reports from other servers' users, in thousandths.
    pub thousandths: u32,
    /// The weight of a fully trusted trap.
    pub trap: u32,
}

/// The result of a submission, as numbers of signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The report was counted.
    pub counted: usize,
    /// The previous report was withdrawn.
    pub withdrawn: usize,
    /// The report was a repetition.
    pub known: usize,
    /// The reporter changed their mind too often.
    pub too_often: usize,
    /// There is no room to remember the reporter.
    pub no_room: usize,
    /// The report has no weight: it revokes no nomination, newcomers have reached their bound, or the reporter lost all trust.
    pub weightless: usize,
    /// The report would be new, but only withdrawals are accepted.
    pub left_out: usize,
    /// The sum of the weights of all counted reports, in units.
    pub units: u32,
}
