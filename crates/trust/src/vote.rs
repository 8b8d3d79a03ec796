// SPDX-License-Identifier: GPL-3.0-or-later
//! The vote of one reporter on a signature, with its weight.

use bulkmark_types::{ReporterId, UNIT};

/// The two possible reports on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It is spam: a nomination.
    Spam,
    /// It is not spam: a revocation.
    NotSpam,
}

/// The vote of one reporter on one signature in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// The reporter.
    pub reporter: ReporterId,
    /// Spam or not; `None` after a withdrawal.
    pub side: Option<Side>,
    /// Its weight at the time of the report, 0 to [`UNIT`].
    pub units: u8,
    /// Whether it contradicted the verdict: spam for a message that was not yet spam, or not spam for one that was.
    pub informative: bool,
    /// Whether its reporter was not yet established.
    pub newcomer: bool,
    /// Whether its reporter is a trap. Traps see no copies, so they do not count among the users who could object.
    pub trap: bool,
    /// The signature's count of mail at that time.
    pub seen: u32,
    /// Whether the message was spam after this report.
    pub spam_after: bool,
}

/// Bits of the first byte of a vote.
const SPAM: u8 = 1;
const NOT_SPAM: u8 = 2;
const INFORMATIVE: u8 = 4;
const NEWCOMER: u8 = 8;
const SPAM_AFTER: u8 = 16;
const TRAP: u8 = 32;

impl Vote {
    /// The number of bytes of [`encode`](Self::encode).
    pub const BYTES: usize = 6;

    /// Returns its bytes, without the reporter: bits, units, and `seen` with the least significant byte first.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let side = match self.side {
            Some(Side::Spam) => SPAM,
            Some(Side::NotSpam) => NOT_SPAM,
            None => 0,
        };
        let bit = |holds: bool, bit: u8| if holds { bit } else { 0 };
        let reporter = bit(self.newcomer, NEWCOMER) | bit(self.trap, TRAP);
        let bits = side | bit(self.informative, INFORMATIVE) | bit(self.spam_after, SPAM_AFTER) | reporter;
        let [a, b, c, d] = self.seen.to_le_bytes();
        [bits, self.units, a, b, c, d]
    }

    /// Reads a vote; `None` for values that none can have.
    #[must_use]
    pub fn decode(reporter: ReporterId, bytes: &[u8]) -> Option<Self> {
        let &[bits, units, a, b, c, d] = <&[u8; Self::BYTES]>::try_from(bytes).ok()?;
        let side = match bits & (SPAM | NOT_SPAM) {
            0 => None,
            SPAM => Some(Side::Spam),
            NOT_SPAM => Some(Side::NotSpam),
            _ => return None,
        };
        let known = bits < 2 * TRAP && u32::from(units) <= UNIT && (side.is_some() || units == 0);
        known.then_some(Self {
            reporter,
            side,
            units,
            informative: bits & INFORMATIVE != 0,
            newcomer: bits & NEWCOMER != 0,
            trap: bits & TRAP != 0,
            seen: u32::from_le_bytes([a, b, c, d]),
            spam_after: bits & SPAM_AFTER != 0,
        })
    }
}
