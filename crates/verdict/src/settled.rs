// SPDX-License-Identifier: GPL-3.0-or-later
//! Of which copies it is settled from where they come, so that a mailing of thousands does not ask for each of them.

use bulkmark_types::{ClientNetwork, Signature};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Seconds until it is asked again. Counts only grow within the retention, which is long against that.
const FRESH: u64 = 60;

/// Texts and networks that are remembered, in less than a megabyte.
const MOST: usize = 4096;

/// What is known of the networks of some signatures, the anchors of a count.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) anchors: Vec<Signature>,
    /// A bit for each bucket that is known.
    pub(super) buckets: u64,
    /// How often the message's own network sent them before.
    pub(super) own: u32,
}

/// What was found out, for so many anchors and a network, and when.
type Found = HashMap<(Vec<Signature>, Option<ClientNetwork>), (Track, u64)>;

/// What was found out lately of which nothing more is reported.
#[derive(Debug, Default)]
pub struct Settled(Mutex<Found>);

impl Settled {
    pub(super) fn recall(
        &self,
        anchors: &[Signature],
        client: Option<ClientNetwork>,
        now: u64,
    ) -> Option<Track> {
        let key = (anchors.to_vec(), client);
        let found = self.0.lock();
        let (track, at) = found.get(&key)?;
        (now.abs_diff(*at) < FRESH).then(|| track.clone())
    }

    pub(super) fn keep(&self, track: &Track, client: Option<ClientNetwork>, now: u64) {
        let (key, track) = ((track.anchors.clone(), client), track.clone());
        let mut found = self.0.lock();
        if found.len() >= MOST {
            found.retain(|_, (_, at)| now.abs_diff(*at) < FRESH);
        }
        if found.len() >= MOST {
            found.clear();
        }
        found.insert(key, (track, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_remembered_for_a_minute_and_not_for_others() {
        let settled = Settled::default();
        let network = |n| Some(ClientNetwork::V4([192, 0, n]));
        let anchor = |n: usize| Signature::from_bytes((n as u128).to_le_bytes());
        let track = Track { anchors: vec![anchor(7)], buckets: 3, own: 20 };
        settled.keep(&track, network(2), 1000);
        assert_eq!(settled.recall(&[anchor(7)], network(2), 1059), Some(track.clone()));
        for (of, from, now) in [(8, 2, 1000), (7, 3, 1000), (7, 2, 1060)] {
            assert_eq!(settled.recall(&[anchor(of)], network(from), now), None);
        }
        for n in 0..3 * MOST {
            settled.keep(&Track { anchors: vec![anchor(n)], ..track }, network(2), 1000);
            assert!(settled.0.lock().len() <= MOST);
        }
    }
}
