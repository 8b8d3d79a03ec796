// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message tells the ledger.

use bulkmark_types::Signature;
use sha2::{Digest, Sha256};

/// "I saw these signatures": what a message adds to the ledger, and what it asks for.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was seen, once for each recipient, or what else counts as one.
    pub signatures: Vec<Signature>,
    /// What was seen once, to however many recipients the message goes.
    pub once: Vec<Signature>,
    /// What follows from counts that are known, and how often each is added; nothing where the whole message comes again. The
    /// answer does not tell their counts.
    pub also: Vec<(Signature, u32)>,
    /// Whether `also` follows from the counts of `signatures`, or of those of another report of this message: whoever has these
    /// can tell them.
    pub also_exact: bool,
    /// What is only asked for.
    pub asked: Vec<Signature>,
    /// How often `signatures` were seen; zero only asks.
    pub times: u32,
    /// For each time, who it was for, as far as the caller knows: those that were refused (`Ledger::refused`) within
    /// the last hour are not counted again.
    pub keys: Vec<RetryKey>,
    /// What of it goes to other servers, where there are any.
    pub shared: Shared,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}

/// What of a report goes to other servers. What does not is counted here alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shared {
    /// All of it.
    #[default]
    All,
    /// What was seen once, to however many recipients: no `body` signatures, and nothing that tells them.
    Once,
    /// Nothing.
    Nothing,
}

/// A signature that a report, or a user's word, adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    /// The signature, tagged where it is a word.
    pub signature: Signature,
    /// How often it is added.
    pub times: u32,
    /// Whether it goes to other servers.
    pub shared: bool,
}

impl Report {
    /// The additions of a report when so many of its times are those of a message that comes again.
    pub fn additions(&self, again: u32) -> impl Iterator<Item = Addition> {
        let each = self.times.saturating_sub(again);
        let once = u32::from(self.times > 0 && again == 0);
        let exact = self.shared == Shared::All;
        let near = self.shared != Shared::Nothing;
        let all =
            self.signatures.iter().map(move |&signature| Addition { signature, times: each, shared: exact });
        let all = all.chain(self.once.iter().map(move |&signature| Addition {
            signature,
            times: once,
            shared: near,
        }));
        let also = if each > 0 { &self.also[..] } else { &[] };
        let shared = if self.also_exact { exact } else { near };
        let also = also.iter().map(move |&(signature, times)| Addition { signature, times, shared });
        all.chain(also).filter(|addition| addition.times > 0)
    }

    /// What it asks for: the counts of these, in this order, are the answer.
    pub fn wanted(&self) -> impl Iterator<Item = Signature> {
        [&self.signatures, &self.once, &self.asked].into_iter().flatten().copied()
    }
}

/// Names one message to one recipient, over all tries of the same sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// The key that has these bytes on disk.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, as they are written to disk.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tells an exact signature stays where that signature stays.
    #[test]
    fn what_follows_from_an_exact_signature_is_shared_like_it() {
        let signature = |n| Signature::from_bytes([n; 16]);
        let shared = |shared, also_exact| {
            let report = Report {
                signatures: vec![signature(1)],
                once: vec![signature(2)],
                also: vec![(signature(3), 1)],
                also_exact,
                shared,
                times: 1,
                ..Report::default()
            };
            report.additions(0).map(|addition| addition.shared).collect::<Vec<_>>()
        };
        for also_exact in [false, true] {
            assert_eq!(shared(Shared::All, also_exact), [true; 3]);
            assert_eq!(shared(Shared::Once, also_exact), [false, true, !also_exact]);
            assert_eq!(shared(Shared::Nothing, also_exact), [false; 3]);
        }
    }
}
