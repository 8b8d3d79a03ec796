// SPDX-License-Identifier: GPL-3.0-or-later
//! What somebody says of a message, how it is weighed, and what became of it.

pub use bulkmark_trust::Side;
use bulkmark_types::{ReporterId, Signature};

/// What somebody says of the signatures of one message.
#[derive(Debug, Clone)]
pub struct Saying {
    /// Who.
    pub reporter: ReporterId,
    /// What.
    pub side: Side,
    /// Of what.
    pub nominations: Vec<Nominated>,
    /// Of a trap, what its word weighs, 1 to [`UNIT`](bulkmark_types::UNIT), where it is trusted; none of a user. What is taken back weighs what it weighed.
    pub trap: Option<u32>,
    /// By which rules it is weighed.
    pub weighing: Weighing,
    /// The message's subject, where that may be kept; else nothing.
    pub subject: String,
    /// Whether they only take back what they said before.
    pub only_back: bool,
    /// Whether what they say counts only where it takes back the opposite.
    pub nothing_new: bool,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}

impl Default for Saying {
    /// Of nothing.
    fn default() -> Self {
        Self {
            reporter: ReporterId::from_bytes([0; 16]),
            side: Side::Spam,
            nominations: Vec::new(),
            trap: None,
            weighing: Weighing::default(),
            subject: String::new(),
            only_back: false,
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
    /// Whether other servers are told.
    pub shared: bool,
}

/// How words are weighed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weighing {
    /// What newcomers weigh, and from which weight on it is spam.
    pub settings: bulkmark_trust::Settings,
    /// The weight of what others' users say, in thousandths.
    pub thousandths: u32,
    /// What the word of a trap weighs that is trusted.
    pub trap: u32,
}

/// What became of it, by the number of signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// Their word was counted.
    pub counted: usize,
    /// What they said before was taken back.
    pub taken_back: usize,
    /// They had said so before.
    pub known: usize,
    /// They changed their mind too often.
    pub too_often: usize,
    /// There is no room to remember who said it.
    pub no_room: usize,
    /// Their word weighs nothing: nobody nominated what they revoke, newcomers said as much as they may, or they lost all trust.
    pub weightless: usize,
    /// It would be new, and nothing new is heard of them.
    pub left_out: usize,
    /// What all that was counted weighs together, in units.
    pub units: u32,
}
