// SPDX-License-Identifier: GPL-3.0-or-later
//! Counts under the key before, while a federation changes its key.
//!
//! A message is reported under one key, so its count is the sum of both. Networks are told apart by bits that follow from a key: those of
//! both keys may be the same ones, so the larger number stands.

use bulkmark_policy::{Backing, Backings, Counts, Sources, Weight};

/// Counts of a message under the key before, without this message, which is reported under the new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Earlier {
    /// How often it was seen.
    pub counts: Counts,
    /// Where these copies came from.
    pub backings: Backings,
    /// Counts below this are not known; none where all are.
    pub unknown_below: Option<u32>,
    /// Whether the administrator allowed its mailing.
    pub is_allowed: bool,
}

impl Earlier {
    /// The count of body signatures together.
    pub(super) fn body(&self, count: Option<u32>) -> Option<u32> {
        sum(count, self.counts.body)
    }

    /// The count of near signatures together.
    pub(super) fn near(&self, count: Option<u32>) -> Option<u32> {
        sum(count, self.counts.near)
    }

    /// The weight of user reports together.
    #[must_use]
    pub fn spam(&self, weight: Option<Weight>) -> Option<Weight> {
        sum(weight.map(Weight::units), self.counts.spam.map(Weight::units)).map(Weight::of_units)
    }

    /// The sources together. Those of the new key are asked for whenever the sum is high enough for it.
    pub(super) fn backings(&self, new: Backings) -> Backings {
        let Backings { messages, body, near } = self.backings;
        Backings {
            messages: sum(new.messages, messages),
            body: together(new.body, body),
            near: together(new.near, near),
        }
    }
}

/// The sum, as far as there are numbers.
fn sum(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn together(new: Backing, earlier: Backing) -> Backing {
    let (Backing::Known(new), Backing::Known(earlier)) = (new, earlier) else { return new };
    Backing::Known(Sources { others: new.others.max(earlier.others), own: sum(new.own, earlier.own) })
}
