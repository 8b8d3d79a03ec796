// SPDX-License-Identifier: GPL-3.0-or-later
//! Counts under the old key, while a federation changes its key.
//!
//! Each message is reported under one key only, so its count is the sum of both. The bits that distinguish networks depend on the key, so the
//! same network can be among those of both keys: the larger number of networks is used, not the sum.

use bulkmark_policy::{Allowed, Backing, Backings, Counts, Sources, Weight};

/// The counts of a message under the old key, without this message, which is reported under the new key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldKeyCounts {
    /// Its counts.
    pub counts: Counts,
    /// The sources of these copies.
    pub backings: Backings,
    /// The bound below which counts are unknown; `None` if all are known.
    pub unknown_below: Option<u32>,
    /// By whose order its mailing is allowed, by a signature under the old key.
    pub allowed: Option<Allowed>,
}

impl OldKeyCounts {
    /// The body count under both keys. `count` is the one under the new key.
    pub(super) fn body(&self, count: Option<u32>) -> Option<u32> {
        sum(count, self.counts.body)
    }

    /// The near count under both keys.
    pub(super) fn near(&self, count: Option<u32>) -> Option<u32> {
        sum(count, self.counts.near)
    }

    /// The weight of user reports under both keys.
    #[must_use]
    pub fn spam(&self, weight: Option<Weight>) -> Option<Weight> {
        sum(weight.map(Weight::units), self.counts.spam.map(Weight::units)).map(Weight::of_units)
    }

    /// The sources under both keys. Those under the new key are looked up whenever the sum of the counts is high enough.
    pub(super) fn backings(&self, new: Backings) -> Backings {
        let Backings { messages, body, near } = self.backings;
        Backings {
            messages: sum(new.messages, messages),
            body: sources_of_both(new.body, body),
            near: sources_of_both(new.near, near),
        }
    }
}

/// The sum of the numbers that are known.
fn sum(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn sources_of_both(new: Backing, old: Backing) -> Backing {
    let (Backing::Known(new), Backing::Known(old)) = (new, old) else { return new };
    Backing::Known(Sources { others: new.others.max(old.others), own: sum(new.own, old.own) })
}
