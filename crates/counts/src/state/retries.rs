// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages that were refused temporarily, which must not be counted again when they return.

use crate::state::changes::Changes;
use crate::state::report::{Report, RetryKey};
use std::collections::{BTreeSet, HashMap};

/// Seconds for which a refused message is remembered. Senders try again within minutes; an hour covers the third try.
const REMEMBERED_FOR: u64 = 3600;

/// The most refused messages that are remembered, about 5 MB; the oldest are forgotten first.
const MAX_REMEMBERED: usize = 100_000;

/// The remembered keys, each with the time of its last refusal.
#[derive(Default)]
pub struct Retries {
    refused: HashMap<RetryKey, u64>,
    /// The same, by time.
    order: BTreeSet<(u64, RetryKey)>,
}

impl Retries {
    /// Whether `key` was refused within the last hour.
    fn contains(&self, key: &RetryKey, now: u64) -> bool {
        self.refused.get(key).is_some_and(|&at| now.abs_diff(at) <= REMEMBERED_FOR)
    }

    /// Remembers one message as refused at the time `now`.
    pub fn remember(&mut self, key: RetryKey, now: u64) {
        if let Some(before) = self.refused.insert(key, now) {
            self.order.remove(&(before, key));
        }
        self.order.insert((now, key));
    }

    /// Returns the number of a report's times that are retries.
    pub fn again(&mut self, changes: &mut Changes, report: &Report) -> u32 {
        self.expire(changes, report.now);
        let again = report.keys.iter().filter(|key| self.contains(key, report.now)).count();
        u32::try_from(again).unwrap_or(u32::MAX)
    }

    /// Remembers messages that are refused now.
    pub fn remember_all(&mut self, changes: &mut Changes, keys: Vec<RetryKey>, now: u64) {
        for key in keys {
            self.remember(key, now);
            changes.refused.insert(key, Some(now));
        }
        self.expire(changes, now);
    }

    /// Forgets expired messages, here and on disk. That must not wait for a checkpoint: a ledger whose counts do not change makes none.
    fn expire(&mut self, changes: &mut Changes, now: u64) {
        changes.refused.extend(self.take_expired(now).into_iter().map(|key| (key, None)));
    }

    /// The number of remembered messages.
    pub fn remembered(&self) -> usize {
        self.refused.len()
    }

    /// Takes out expired messages.
    pub fn take_expired(&mut self, now: u64) -> Vec<RetryKey> {
        let mut expired = Vec::new();
        let is_over = |&(at, _): &(u64, RetryKey)| now.abs_diff(at) > REMEMBERED_FOR;
        while self.order.len() > MAX_REMEMBERED || self.order.first().is_some_and(is_over) {
            expired.extend(self.order.pop_first());
        }
        // A clock that was ahead leaves entries in the future.
        while self.order.last().is_some_and(is_over) {
            expired.extend(self.order.pop_last());
        }
        let keys: Vec<RetryKey> = expired.into_iter().map(|(_, key)| key).collect();
        keys.iter().for_each(|key| {
            self.refused.remove(key);
        });
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_for_an_hour() {
        let mut retries = Retries::default();
        let [a, b] = [RetryKey::new(&[b"a", b""]), RetryKey::new(&[b"", b"a"])];
        assert_ne!(a, b);
        retries.remember(a, 1000);
        retries.remember(b, 1000);
        retries.remember(a, 2000);
        assert!(retries.contains(&b, 4600) && !retries.contains(&b, 4601));
        assert_eq!(retries.take_expired(4601), [b]);
        assert!(retries.contains(&a, 5600));
        assert_eq!(retries.take_expired(5601), [a]);
        assert_eq!(retries.remembered(), 0);
    }

    #[test]
    fn is_bounded() {
        let mut retries = Retries::default();
        for i in 0..MAX_REMEMBERED + 10 {
            retries.remember(RetryKey::new(&[&i.to_le_bytes()]), 5);
        }
        assert_eq!(retries.take_expired(5).len(), 10);
        assert_eq!(retries.remembered(), MAX_REMEMBERED);
    }
}
