// SPDX-License-Identifier: GPL-3.0-or-later
//! The parts of a count.

use bulkmark_types::weigh;
use serde::{Deserialize, Serialize};

/// The part of a count in one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The beginning of the window, in seconds since 1970 (UTC).
    pub window: u64,
    /// The count in it.
    pub count: u32,
}

/// Sums the shares of each window, and leaves out windows without a count.
pub fn add_up(shares: impl Iterator<Item = Share>) -> Vec<Share> {
    let mut sums: Vec<Share> = Vec::new();
    for share in shares.filter(|share| share.count > 0) {
        match sums.iter_mut().find(|sum| sum.window == share.window) {
            Some(sum) => sum.count = sum.count.saturating_add(share.count),
            None => sums.push(share),
        }
    }
    sums
}

/// The parts of a count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Shares {
    /// This ledger's own counts, by window.
    pub own: Vec<Share>,
    /// All others' counts, by window.
    pub others: Vec<Share>,
    /// Own reports that no server's update includes yet.
    pub waiting: u32,
    /// The part of user reports that reporters of this mail server made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub said: u32,
    /// The number of these reporters.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reporters: u32,
    /// The count of a server that was asked, if only bulk is held here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Shares {
    /// The whole count.
    #[must_use]
    pub fn total(&self) -> u32 {
        let windows = self.own.iter().chain(&self.others);
        let known = windows.fold(self.waiting, |total, share| total.saturating_add(share.count));
        known.max(self.asked.unwrap_or(0))
    }

    /// The count of user reports, where a report of others' users weighs `thousandths` of a local one.
    #[must_use]
    pub fn weighed(&self, thousandths: u32) -> u32 {
        weigh(self.total(), self.said, thousandths)
    }
}
