// SPDX-License-Identifier: GPL-3.0-or-later
//! Groups of messages that share a `body` signature or enough `near` signatures. They serve displays for people; verdicts depend on counts
//! alone.

use super::message::Signatures;
use bulkmark_types::Signature;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Signatures kept for one group. Copies that differ bring new ones without end.
const MOST_OF_ONE: usize = 256;

/// Slots whose passages must agree with a group.
const AGREEING: usize = 2;

/// Numbered groups of messages. Half of each signature's bits are kept.
#[derive(Debug, Default)]
pub struct Groups {
    of: HashMap<u64, u64>,
    members: HashMap<u64, Vec<u64>>,
    next: u64,
}

/// The group of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The group's number; numbers of new groups grow.
    pub group: u64,
    /// Whether its body equals that of an earlier message.
    pub exact: bool,
}

impl Groups {
    /// Finds the group of a message, or starts one.
    pub fn add(&mut self, signatures: &Signatures) -> Membership {
        let body = signatures.body.ok().and_then(|signature| self.find(signature));
        let group = body.or_else(|| self.by_near(signatures)).unwrap_or(self.next);
        self.next = self.next.max(group + 1);
        for signature in signatures.reported() {
            let members = self.members.entry(group).or_default();
            if members.len() < MOST_OF_ONE && !self.of.contains_key(&half(signature)) {
                members.push(half(signature));
                self.of.insert(half(signature), group);
            }
        }
        Membership { group, exact: body.is_some() }
    }

    /// The number of signatures by which all groups are found.
    #[must_use]
    pub fn signatures(&self) -> usize {
        self.of.len()
    }

    /// Forgets a group. A later message of it starts another.
    pub fn forget(&mut self, group: u64) {
        for signature in self.members.remove(&group).unwrap_or_default() {
            self.of.remove(&signature);
        }
    }

    /// The halves of signatures by which a group is found.
    #[must_use]
    pub fn found_by(&self, group: u64) -> &[u64] {
        self.members.get(&group).map_or(&[], Vec::as_slice)
    }

    /// Recreates a group from these halves, except halves that belong to another group. Returns its number.
    pub fn restore(&mut self, found_by: &[u64]) -> u64 {
        let group = self.next;
        self.next += 1;
        let new = found_by.iter().take(MOST_OF_ONE).filter(|half| !self.of.contains_key(half));
        let new: Vec<_> = new.copied().collect();
        self.of.extend(new.iter().map(|&half| (half, group)));
        self.members.insert(group, new);
        group
    }

    fn find(&self, signature: Signature) -> Option<u64> {
        self.of.get(&half(signature)).copied()
    }

    /// The group to which most slots of a message lead, or its attachments or links.
    fn by_near(&self, signatures: &Signatures) -> Option<u64> {
        let near = &signatures.near;
        if let Some(thing) = near.things.iter().find_map(|(_, signature)| self.find(*signature)) {
            return Some(thing);
        }
        let mut votes: Vec<(u64, usize)> = Vec::new();
        for slot in &near.slots {
            let Some(group) = slot.passages.iter().find_map(|(_, signature)| self.find(*signature)) else {
                continue;
            };
            match votes.iter_mut().find(|(known, _)| *known == group) {
                Some((_, votes)) => *votes += 1,
                None => votes.push((group, 1)),
            }
        }
        // The older group wins a tie.
        let most = votes.into_iter().min_by_key(|&(group, votes)| (Reverse(votes), group));
        most.filter(|&(_, votes)| votes >= AGREEING).map(|(group, _)| group)
    }
}

/// Half of a signature, which distinguishes millions of them.
fn half(signature: Signature) -> u64 {
    (signature.bits() >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, signatures};
    use bulkmark_mail::RawMessage;
    use bulkmark_types::FederationKey;

    fn of(text: &str) -> Signatures {
        let raw = RawMessage::from_bytes(format!("Subject: x\n\n{text}\n").as_bytes());
        signatures(&raw, &FederationKey::public(), &Settings::default())
    }

    const LETTER: &str = "the autumn prices are here for all of our guests who come by train or ship or on foot to \
                          the harbour on thursday when the first of the new boats will be shown to everybody";

    #[test]
    fn copies_and_replicas_belong_together() {
        let mut groups = Groups::default();
        let first = groups.add(&of(LETTER));
        assert!(!first.exact);
        assert_eq!(groups.add(&of(LETTER)), Membership { exact: true, ..first });
        assert_eq!(groups.add(&of(&format!("Dear Anna,\n{LETTER}"))), first);
        let other =
            groups.add(&of("nothing of this letter stands in the one before it and so it is of its own"));
        assert!(other.group > first.group);
        // Too short for a signature of any kind: it shares nothing, not even with its like.
        assert_ne!(groups.add(&of("thanks")).group, groups.add(&of("thanks")).group);
    }

    #[test]
    fn a_forgotten_group_starts_over() {
        let mut groups = Groups::default();
        let first = groups.add(&of(LETTER));
        for n in 0..1000 {
            assert_eq!(
                groups.add(&of(&format!("Dear guest number {n} of {},\n{LETTER}", 7 * n))).group,
                first.group
            );
        }
        assert!(groups.signatures() <= MOST_OF_ONE);
        groups.forget(first.group);
        assert_eq!(groups.signatures(), 0);
        assert!(groups.add(&of(LETTER)).group > first.group);
    }
}
