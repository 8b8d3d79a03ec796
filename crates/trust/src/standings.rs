// SPDX-License-Identifier: GPL-3.0-or-later
//! The standings of all reporters, within a bound.

use super::outcome::Judgement;
use super::settings::Settings;
use super::standing::Standing;
use bulkmark_types::ReporterId;
use std::collections::BTreeMap;

/// The most reporters that are remembered: 32 bytes each, and as much again for the tree. Reporters beyond it stay newcomers.
pub const MAX_STANDINGS: usize = 100_000;

/// The standings of the reporters that others agreed with or contradicted. All others are newcomers and take no place.
#[derive(Debug, Clone, Default)]
pub struct Standings {
    known: BTreeMap<ReporterId, Standing>,
    established: u32,
}

impl Standings {
    /// Builds it from stored standings.
    #[must_use]
    pub fn new(
        known: impl IntoIterator<Item = (ReporterId, Standing)>,
        settings: &Settings,
        now: u64,
    ) -> Self {
        let mut standings = Self { known: known.into_iter().take(MAX_STANDINGS).collect(), established: 0 };
        standings.sweep(settings, now);
        standings
    }

    /// Returns the standing of a reporter; an unknown one has a newcomer's.
    #[must_use]
    pub fn of(&self, reporter: &ReporterId) -> Standing {
        self.known.get(reporter).copied().unwrap_or_default()
    }

    /// All remembered standings.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ReporterId, &Standing)> {
        self.known.iter()
    }

    /// The number of reporters with a trust of a half or more, as of the last judgement or sweep.
    #[must_use]
    pub const fn established(&self) -> u32 {
        self.established
    }

    /// Applies the judgements of one signature of a message with `parts` signatures. Returns the changed standings, which the caller
    /// stores.
    pub fn apply(
        &mut self,
        judgements: &[Judgement],
        parts: u32,
        settings: &Settings,
        now: u64,
    ) -> Vec<(ReporterId, Standing)> {
        let mut changed = Vec::with_capacity(judgements.len());
        for judgement in judgements {
            if self.known.len() >= MAX_STANDINGS && !self.known.contains_key(&judgement.reporter) {
                continue;
            }
            let before = self.of(&judgement.reporter);
            let after = judgement.apply(before, parts, now);
            let [was, is] = [before, after].map(|standing| standing.is_established(settings, now));
            self.established = (self.established + u32::from(is)).saturating_sub(u32::from(was));
            self.known.insert(judgement.reporter, after);
            changed.push((judgement.reporter, after));
        }
        changed
    }

    /// The administrator vouches for a reporter: [`Standing::vouched`]. Returns false if there is no place for it.
    pub fn vouch(&mut self, reporter: ReporterId, settings: &Settings, now: u64) -> bool {
        let has_place = self.known.len() < MAX_STANDINGS || self.known.contains_key(&reporter);
        if has_place {
            let was = self.of(&reporter).is_established(settings, now);
            self.known.insert(reporter, Standing::vouched(now));
            self.established += u32::from(!was);
        }
        has_place
    }

    /// Drops a reporter's standing: it is a newcomer again.
    pub fn forget(&mut self, reporter: &ReporterId, settings: &Settings, now: u64) -> bool {
        let known = self.known.remove(reporter);
        let counted = known.is_some_and(|standing| standing.is_established(settings, now));
        self.established = self.established.saturating_sub(u32::from(counted));
        known.is_some()
    }

    /// Drops standings without evidence, and counts established reporters. Called once a day. Returns the dropped reporters.
    pub fn sweep(&mut self, settings: &Settings, now: u64) -> Vec<ReporterId> {
        let gone = self
            .known
            .extract_if(.., |_, standing| standing.is_forgotten(now))
            .map(|(reporter, _)| reporter)
            .collect();
        let established = self.known.values().filter(|standing| standing.is_established(settings, now));
        self.established = u32::try_from(established.count()).unwrap_or(u32::MAX);
        gone
    }
}
