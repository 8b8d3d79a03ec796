// SPDX-License-Identifier: GPL-3.0-or-later
//! The number of messages by count.

use super::archive::Label;
use bulkmark_policy::Counts;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The count from which on counts are no longer distinguished.
pub(super) const MAX: u32 = 10_000;

/// Messages by their count.
#[derive(Debug, Clone)]
struct Histogram(Vec<u64>);

impl Histogram {
    fn new() -> Self {
        Self(vec![0; MAX as usize + 1])
    }

    fn add(&mut self, count: u32) {
        self.0[count.min(MAX) as usize] += 1;
    }

    /// Returns the number of messages with this count or a higher one.
    fn from(&self, threshold: u32) -> u64 {
        self.0[threshold.min(MAX) as usize..].iter().sum()
    }
}

/// All messages that were counted.
#[derive(Debug)]
pub(super) struct Tally {
    /// For each label, messages that are not whitelisted, by the higher of the two counts.
    any: [Histogram; 3],
    /// All messages by the count of the body.
    body: Histogram,
    /// Whitelisted messages, by the higher of the two counts.
    wanted: Histogram,
    /// The highest count of each sender's messages.
    senders: HashMap<u64, u32>,
}

/// The messages that reached a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    /// By label.
    pub(super) labels: [u64; 3],
    pub(super) body: u64,
    pub(super) whitelisted: u64,
}

impl Reached {
    pub(super) const fn messages(&self) -> u64 {
        self.labels[0] + self.labels[1] + self.labels[2]
    }
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            any: std::array::from_fn(|_| Histogram::new()),
            body: Histogram::new(),
            wanted: Histogram::new(),
            senders: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, counts: Counts, label: Label, sender: &str, whitelisted: bool) {
        let any = counts.body.max(counts.near).unwrap_or(0);
        if whitelisted {
            self.wanted.add(any);
            return;
        }
        self.any[label.index()].add(any);
        self.body.add(counts.body.unwrap_or(0));
        let mut hasher = DefaultHasher::new();
        sender.hash(&mut hasher);
        let highest = self.senders.entry(hasher.finish()).or_default();
        *highest = any.max(*highest);
    }

    pub(super) fn reached(&self, threshold: u32) -> Reached {
        Reached {
            labels: std::array::from_fn(|label| self.any[label].from(threshold)),
            body: self.body.from(threshold),
            whitelisted: self.wanted.from(threshold),
        }
    }

    /// Returns the number of senders of messages that reached this threshold.
    pub(super) fn senders(&self, threshold: u32) -> u64 {
        self.senders.values().filter(|&&count| count >= threshold).count() as u64
    }

    /// Returns the highest count of a message that is not whitelisted.
    pub(super) fn peak(&self) -> u32 {
        self.senders.values().copied().max().unwrap_or(0)
    }
}
