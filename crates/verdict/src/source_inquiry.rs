// SPDX-License-Identifier: GPL-3.0-or-later
//! The sources of a message's copies: the further signatures that an inquiry looks up and reports, and their meaning.
//!
//! Below a quarter of the threshold nothing of this happens, so most mail costs nothing. docs/signatures.md has the reasons.

use super::source_cache::{KnownSources, SourceCache};
use bulkmark_policy::{Backing, Backings, Counts, Range, Sources, Threshold, Thresholds};
use bulkmark_types::{
    BUCKETS, ClientNetwork, FederationKey, PRESENT, Signature, source_bucket, source_count,
};

/// With this many known buckets, a signature comes from everywhere: nothing more is reported of it.
const ESTABLISHED: u32 = 8;

/// The part of an inquiry about the client's network and those of other copies.
#[derive(Debug)]
pub(super) struct SourceInquiry<'a> {
    /// The client's network and its bucket.
    client: Option<(ClientNetwork, u8)>,
    range: Range,
    body: Option<KnownSources>,
    near: Option<KnownSources>,
    /// The number of reports of the message.
    times: u32,
    failed: bool,
    /// The cache, and the time in seconds since 1970.
    cache: Option<(&'a SourceCache, u64)>,
}

impl<'a> SourceInquiry<'a> {
    /// A message from this network that is reported this many times; zero if it is only looked up.
    pub(super) fn new(key: &FederationKey, client: Option<ClientNetwork>, range: Range, times: u32) -> Self {
        let client = client.map(|network| (network, network.bucket(key)));
        Self { client, range, body: None, near: None, times, failed: false, cache: None }
    }

    /// Uses a cache, at this time in seconds since 1970.
    pub(super) const fn use_cache(&mut self, cache: &'a SourceCache, now: u64) {
        self.cache = Some((cache, now));
    }

    /// Whether the sources of the body matter.
    pub(super) fn wants_body(&self, count: Option<u32>) -> bool {
        count.is_some_and(|count| count >= self.range.lowest.body.quarter())
    }

    /// Takes the body and its count; returns the anchors whose networks to look up.
    pub(super) fn ask_body(&mut self, body: Option<Signature>, count: Option<u32>) -> Vec<Signature> {
        let anchors: Vec<Signature> = body.filter(|_| self.wants_body(count)).into_iter().collect();
        self.body = self.cached(&anchors, self.range.highest.body);
        if self.body.is_some() { Vec::new() } else { anchors }
    }

    /// Takes the counts; returns the anchors whose networks to look up, if any. `carriers` are the signatures that carry the near count.
    pub(super) fn ask_near(
        &mut self,
        carriers: impl FnOnce() -> Vec<Signature>,
        counts: Counts,
    ) -> Vec<Signature> {
        if !self.wants_near(counts) {
            return Vec::new();
        }
        let anchors = carriers();
        self.near = self.cached(&anchors, self.range.highest.near);
        if self.near.is_some() { Vec::new() } else { anchors }
    }

    fn cached(&self, anchors: &[Signature], threshold: Threshold) -> Option<KnownSources> {
        let (cache, now) = self.cache.filter(|_| !anchors.is_empty())?;
        let client = self.client.map(|(network, _)| network);
        cache.get(anchors, client, now).filter(|known| self.is_final(known, threshold))
    }

    /// Whether nothing more is reported of it, and further networks would change nothing.
    fn is_final(&self, known: &KnownSources, threshold: Threshold) -> bool {
        let others = self.sources(known.buckets, known.own, threshold).others;
        let is_own = known.own >= threshold.get();
        let knows_own = self.client.is_some_and(|(_, bucket)| known.buckets & 1 << bucket != 0);
        let reports_more = known.buckets.count_ones() < ESTABLISHED && !(is_own && knows_own);
        !reports_more && (is_own || others >= self.range.highest.min_sources.get())
    }

    /// Whether the sources of near signatures are looked up: not if its body decides; and for the record only if few copies have the same
    /// body, since others are recorded by that.
    fn wants_near(&self, counts: Counts) -> bool {
        let is_reached = self.range.lowest.near.is_reached(counts.near);
        (is_reached || self.records_near(counts)) && !self.body_suffices(counts)
    }

    /// Whether the body alone is enough to act on, by every policy.
    fn body_suffices(&self, counts: Counts) -> bool {
        let Thresholds { body, min_sources, .. } = self.range.highest;
        let Some(count) = counts.body.filter(|&count| body.is_reached(Some(count))) else { return false };
        let lowest = self.range.lowest.body;
        // Sources that suffice for the lowest and the highest threshold do so for all between them.
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

    /// The signatures to look up for these anchors.
    pub(super) fn questions(&self, key: &FederationKey, anchors: &[Signature]) -> Vec<Signature> {
        let of = |&anchor: &Signature| {
            let own = self.client.map(|(network, _)| source_count(key, anchor, &network));
            own.into_iter().chain((0..BUCKETS).map(move |bucket| source_bucket(key, anchor, bucket)))
        };
        anchors.iter().flat_map(of).collect()
    }

    /// Takes the answer about the body.
    pub(super) fn answer_body(&mut self, anchors: Vec<Signature>, counts: &[u32]) {
        self.body = Some(self.read(anchors, counts, self.range.highest.body));
    }

    /// Takes the answer about the near signatures.
    pub(super) fn answer_near(&mut self, anchors: Vec<Signature>, counts: &[u32]) {
        self.near = Some(self.read(anchors, counts, self.range.highest.near));
    }

    fn read(&self, anchors: Vec<Signature>, counts: &[u32], threshold: Threshold) -> KnownSources {
        let has_own = usize::from(self.client.is_some());
        let mut known = KnownSources { anchors, ..KnownSources::default() };
        for counts in counts.chunks(has_own + usize::from(BUCKETS)) {
            let (own, buckets) = counts.split_at(has_own.min(counts.len()));
            // Each message reports one anchor, so no message is counted twice.
            known.own = own.iter().fold(known.own, |sum, &count| sum.saturating_add(count));
            let present = buckets.iter().enumerate().filter(|&(_, &count)| count >= PRESENT);
            known.buckets |= present.fold(0, |all, (bucket, _)| all | 1 << bucket);
        }
        if let Some((cache, now)) = self.cache
            && self.is_final(&known, threshold)
        {
            cache.insert(&known, self.client.map(|(network, _)| network), now);
        }
        known
    }

    /// The reports for the body, whose count includes this message.
    pub(super) fn report_body(&self, key: &FederationKey, count: Option<u32>) -> Vec<(Signature, u32)> {
        let (Some(known), Some(count)) = (&self.body, count) else { return Vec::new() };
        self.report(key, known, above(self.range.lowest.body, count, self.times), self.range.highest.body)
    }

    /// The same for the near signatures; they count messages.
    pub(super) fn report_near(&self, key: &FederationKey, counts: Counts) -> Vec<(Signature, u32)> {
        let Some(known) = self.near.as_ref().filter(|_| self.records_near(counts)) else { return Vec::new() };
        self.report(key, known, self.times.min(1), self.range.highest.near)
    }

    fn report(
        &self,
        key: &FederationKey,
        known: &KnownSources,
        times: u32,
        threshold: Threshold,
    ) -> Vec<(Signature, u32)> {
        let (Some((network, bucket)), Some(&anchor)) = (self.client, known.anchors.first()) else {
            return Vec::new();
        };
        if times == 0 || known.buckets.count_ones() >= ESTABLISHED {
            return Vec::new();
        }
        // Counts above the threshold change nothing.
        let own = (known.own < threshold.get()).then(|| (source_count(key, anchor, &network), times));
        let is_known = known.buckets & 1 << bucket != 0;
        let bucket = (!is_known).then(|| (source_bucket(key, anchor, bucket), PRESENT));
        own.into_iter().chain(bucket).collect()
    }

    /// The ledger failed: unknown sources stay unknown.
    pub(super) const fn fail(&mut self) {
        self.failed = true;
    }

    /// The sources known so far.
    pub(super) fn backings(&self, counts: Counts) -> Backings {
        let backing = |sources: Option<Sources>, is_needed: bool| match sources {
            _ if self.failed => Backing::Unknown,
            Some(sources) => Backing::Known(sources),
            None if is_needed => Backing::Unknown,
            None => Backing::NotAsked,
        };
        let Thresholds { body, near, .. } = self.range.lowest;
        let needs_near = near.is_reached(counts.near) && !self.body_suffices(counts);
        Backings {
            messages: None,
            body: backing(self.of_body(counts), body.is_reached(counts.body)),
            near: backing(self.of_near(), needs_near),
        }
    }

    fn of_body(&self, counts: Counts) -> Option<Sources> {
        let known = self.body.as_ref()?;
        let added = counts.body.map_or(0, |count| above(self.range.lowest.body, count, self.times));
        Some(self.sources(known.buckets, known.own.saturating_add(added), self.range.highest.body))
    }

    fn of_near(&self) -> Option<Sources> {
        let known = self.near.as_ref()?;
        // Copies with the same body have the same near signatures too.
        let same = self.body.as_ref().map_or((0, 0), |body| (body.buckets, body.own));
        let own = known.own.max(same.1).saturating_add(self.times.min(1));
        Some(self.sources(known.buckets | same.0, own, self.range.highest.near))
    }

    /// The client's own bucket is not one of the others, and its copies beyond the threshold are not counted.
    fn sources(&self, buckets: u64, own: u32, threshold: Threshold) -> Sources {
        let others = self.client.map_or(buckets, |(_, bucket)| buckets & !(1 << bucket));
        Sources { others: others.count_ones(), own: self.client.map(|_| own.min(threshold.get())) }
    }
}

/// The part of the last `times` reports above the quarter of the threshold.
const fn above(threshold: Threshold, count: u32, times: u32) -> u32 {
    let above = count.saturating_add(1).saturating_sub(threshold.quarter());
    if above < times { above } else { times }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inquiry(times: u32) -> SourceInquiry<'static> {
        let client = Some(ClientNetwork::of([192, 0, 2, 7].into()));
        SourceInquiry::new(&FederationKey::public(), client, Range::from(&Thresholds::default()), times)
    }

    const ANCHOR: u8 = 7;

    /// The reports of a body with this count, if this many buckets are known and its own network sent this many copies before.
    fn reported(count: u32, times: u32, buckets: u32, own: u32) -> Vec<u32> {
        let key = FederationKey::public();
        let mut inquiry = inquiry(times);
        let anchor = Signature::from_bytes([ANCHOR; 16]);
        let questions = inquiry.questions(&key, &[anchor]);
        let bucket = inquiry.client.unwrap().1;
        let known = |n: u32| if n < buckets && n != u32::from(bucket) { PRESENT } else { PRESENT - 1 };
        let counts: Vec<u32> = [own].into_iter().chain((0..u32::from(BUCKETS)).map(known)).collect();
        assert_eq!(counts.len(), questions.len());
        inquiry.answer_body(vec![anchor], &counts);
        inquiry.report_body(&key, Some(count)).into_iter().map(|(_, times)| times).collect()
    }

    /// The own network counts copies above the quarter; its bucket is reported once, and neither if they are known.
    #[test]
    fn the_own_network_and_its_bucket_are_reported_until_known() {
        assert_eq!(reported(5, 1, 0, 0), [1, PRESENT]);
        assert_eq!(reported(20, 20, 0, 0), [16, PRESENT]);
        assert_eq!(reported(25, 7, 0, 9), [7, PRESENT]);
        assert_eq!(reported(99, 7, 0, 20), [PRESENT], "more copies change nothing");
        assert!(reported(99, 7, 9, 0).is_empty(), "it comes from everywhere");
    }

    /// A full filter returns something for signatures that were never reported; that is no network.
    #[test]
    fn false_counts_of_a_full_filter_are_no_network() {
        let key = FederationKey::public();
        let mut inquiry = inquiry(1);
        let anchor = Signature::from_bytes([ANCHOR; 16]);
        let counts = vec![PRESENT - 1; inquiry.questions(&key, &[anchor]).len()];
        inquiry.answer_body(vec![anchor], &counts);
        let counts = Counts { body: Some(20), near: None, spam: None };
        let expected = Sources { others: 0, own: Some(PRESENT) };
        assert_eq!(inquiry.backings(counts).body, Backing::Known(expected));
    }

    #[test]
    fn below_a_quarter_of_the_threshold_nothing_is_looked_up() {
        let inquiry = inquiry(1);
        assert!(!inquiry.wants_body(Some(4)) && inquiry.wants_body(Some(5)) && !inquiry.wants_body(None));
        let wants = |body, near| inquiry.wants_near(Counts { body, near: Some(near), spam: None });
        assert!(!wants(Some(1), 4) && wants(Some(1), 5) && wants(None, 5));
        assert!(!wants(Some(9), 10), "the body records it");
        assert!(wants(Some(5), 10) && wants(Some(19), 20));
    }
}
