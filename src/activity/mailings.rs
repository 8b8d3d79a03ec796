// SPDX-License-Identifier: GPL-3.0-or-later
//! The present bulk mailings.

use super::recent::{Recent, Record};
use bulkmark_policy::{Action, Counts};
use bulkmark_signature::{Groups, Signatures};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};

/// Mailings that are kept; beyond that the one seen longest ago is dropped.
const MOST: usize = 1000;

/// Names of sender domains, and of clients, kept for a mailing.
const MOST_NAMES: usize = 5;

/// How long a mailing that does not come again is shown, in seconds.
const DAY: u64 = 86_400;

/// A bulk message.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// Its signatures.
    pub signatures: &'a Signatures,
    /// How often they were seen.
    pub counts: Counts,
    /// The subject, decoded.
    pub subject: Option<&'a str>,
    /// The action taken; none if a white list wants it.
    pub action: Option<Action>,
    /// The action that was only rehearsed, if so.
    pub would: Option<Action>,
    /// A white-list line that would match it.
    pub suggestion: Option<String>,
    /// Whether other machines may not know of it: private or outbound mail, or a site that withholds exact signatures.
    pub stays_here: bool,
}

/// Equal or similar bulk messages, as the page shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Mailing {
    /// The first signature of its first message, used as its name.
    pub signature: String,
    /// The highest count of one exact message.
    pub body: Option<u32>,
    /// The highest count of similar messages.
    pub near: Option<u32>,
    /// Messages that this daemon found to be bulk.
    pub messages: u64,
    /// The actions with their numbers; `wanted` if a white list matched.
    pub done: BTreeMap<String, u64>,
    /// The number of all recipients.
    pub recipients: u64,
    /// Clients that sent them, up to `MOST_NAMES`, if the configuration wants that.
    pub clients: Vec<String>,
    /// Whether there were more.
    pub more_clients: bool,
    /// A white-list line that would match messages without a match yet.
    pub suggestion: Option<String>,
    /// Time of the first message, in seconds since 1970.
    pub first: u64,
    /// Time of the last message.
    pub last: u64,
    /// Domains of their envelope senders, up to `MOST_NAMES`.
    pub domains: Vec<String>,
    /// Whether there were more.
    pub more_domains: bool,
    /// A hash by which equal subjects can be recognised without showing them.
    pub subject_hash: Option<String>,
    /// The last subject, if the configuration wants that.
    pub subject: Option<String>,
    /// Whether other machines may not know of some of its messages.
    #[serde(default)]
    pub stays_here: bool,
}

/// A mailing as it is stored over a restart.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StoredMailing {
    mailing: Mailing,
    /// The hashes by which its messages are recognised.
    found_by: Vec<u64>,
}

/// All bulk mailings.
#[derive(Debug)]
pub(super) struct Table {
    mailings: Mutex<Mailings>,
    wanted: Record,
    /// Keys of hashes, new at each start, so that nobody finds a subject by its hash.
    hashes: RandomState,
}

#[derive(Debug, Default)]
struct Mailings {
    groups: Groups,
    /// Mailings by the number of their group.
    all: HashMap<u64, Mailing>,
}

impl Table {
    pub(super) fn new(wanted: Record) -> Self {
        Self { mailings: Mutex::default(), wanted, hashes: RandomState::new() }
    }

    /// Adds a message, and returns the name of its mailing.
    pub(super) fn add(&self, seen: &Seen<'_>, recent: &Recent) -> String {
        let (domain, now) = (&*recent.domain, recent.at);
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
            done: BTreeMap::new(),
            recipients: 0,
            clients: Vec::new(),
            more_clients: false,
            suggestion: None,
            first: now,
            last: now,
            domains: Vec::new(),
            more_domains: false,
            subject_hash: None,
            subject: None,
            stays_here: false,
        });
        entry.body = entry.body.max(seen.counts.body);
        entry.near = entry.near.max(seen.counts.near);
        entry.messages += 1;
        entry.last = now;
        entry.subject_hash = hash;
        entry.subject = seen.subject.filter(|_| self.wanted.subjects).map(str::to_owned);
        let done = match (seen.would, seen.action) {
            (Some(would), _) => format!("would {would}"),
            (None, Some(action)) => action.to_string(),
            (None, None) => "wanted".to_owned(),
        };
        *entry.done.entry(done).or_default() += 1;
        entry.recipients += recent.nrcpt as u64;
        entry.suggestion.clone_from(&seen.suggestion);
        entry.stays_here |= seen.stays_here;
        note(&mut entry.domains, &mut entry.more_domains, domain);
        if let Some(client) = &recent.client {
            note(&mut entry.clients, &mut entry.more_clients, client);
        }
        entry.signature.clone()
    }

    /// Returns the mailings that are still shown, for the next start.
    pub(super) fn stored(&self, now: u64) -> Vec<StoredMailing> {
        let Mailings { groups, all } = &*self.mailings.lock();
        let shown = all.iter().filter(|(_, mailing)| mailing.last + DAY > now);
        let stored = |(&group, mailing): (_, &Mailing)| StoredMailing {
            // Hashes of this start cannot be compared with those of another.
            mailing: Mailing { subject_hash: None, ..mailing.clone() },
            found_by: groups.found_by(group).to_vec(),
        };
        shown.map(stored).collect()
    }

    /// Restores the mailings of an earlier start, without data that the configuration no longer wants.
    pub(super) fn restore(&self, stored: Vec<StoredMailing>) {
        let Mailings { groups, all } = &mut *self.mailings.lock();
        for StoredMailing { mut mailing, found_by } in stored.into_iter().take(MOST - all.len()) {
            if !self.wanted.subjects {
                mailing.subject = None;
            }
            if !self.wanted.clients {
                (mailing.clients, mailing.more_clients) = (Vec::new(), false);
            }
            all.insert(groups.restore(&found_by), mailing);
        }
    }

    /// Returns the `most` mailings with the highest counts.
    pub(super) fn top(&self, most: usize, now: u64) -> Vec<Mailing> {
        let mailings = self.mailings.lock();
        let mut top: Vec<_> = mailings.all.values().filter(|entry| entry.last + DAY > now).collect();
        top.sort_by_key(|entry| (std::cmp::Reverse(entry.body.max(entry.near)), entry.first));
        top.into_iter().take(most).cloned().collect()
    }
}

/// Adds a new name, up to `MOST_NAMES`.
fn note(names: &mut Vec<String>, more: &mut bool, name: &str) {
    if names.iter().any(|known| known == name) {
        return;
    }
    if names.len() < MOST_NAMES {
        names.push(name.to_owned());
    } else {
        *more = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_signature::near::Near;
    use bulkmark_types::Signature;

    fn body(n: u16) -> Signatures {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&n.to_le_bytes());
        Signatures { body: Ok(Signature::from_bytes(bytes)), near: Near::default(), canary: false }
    }

    fn add(table: &Table, n: u16, count: u32, domain: &str, now: u64) {
        let counts = Counts { body: Some(count), near: None, spam: None };
        let signatures = body(n);
        let (action, suggestion) = (Some(Action::Mark), Some(format!("host .{domain}")));
        let seen = Seen {
            signatures: &signatures,
            counts,
            subject: Some("Offer"),
            action,
            would: None,
            suggestion,
            stays_here: false,
        };
        let (domain, client) = (domain.to_owned(), Some("a [192.0.2.1]".to_owned()));
        table.add(&seen, &Recent { domain, client, nrcpt: 2, at: now, ..Recent::default() });
    }

    #[test]
    fn the_highest_counts_are_told_and_memory_is_bounded() {
        let table = Table::new(Record::default());
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
        assert_eq!((top[0].domains.len(), top[0].more_domains), (MOST_NAMES, true));
        assert_eq!((top[0].clients.len(), top[0].more_clients, top[0].recipients), (1, false, 20));
        assert_eq!((top[0].done["mark"], top[0].suggestion.as_deref()), (10, Some("host .8.example")));
        assert!(top[0].subject.is_none() && top[0].subject_hash.is_some());
        assert!(table.top(3, 4000 + DAY).is_empty());
    }

    /// Mailings stored by another start are recognised, with all or part of their data still shown.
    #[test]
    fn mailings_are_known_again_after_a_restart() {
        let record = Record { subjects: true, clients: true, ..Record::default() };
        let before = Table::new(record);
        add(&before, 1, 20, "a.example", 1000);
        add(&before, 2, 30, "b.example", 1000 + DAY);
        let stored = serde_json::to_vec(&before.stored(1000 + DAY)).unwrap();
        let after = |record| {
            let table = Table::new(record);
            table.restore(serde_json::from_slice(&stored).unwrap());
            table
        };
        let again = after(record);
        let kept = again.top(9, 1001 + DAY);
        assert_eq!((kept.len(), kept[0].subject.as_deref(), kept[0].clients.len()), (1, Some("Offer"), 1));
        add(&again, 2, 31, "b.example", 1002 + DAY);
        add(&again, 1, 21, "a.example", 1002 + DAY);
        let kept: Vec<_> = again.top(9, 1003 + DAY).iter().map(|mailing| mailing.messages).collect();
        assert_eq!(kept, [2, 1]);
        let hidden = after(Record::default()).top(9, 1001 + DAY);
        assert_eq!((hidden[0].subject.as_deref(), hidden[0].clients.len()), (None, 0));
    }
}
