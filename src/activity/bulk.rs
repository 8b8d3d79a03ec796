// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures that are bulk now.

use crate::signature::Signature;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

/// Signatures that are kept; beyond that the one that was not seen for longest goes.
const MOST: usize = 1000;

/// Sender domains of a signature that are named.
const MOST_DOMAINS: usize = 5;

/// How long a signature that does not come again is shown, in seconds.
const DAY: u64 = 86_400;

/// A message that is bulk.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its signature: that by which it is bulk.
    pub signature: Signature,
    /// Which kind that is: "body" or "near".
    pub kind: &'static str,
    /// How often that was seen.
    pub count: u32,
    /// The subject, decoded.
    pub subject: Option<&'a str>,
}

/// A signature that is bulk, for people.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BulkSignature {
    /// The signature.
    pub signature: String,
    /// "body" or "near".
    pub kind: &'static str,
    /// How often it was seen when it was seen last.
    pub count: u32,
    /// Messages with it that this daemon found to be bulk.
    pub messages: u64,
    /// When the first of them came, in seconds since 1970.
    pub first: u64,
    /// When the last did.
    pub last: u64,
    /// The domains of their envelope senders, as far as they are kept.
    pub domains: Vec<String>,
    /// Whether there were more.
    pub more_domains: bool,
    /// By which equal subjects are told, without telling them.
    pub subject_hash: Option<String>,
    /// The last subject, where the configuration wants that.
    pub subject: Option<String>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Table {
    signatures: Mutex<HashMap<Signature, BulkSignature>>,
    subjects: bool,
    /// Another one with each start, so that nobody finds a subject by its hash.
    hashes: RandomState,
}

impl Table {
    pub(super) fn new(subjects: bool) -> Self {
        Self { signatures: Mutex::default(), subjects, hashes: RandomState::new() }
    }

    pub(super) fn add(&self, seen: &Seen<'_>, domain: &str, now: u64) {
        let hash = seen.subject.map(|subject| format!("{:08x}", self.hashes.hash_one(subject) >> 32));
        let mut signatures = self.signatures.lock().unwrap_or_else(PoisonError::into_inner);
        if signatures.len() >= MOST && !signatures.contains_key(&seen.signature) {
            let oldest =
                signatures.iter().min_by_key(|(_, entry)| entry.last).map(|(signature, _)| *signature);
            oldest.and_then(|oldest| signatures.remove(&oldest));
        }
        let entry = signatures.entry(seen.signature).or_insert_with(|| BulkSignature {
            signature: seen.signature.to_string(),
            kind: seen.kind,
            count: 0,
            messages: 0,
            first: now,
            last: now,
            domains: Vec::new(),
            more_domains: false,
            subject_hash: None,
            subject: None,
        });
        entry.count = seen.count;
        entry.messages += 1;
        entry.last = now;
        entry.subject_hash = hash;
        entry.subject = seen.subject.filter(|_| self.subjects).map(str::to_owned);
        if !entry.domains.iter().any(|known| known == domain) {
            if entry.domains.len() < MOST_DOMAINS {
                entry.domains.push(domain.to_owned());
            } else {
                entry.more_domains = true;
            }
        }
    }

    /// The `most` with the highest counts.
    pub(super) fn top(&self, most: usize, now: u64) -> Vec<BulkSignature> {
        let signatures = self.signatures.lock().unwrap_or_else(PoisonError::into_inner);
        let mut top: Vec<_> = signatures.values().filter(|entry| entry.last + DAY > now).collect();
        top.sort_by_key(|entry| (std::cmp::Reverse(entry.count), entry.first));
        top.into_iter().take(most).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(n: u16, count: u32) -> Seen<'static> {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&n.to_le_bytes());
        Seen { signature: Signature::from_bytes(bytes), kind: "body", count, subject: Some("Offer") }
    }

    #[test]
    fn the_highest_counts_are_told_and_memory_is_bounded() {
        let table = Table::new(false);
        for n in 0..2000 {
            table.add(&seen(n, 20 + u32::from(n % 7)), "a.example", 1000 + u64::from(n));
        }
        for n in 0..9 {
            table.add(&seen(1999, 99), &format!("{n}.example"), 4000);
        }
        assert_eq!(table.signatures.lock().unwrap().len(), MOST);
        let top = table.top(3, 5000);
        assert_eq!((top.len(), top[0].count, top[0].messages), (3, 99, 10));
        assert_eq!((top[0].first, top[0].last), (2999, 4000));
        assert_eq!((top[0].domains.len(), top[0].more_domains), (MOST_DOMAINS, true));
        assert!(top[0].subject.is_none() && top[0].subject_hash.is_some());
        assert!(table.top(3, 4000 + DAY).is_empty());
    }
}
