// SPDX-License-Identifier: GPL-3.0-or-later
//! A message's report to the ledger.

use bulkmark_types::Signature;
use sha2::{Digest, Sha256};

/// "I saw these signatures": the additions of a message, and its questions.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Signatures that count once for each recipient, or for whatever else counts as one.
    pub signatures: Vec<Signature>,
    /// Signatures that count once, for however many recipients.
    pub once: Vec<Signature>,
    /// Signatures that follow from known counts, each with the number of times it is added; not added if the whole message is a retry. The
    /// answer does not include their counts.
    pub also: Vec<(Signature, u32)>,
    /// Whether `also` follows from the counts of `signatures`, or of those of another report of this message: it then reveals them.
    pub also_exact: bool,
    /// Signatures whose counts are only asked for.
    pub asked: Vec<Signature>,
    /// The number of times that `signatures` were seen; zero only asks.
    pub times: u32,
    /// One key for each time, if the caller knows the recipient: keys that were refused (`Ledger::refused`) within the last hour do not
    /// count again.
    pub keys: Vec<RetryKey>,
    /// The part that is shared with other servers, if there are any.
    pub shared: Shared,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}

/// The part of a report that is shared with other servers. The rest is counted only here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shared {
    /// All of it.
    #[default]
    All,
    /// Signatures that count once: no `body` signatures, and none that reveal them.
    Once,
    /// Nothing.
    Nothing,
}

/// A signature that a report of mail or of a user adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    /// The signature, tagged if it is a user report.
    pub signature: Signature,
    /// The number of times.
    pub times: u32,
    /// Whether it is shared with other servers.
    pub shared: bool,
}

impl Report {
    /// The additions of a report if `again` of its times are retries.
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

    /// The signatures whose counts are the answer, in this order.
    pub fn wanted(&self) -> impl Iterator<Item = Signature> {
        [&self.signatures, &self.once, &self.asked].into_iter().flatten().copied()
    }
}

/// Identifies one message to one recipient, over all tries of the same sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RetryKey([u8; 16]);

impl RetryKey {
    /// Made from fields that stay the same from one try to the next.
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

    /// The key with these bytes on disk.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes on disk.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures that reveal an exact signature are shared only if that one is.
    #[test]
    fn signatures_that_reveal_an_exact_one_are_shared_like_it() {
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
