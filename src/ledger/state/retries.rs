// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages that were refused for the moment and will come again: they must not be counted again.

use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};

/// Seconds for which a refused message is remembered. Senders try again within minutes; an hour covers the third try.
const REMEMBERED_FOR: u64 = 3600;

/// Refused messages that are remembered at most, about 5 MB; the oldest are forgotten first.
const MAX_REMEMBERED: usize = 100_000;

/// Names one message to one recipient, over all tries of the same sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryKey([u8; 16]);

impl RetryKey {
    /// From whatever stays the same from one try to the next.
    #[must_use]
    pub fn new(fields: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for field in fields {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        let digest = hash.finalize();
        Self(std::array::from_fn(|i| digest[i]))
    }

    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The remembered keys and when each was refused last.
#[derive(Default)]
pub(crate) struct Retries {
    refused: HashMap<RetryKey, u64>,
    /// In the order of refusal; a key that was refused again stands here more than once.
    order: VecDeque<(u64, RetryKey)>,
}

impl Retries {
    /// Whether `key` was refused within the last hour.
    pub(crate) fn contains(&self, key: &RetryKey, now: u64) -> bool {
        self.refused.get(key).is_some_and(|&at| now.abs_diff(at) <= REMEMBERED_FOR)
    }

    pub(crate) fn remember(&mut self, key: RetryKey, now: u64) {
        self.refused.insert(key, now);
        self.order.push_back((now, key));
    }

    pub(crate) fn len(&self) -> usize {
        self.refused.len()
    }

    /// Takes out what need not be remembered any more.
    pub(crate) fn take_expired(&mut self, now: u64) -> Vec<RetryKey> {
        let mut expired = Vec::new();
        while let Some(&(at, key)) = self.order.front() {
            if self.order.len() <= MAX_REMEMBERED && now.abs_diff(at) <= REMEMBERED_FOR {
                break;
            }
            self.order.pop_front();
            if self.refused.get(&key) == Some(&at) {
                self.refused.remove(&key);
                expired.push(key);
            }
        }
        expired
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
        assert_eq!(retries.len(), 0);
    }

    #[test]
    fn is_bounded() {
        let mut retries = Retries::default();
        for i in 0..MAX_REMEMBERED + 10 {
            retries.remember(RetryKey::new(&[&i.to_le_bytes()]), 5);
        }
        assert_eq!(retries.take_expired(5).len(), 10);
        assert_eq!(retries.len(), MAX_REMEMBERED);
    }
}
