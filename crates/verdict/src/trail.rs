// SPDX-License-Identifier: GPL-3.0-or-later
//! Where the copies of a message came from: which further signatures an inquiry asks for and reports, and what they say.
//!
//! Nothing of that is done below a quarter of the threshold, so most mail has no part in it. docs/signatures.md has the reasons.

use super::settled::{Settled, Track};
use bulkmark_policy::{Backing, Backings, Counts, Range, Sources, Threshold, Thresholds};
use bulkmark_types::{
    BUCKETS, ClientNetwork, FederationKey, PRESENT, Signature, source_bucket, source_count,
};

/// With so many buckets known, a signature is known to come from everywhere: nothing more is reported of it.
const ESTABLISHED: u32 = 8;

/// Whose message it is, and what is known of the networks of others.
#[derive(Debug)]
pub(super) struct Trail<'a> {
    /// The client's network and its bucket.
    client: Option<(ClientNetwork, u8)>,
    range: Range,
    body: Option<Track>,
    near: Option<Track>,
    /// How often the message is reported itself.
    times: u32,
    failed: bool,
    /// What others found out, and the time in seconds since 1970.
    settled: Option<(&'a Settled, u64)>,
}

impl<'a> Trail<'a> {
    /// Of a message from this network that is reported so many times; zero if it is only asked for.
    pub(super) fn new(key: &FederationKey, client: Option<ClientNetwork>, range: Range, times: u32) -> Self {
        let client = client.map(|network| (network, network.bucket(key)));
        Self { client, range, body: None, near: None, times, failed: false, settled: None }
    }

    /// What is settled is not asked, and what becomes so is kept, as of this time in seconds since 1970.
    pub(super) const fn recall(&mut self, settled: &'a Settled, now: u64) {
        self.settled = Some((settled, now));
    }

    /// Whether it matters from where the body came.
    fn wants_body(&self, count: Option<u32>) -> bool {
        count.is_some_and(|count| count >= self.range.lowest.body.quarter())
    }

    /// The body with this count is known: the anchors whose networks are to be asked for.
    pub(super) fn ask_body(&mut self, body: Option<Signature>, count: Option<u32>) -> Vec<Signature> {
        let anchors: Vec<Signature> = body.filter(|_| self.wants_body(count)).into_iter().collect();
        self.body = self.settled(&anchors, self.range.highest.body);
        if self.body.is_some() { Vec::new() } else { anchors }
    }

    /// The counts are known: the anchors, if the networks of any are to be asked for. These carry the count of what the message is
    /// like.
    pub(super) fn ask_near(
        &mut self,
        carriers: impl FnOnce() -> Vec<Signature>,
        counts: Counts,
    ) -> Vec<Signature> {
        if !self.wants_near(counts) {
            return Vec::new();
        }
        let anchors = carriers();
        self.near = self.settled(&anchors, self.range.highest.near);
        if self.near.is_some() { Vec::new() } else { anchors }
    }

    fn settled(&self, anchors: &[Signature], threshold: Threshold) -> Option<Track> {
        let (settled, now) = self.settled.filter(|_| !anchors.is_empty())?;
        let client = self.client.map(|(network, _)| network);
        settled.recall(anchors, client, now).filter(|track| self.says_all(track, threshold))
    }

    /// Whether nothing more is reported of it, and what else there may be changes nothing.
    fn says_all(&self, track: &Track, threshold: Threshold) -> bool {
        let others = self.sources(track.buckets, track.own, threshold).others;
        let is_own = track.own >= threshold.get();
        let knows_own = self.client.is_some_and(|(_, bucket)| track.buckets & 1 << bucket != 0);
        let reports_more = track.buckets.count_ones() < ESTABLISHED && !(is_own && knows_own);
        !reports_more && (is_own || others >= self.range.highest.min_sources.get())
    }

    /// Whether anything of what it is like is to be asked: not where its body decides, and for the record only where that is
    /// seldom the same. Copies of one body are told by it.
    fn wants_near(&self, counts: Counts) -> bool {
        let is_reached = self.range.lowest.near.is_reached(counts.near);
        (is_reached || self.records_near(counts)) && !self.is_settled(counts)
    }

    /// Whether the body alone is enough to act on, by every policy.
    fn is_settled(&self, counts: Counts) -> bool {
        let Thresholds { body, min_sources, .. } = self.range.highest;
        let Some(count) = counts.body.filter(|&count| body.is_reached(Some(count))) else { return false };
        let lowest = self.range.lowest.body;
        // What suffices by the lowest and by the highest does so by all between them.
        self.of_body(counts).is_some_and(|sources| {
            sources.suffice(count, body, min_sources) && sources.suffice(count, lowest, min_sources)
        })
    }

    fn records_near(&self, counts: Counts) -> bool {
        let Some(near) = counts.near.filter(|&near| near >= self.range.lowest.near.quarter()) else {
            return false;
        };
        !self.wants_body(counts.body) || counts.body.is_none_or(|body| near >= body.saturating_mul(2))
    }

    /// What to ask about these anchors.
    pub(super) fn questions(&self, key: &FederationKey, anchors: &[Signature]) -> Vec<Signature> {
        let of = |&anchor: &Signature| {
            let own = self.client.map(|(network, _)| source_count(key, anchor, &network));
            own.into_iter().chain((0..BUCKETS).map(move |bucket| source_bucket(key, anchor, bucket)))
        };
        anchors.iter().flat_map(of).collect()
    }

    /// Takes the answer to these questions about the body.
    pub(super) fn answer_body(&mut self, anchors: Vec<Signature>, counts: &[u32]) {
        self.body = Some(self.read(anchors, counts, self.range.highest.body));
    }

    /// Takes the answer to these questions about what it is like.
    pub(super) fn answer_near(&mut self, anchors: Vec<Signature>, counts: &[u32]) {
        self.near = Some(self.read(anchors, counts, self.range.highest.near));
    }

    fn read(&self, anchors: Vec<Signature>, counts: &[u32], threshold: Threshold) -> Track {
        let has_own = usize::from(self.client.is_some());
        let mut track = Track { anchors, ..Track::default() };
        for counts in counts.chunks(has_own + usize::from(BUCKETS)) {
            let (own, buckets) = counts.split_at(has_own.min(counts.len()));
            // Each message reports one anchor, so that this is no message twice.
            track.own = own.iter().fold(track.own, |sum, &count| sum.saturating_add(count));
            let known = buckets.iter().enumerate().filter(|&(_, &count)| count >= PRESENT);
            track.buckets |= known.fold(0, |all, (bucket, _)| all | 1 << bucket);
        }
        if let Some((settled, now)) = self.settled
            && self.says_all(&track, threshold)
        {
            settled.keep(&track, self.client.map(|(network, _)| network), now);
        }
        track
    }

    /// What the report of the message adds for its body, which has this count with it.
    pub(super) fn report_body(&self, key: &FederationKey, count: Option<u32>) -> Vec<(Signature, u32)> {
        let (Some(track), Some(count)) = (&self.body, count) else { return Vec::new() };
        self.report(key, track, above(self.range.lowest.body, count, self.times), self.range.highest.body)
    }

    /// The same for what it is like; there messages count.
    pub(super) fn report_near(&self, key: &FederationKey, counts: Counts) -> Vec<(Signature, u32)> {
        let Some(track) = self.near.as_ref().filter(|_| self.records_near(counts)) else { return Vec::new() };
        self.report(key, track, self.times.min(1), self.range.highest.near)
    }

    fn report(
        &self,
        key: &FederationKey,
        track: &Track,
        times: u32,
        threshold: Threshold,
    ) -> Vec<(Signature, u32)> {
        let (Some((network, bucket)), Some(&anchor)) = (self.client, track.anchors.first()) else {
            return Vec::new();
        };
        if times == 0 || track.buckets.count_ones() >= ESTABLISHED {
            return Vec::new();
        }
        // More than the threshold changes nothing.
        let own = (track.own < threshold.get()).then(|| (source_count(key, anchor, &network), times));
        let is_known = track.buckets & 1 << bucket != 0;
        let bucket = (!is_known).then(|| (source_bucket(key, anchor, bucket), PRESENT));
        own.into_iter().chain(bucket).collect()
    }

    /// The ledger failed: what is not known stays so.
    pub(super) const fn fail(&mut self) {
        self.failed = true;
    }

    /// What is known by now.
    pub(super) fn backings(&self, counts: Counts) -> Backings {
        let backing = |sources: Option<Sources>, is_needed: bool| match sources {
            _ if self.failed => Backing::Unknown,
            Some(sources) => Backing::Known(sources),
            None if is_needed => Backing::Unknown,
            None => Backing::NotAsked,
        };
        let Thresholds { body, near, .. } = self.range.lowest;
        let needs_near = near.is_reached(counts.near) && !self.is_settled(counts);
        Backings {
            messages: None,
            body: backing(self.of_body(counts), body.is_reached(counts.body)),
            near: backing(self.of_near(), needs_near),
        }
    }

    fn of_body(&self, counts: Counts) -> Option<Sources> {
        let track = self.body.as_ref()?;
        let added = counts.body.map_or(0, |count| above(self.range.lowest.body, count, self.times));
        Some(self.sources(track.buckets, track.own.saturating_add(added), self.range.highest.body))
    }

    fn of_near(&self) -> Option<Sources> {
        let track = self.near.as_ref()?;
        // Copies of one body are alike, too.
        let same = self.body.as_ref().map_or((0, 0), |body| (body.buckets, body.own));
        let own = track.own.max(same.1).saturating_add(self.times.min(1));
        Some(self.sources(track.buckets | same.0, own, self.range.highest.near))
    }

    /// The client's own bucket is none of the others, and beyond the threshold its copies are not counted.
    fn sources(&self, buckets: u64, own: u32, threshold: Threshold) -> Sources {
        let others = self.client.map_or(buckets, |(_, bucket)| buckets & !(1 << bucket));
        Sources { others: others.count_ones(), own: self.client.map(|_| own.min(threshold.get())) }
    }
}

/// How much of the last `times` lies above the quarter of the threshold.
const fn above(threshold: Threshold, count: u32, times: u32) -> u32 {
    let above = count.saturating_add(1).saturating_sub(threshold.quarter());
    if above < times { above } else { times }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(times: u32) -> Trail<'static> {
        let client = Some(ClientNetwork::of([192, 0, 2, 7].into()));
        Trail::new(&FederationKey::public(), client, Range::from(&Thresholds::default()), times)
    }

    const ANCHOR: u8 = 7;

    /// What is reported of a body with this count, where so many buckets are known and the own network sent so many before.
    fn reported(count: u32, times: u32, buckets: u32, own: u32) -> Vec<u32> {
        let key = FederationKey::public();
        let mut trail = trail(times);
        let anchor = Signature::from_bytes([ANCHOR; 16]);
        let questions = trail.questions(&key, &[anchor]);
        let bucket = trail.client.unwrap().1;
        let known = |n: u32| if n < buckets && n != u32::from(bucket) { PRESENT } else { PRESENT - 1 };
        let counts: Vec<u32> = [own].into_iter().chain((0..u32::from(BUCKETS)).map(known)).collect();
        assert_eq!(counts.len(), questions.len());
        trail.answer_body(vec![anchor], &counts);
        trail.report_body(&key, Some(count)).into_iter().map(|(_, times)| times).collect()
    }

    /// The own network counts what lies above the quarter; its bucket is told once, and neither where they are known.
    #[test]
    fn what_is_reported() {
        assert_eq!(reported(5, 1, 0, 0), [1, PRESENT]);
        assert_eq!(reported(20, 20, 0, 0), [16, PRESENT]);
        assert_eq!(reported(25, 7, 0, 9), [7, PRESENT]);
        assert_eq!(reported(99, 7, 0, 20), [PRESENT], "more copies change nothing");
        assert!(reported(99, 7, 9, 0).is_empty(), "it comes from everywhere");
    }

    /// A full filter shows something for what was never reported; that is no network.
    #[test]
    fn what_a_full_filter_shows_is_no_network() {
        let key = FederationKey::public();
        let mut trail = trail(1);
        let anchor = Signature::from_bytes([ANCHOR; 16]);
        let counts = vec![PRESENT - 1; trail.questions(&key, &[anchor]).len()];
        trail.answer_body(vec![anchor], &counts);
        let counts = Counts { body: Some(20), near: None, spam: None };
        let expected = Sources { others: 0, own: Some(PRESENT) };
        assert_eq!(trail.backings(counts).body, Backing::Known(expected));
    }

    #[test]
    fn below_a_quarter_of_the_threshold_nothing_is_asked() {
        let trail = trail(1);
        assert!(!trail.wants_body(Some(4)) && trail.wants_body(Some(5)) && !trail.wants_body(None));
        let wants = |body, near| trail.wants_near(Counts { body, near: Some(near), spam: None });
        assert!(!wants(Some(1), 4) && wants(Some(1), 5) && wants(None, 5));
        assert!(!wants(Some(9), 10), "the body tells it");
        assert!(wants(Some(5), 10) && wants(Some(19), 20));
    }
}
