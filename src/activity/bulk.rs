// SPDX-License-Identifier: GPL-3.0-or-later
//! The mailings that are bulk now.

use crate::policy::Counts;
use crate::signature::{Groups, Signatures};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// Mailings that are kept; beyond that the one that was not seen for longest goes.
const MOST: usize = 1000;

/// Sender domains of a mailing that are named.
const MOST_DOMAINS: usize = 5;

/// How long a mailing that does not come again is shown, in seconds.
const DAY: u64 = 86_400;

/// A message that is bulk.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its signatures.
    pub signatures: &'a Signatures,
    /// How often they were seen.
    pub counts: Counts,
    /// The subject, decoded.
    pub subject: Option<&'a str>,
}

/// Messages that are bulk and the same, or nearly so; for people.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Mailing {
    /// The first signature of the first of them, by which it is named.
    pub signature: String,
    /// How often exactly one of them was seen at most.
    pub body: Option<u32>,
    /// How often messages like it were seen at most.
    pub near: Option<u32>,
    /// Those of its messages that this daemon found to be bulk.
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
    mailings: Mutex<Mailings>,
    subjects: bool,
    /// Another one with each start, so that nobody finds a subject by its hash.
    hashes: RandomState,
}

#[derive(Debug, Default)]
struct Mailings {
    groups: Groups,
    /// By the number of the group.
    all: HashMap<u64, Mailing>,
}

impl Table {
    pub(super) fn new(subjects: bool) -> Self {
        Self { mailings: Mutex::default(), subjects, hashes: RandomState::new() }
    }

    /// Adds a message, and returns the name of its mailing.
    pub(super) fn add(&self, seen: &Seen<'_>, domain: &str, now: u64) -> String {
        let hash = seen.subject.map(|subject| format!("{:08x}", self.hashes.hash_one(subject) >> 32));
        let mut mailings = self.mailings.lock();
        let Mailings { groups, all } = &mut *mailings;
        let group = groups.add(seen.signatures).group;
        if all.len() >= MOST && !all.contains_key(&group) {
            let oldest = all.iter().min_by_key(|(_, entry)| entry.last).map(|(group, _)| *group);
            if let Some(oldest) = oldest {
                all.remove(&oldest);
                groups.forget(oldest);
            }
        }
        let entry = all.entry(group).or_insert_with(|| Mailing {
            signature: seen.signatures.reported().first().map(ToString::to_string).unwrap_or_default(),
            body: None,
            near: None,
            messages: 0,
            first: now,
            last: now,
            domains: Vec::new(),
            more_domains: false,
            subject_hash: None,
            subject: None,
        });
        entry.body = entry.body.max(seen.counts.body);
        entry.near = entry.near.max(seen.counts.near);
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
        entry.signature.clone()
    }

    /// The `most` with the highest counts.
    pub(super) fn top(&self, most: usize, now: u64) -> Vec<Mailing> {
        let mailings = self.mailings.lock();
        let mut top: Vec<_> = mailings.all.values().filter(|entry| entry.last + DAY > now).collect();
        top.sort_by_key(|entry| (std::cmp::Reverse(entry.body.max(entry.near)), entry.first));
        top.into_iter().take(most).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Signature;
    use crate::signature::near::Near;

    fn body(n: u16) -> Signatures {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&n.to_le_bytes());
        Signatures { body: Ok(Signature::from_bytes(bytes)), near: Near::default(), canary: false }
    }

    fn add(table: &Table, n: u16, count: u32, domain: &str, now: u64) {
        let counts = Counts { body: Some(count), near: None };
        table.add(&Seen { signatures: &body(n), counts, subject: Some("Offer") }, domain, now);
    }

    #[test]
    fn the_highest_counts_are_told_and_memory_is_bounded() {
        let table = Table::new(false);
        for n in 0..2000 {
            add(&table, n, 20 + u32::from(n % 7), "a.example", 1000 + u64::from(n));
        }
        for n in 0..9 {
            add(&table, 1999, 99, &format!("{n}.example"), 4000);
        }
        let kept = table.mailings.lock();
        assert_eq!((kept.all.len(), kept.groups.signatures()), (MOST, MOST));
        drop(kept);
        let top = table.top(3, 5000);
        assert_eq!((top.len(), top[0].body, top[0].messages), (3, Some(99), 10));
        assert_eq!((top[0].first, top[0].last), (2999, 4000));
        assert_eq!((top[0].domains.len(), top[0].more_domains), (MOST_DOMAINS, true));
        assert!(top[0].subject.is_none() && top[0].subject_hash.is_some());
        assert!(table.top(3, 4000 + DAY).is_empty());
    }
}
