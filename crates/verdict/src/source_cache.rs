// SPDX-License-Identifier: GPL-3.0-or-later
//! A cache of the sources of copies, so that a mailing of thousands does not look them up for each copy.

use bulkmark_types::{ClientNetwork, Signature};
use parking_lot::Mutex;
use std::collections::HashMap;

/// The lifetime of an entry, in seconds. Counts only grow within the retention, which is much longer.
const LIFETIME: u64 = 60;

/// The most entries, which take less than a megabyte.
const MAX_ENTRIES: usize = 4096;

/// The known networks of some signatures, the anchors of a count.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct KnownSources {
    pub(super) anchors: Vec<Signature>,
    /// A bit for each known bucket.
    pub(super) buckets: u64,
    /// The number of earlier copies from the message's own network.
    pub(super) own: u32,
}

/// The entries by anchors and network, with their times.
type Entries = HashMap<(Vec<Signature>, Option<ClientNetwork>), (KnownSources, u64)>;

/// The recent results for which nothing more is reported.
#[derive(Debug, Default)]
pub struct SourceCache(Mutex<Entries>);

impl SourceCache {
    pub(super) fn get(
        &self,
        anchors: &[Signature],
        client: Option<ClientNetwork>,
        now: u64,
    ) -> Option<KnownSources> {
        let key = (anchors.to_vec(), client);
        let entries = self.0.lock();
        let (known, at) = entries.get(&key)?;
        (now.abs_diff(*at) < LIFETIME).then(|| known.clone())
    }

    pub(super) fn insert(&self, known: &KnownSources, client: Option<ClientNetwork>, now: u64) {
        let (key, known) = ((known.anchors.clone(), client), known.clone());
        let mut entries = self.0.lock();
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, (_, at)| now.abs_diff(*at) < LIFETIME);
        }
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(key, (known, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_lives_for_a_minute_and_only_for_its_key() {
        let cache = SourceCache::default();
        let network = |n| Some(ClientNetwork::V4([192, 0, n]));
        let anchor = |n: usize| Signature::from_bytes((n as u128).to_le_bytes());
        let known = KnownSources { anchors: vec![anchor(7)], buckets: 3, own: 20 };
        cache.insert(&known, network(2), 1000);
        assert_eq!(cache.get(&[anchor(7)], network(2), 1059), Some(known.clone()));
        for (of, from, now) in [(8, 2, 1000), (7, 3, 1000), (7, 2, 1060)] {
            assert_eq!(cache.get(&[anchor(of)], network(from), now), None);
        }
        for n in 0..3 * MAX_ENTRIES {
            cache.insert(&KnownSources { anchors: vec![anchor(n)], ..known }, network(2), 1000);
            assert!(cache.0.lock().len() <= MAX_ENTRIES);
        }
    }
}
