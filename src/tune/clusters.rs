// SPDX-License-Identifier: GPL-3.0-or-later
//! Clusters of similar messages.

use super::archive::Label;
use super::letter::Letter;
use super::top::Top;
use bulkmark_signature::{Groups, Membership};
use std::collections::HashMap;

/// Clusters that are kept at a time. Beyond that, the half seen least often is dropped, of equals the oldest; messages that are further apart
/// than so many others may be shown as several clusters.
const MOST: usize = 100_000;

/// Signatures by which clusters are found, some 100 MB at most.
const MOST_SIGNATURES: usize = 1_000_000;

/// A cluster of similar messages.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) messages: u64,
    pub(super) labels: [u64; 3],
    pub(super) whitelisted: u64,
    /// The highest count that one of them had.
    pub(super) peak: u32,
    pub(super) first: u64,
    pub(super) last: u64,
    /// Messages with the body of an earlier one.
    pub(super) exact: u64,
    pub(super) from: Top,
    pub(super) list_ids: Top,
    pub(super) subjects: Top,
}

/// All clusters.
#[derive(Default)]
pub(super) struct Clusters {
    all: HashMap<u64, Cluster>,
    groups: Groups,
}

impl Clusters {
    /// Adds a message with its highest count.
    pub(super) fn add(&mut self, letter: &Letter, label: Label, count: u32, whitelisted: bool) {
        let Membership { group, exact } = self.groups.add(&letter.content.signatures);
        let cluster = self.all.entry(group).or_default();
        if cluster.messages == 0 {
            cluster.first = letter.time;
        }
        cluster.messages += 1;
        cluster.labels[label.index()] += 1;
        cluster.whitelisted += u64::from(whitelisted);
        cluster.peak = cluster.peak.max(count);
        cluster.last = letter.time;
        cluster.exact += u64::from(exact);
        letter.domain().into_iter().for_each(|domain| cluster.from.add(domain));
        letter.content.list_id.iter().for_each(|id| cluster.list_ids.add(id));
        cluster.subjects.add(&letter.subject);
        if self.all.len() > MOST || self.groups.signatures() > MOST_SIGNATURES {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let mut order: Vec<_> =
            self.all.iter().map(|(name, c)| (c.peak, c.messages, c.last, *name)).collect();
        order.sort_unstable();
        for (.., name) in &order[..order.len() / 2] {
            self.all.remove(name);
            self.groups.forget(*name);
        }
    }

    /// Returns the clusters with a message whose count is at least `least`, those of the highest count first.
    pub(super) fn ranked(self, least: u32) -> Vec<Cluster> {
        let mut all: Vec<_> = self.all.into_iter().filter(|(_, cluster)| cluster.peak >= least).collect();
        all.sort_by_key(|(name, c)| (std::cmp::Reverse((c.peak, c.messages)), *name));
        all.into_iter().map(|(_, cluster)| cluster).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_types::Signature;

    fn letter(body: [u8; 16]) -> Letter {
        let mut letter = Letter::empty();
        letter.content.signatures.body = Ok(Signature::from_bytes(body));
        letter
    }

    #[test]
    fn frequent_clusters_outlive_rare_ones() {
        let mut clusters = Clusters::default();
        for count in 1..=5 {
            clusters.add(&letter([9; 16]), Label::Spam, count, false);
        }
        for n in 0..3 * MOST as u64 {
            let mut body = [1; 16];
            body[..8].copy_from_slice(&(n + 1).to_le_bytes());
            clusters.add(&letter(body), Label::None, 1, false);
            assert!(clusters.all.len() <= MOST && clusters.groups.signatures() <= MOST);
        }
        clusters.add(&letter([9; 16]), Label::Ham, 6, true);
        let ranked = clusters.ranked(5);
        assert_eq!(ranked.len(), 1);
        assert_eq!((ranked[0].messages, ranked[0].peak, ranked[0].exact), (6, 6, 5));
        assert_eq!((ranked[0].labels, ranked[0].whitelisted), ([0, 1, 5], 1));
    }

    #[test]
    fn without_signatures_there_is_nothing_to_share() {
        let mut clusters = Clusters::default();
        clusters.add(&Letter::empty(), Label::None, 1, false);
        clusters.add(&Letter::empty(), Label::None, 1, false);
        assert_eq!(clusters.ranked(1).len(), 2);
    }
}
