// SPDX-License-Identifier: GPL-3.0-or-later
//! Of what a count is made up.

use bulkmark_types::weigh;
use serde::{Deserialize, Serialize};

/// A part of a count: what one window holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// When the window begins, in seconds since 1970 (UTC).
    pub window: u64,
    /// The count in it.
    pub count: u32,
}

/// One share for each window in which there is a count, of several for a window.
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
    /// Of what this ledger counts itself, for each window in which it was seen.
    pub own: Vec<Share>,
    /// Of what others counted, all of them together.
    pub others: Vec<Share>,
    /// Reports of its own that no server's update holds yet.
    pub waiting: u32,
    /// Of user reports, how much of it reporters of this mail server said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub said: u32,
    /// How many reporters these are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reporters: u32,
    /// What a server counts, where only bulk is held here and it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Shares {
    /// The count.
    #[must_use]
    pub fn total(&self) -> u32 {
        let windows = self.own.iter().chain(&self.others);
        let known = windows.fold(self.waiting, |total, share| total.saturating_add(share.count));
        known.max(self.asked.unwrap_or(0))
    }

    /// The count of user reports, where the word of others' users weighs so many thousandths of that of one's own.
    #[must_use]
    pub fn weighed(&self, thousandths: u32) -> u32 {
        weigh(self.total(), self.said, thousandths)
    }
}
