// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message tells the ledger.

use crate::signature::Signature;
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
    /// What is only asked for.
    pub asked: Vec<Signature>,
    /// How often `signatures` were seen; zero only asks.
    pub times: u32,
    /// For each time, who it was for, as far as the caller knows: those that were [refused](crate::ledger::Ledger::refused) within
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
    /// All but `signatures`.
    Inexact,
    /// `once` alone.
    Once,
    /// Nothing.
    Nothing,
}

impl Report {
    /// What is added, and how often, when so many of its times are those of a message that comes again.
    pub(crate) fn additions(&self, again: u32) -> impl Iterator<Item = (Signature, u32)> {
        let each = self.times.saturating_sub(again);
        let once = u32::from(self.times > 0 && again == 0);
        let all = self.signatures.iter().map(move |&signature| (signature, each));
        let all = all.chain(self.once.iter().map(move |&signature| (signature, once)));
        let also = if each > 0 { &self.also[..] } else { &[] };
        all.chain(also.iter().copied()).filter(|&(_, times)| times > 0)
    }

    /// Whether this signature goes to other servers.
    pub(crate) fn is_shared(&self, signature: Signature) -> bool {
        match self.shared {
            Shared::All => true,
            Shared::Inexact => !self.signatures.contains(&signature),
            Shared::Once => self.once.contains(&signature),
            Shared::Nothing => false,
        }
    }

    /// What it asks for: the counts of these, in this order, are the answer.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Signature> {
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

    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_for_others_stays() {
        let signature = |n| Signature::from_bytes([n; 16]);
        let report = |shared| Report {
            signatures: vec![signature(1)],
            once: vec![signature(2)],
            also: vec![(signature(3), 1)],
            times: 1,
            shared,
            ..Report::default()
        };
        let shared = |of| [1, 2, 3].map(|n| report(of).is_shared(signature(n)));
        assert_eq!(shared(Shared::All), [true, true, true]);
        assert_eq!(shared(Shared::Inexact), [false, true, true]);
        assert_eq!(shared(Shared::Once), [false, true, false]);
        assert_eq!(shared(Shared::Nothing), [false, false, false]);
    }
}
