// SPDX-License-Identifier: GPL-3.0-or-later
//! One mailing, and its user reports.

use bulkmark_trust::{Case, Effect, Judgement, Settings, Side, Standing, Vote};
use bulkmark_types::{ReporterId, UNIT};

/// A message that many get.
#[derive(Debug)]
pub(super) struct Mailing {
    /// Whether it is spam or ham.
    pub(super) truth: Side,
    votes: Vec<Vote>,
    /// The weight for spam minus the weight against it, in units.
    net: i64,
    heard: bool,
    /// Whether only accounts of one owner receive it.
    pub(super) is_own: bool,
    /// Copies that came.
    pub(super) seen: u32,
}

impl Mailing {
    pub(super) const fn new(truth: Side) -> Self {
        Self { truth, votes: Vec::new(), net: 0, heard: false, is_own: false, seen: 0 }
    }

    /// A mailing that only so many accounts of one owner receive.
    pub(super) fn own(accounts: u32) -> Self {
        Self { seen: accounts, is_own: true, ..Self::new(Side::Spam) }
    }

    pub(super) fn is_spam(&self, settings: &Settings) -> bool {
        self.net >= i64::from(settings.threshold())
    }

    pub(super) fn was_spam(&self) -> bool {
        self.votes.iter().any(|vote| vote.spam_after)
    }

    /// Applies a user's report; true for the first one.
    pub(super) fn says(
        &mut self,
        person: u32,
        side: Side,
        standing: &Standing,
        settings: (&Settings, u32),
        now: u64,
    ) -> bool {
        let who = id(person);
        let (vote, change) = match self.case().weigh((who, side), standing, settings, now) {
            Effect::Repeats => return false,
            Effect::Counts(vote) => (vote, i64::from(vote.units)),
            Effect::Withdraws(vote, units) => (vote, i64::from(units)),
        };
        match side {
            Side::Spam => self.net += change,
            Side::NotSpam => self.net -= change,
        }
        match self.votes.iter_mut().find(|known| known.reporter == who) {
            Some(known) => *known = vote,
            // A report without weight changes nothing, now or later.
            None if vote.units == 0 => (),
            None => self.votes.push(vote),
        }
        !std::mem::replace(&mut self.heard, true)
    }

    /// A trap receives a copy and reports it with full weight; true for the first report.
    pub(super) fn trapped(&mut self, settings: &Settings) -> bool {
        self.net += i64::from(UNIT);
        self.votes.push(Vote {
            reporter: TRAP,
            side: Some(Side::Spam),
            units: 8,
            informative: self.net < i64::from(settings.threshold()) + i64::from(UNIT),
            newcomer: false,
            trap: true,
            seen: self.seen,
            spam_after: self.is_spam(settings),
        });
        !std::mem::replace(&mut self.heard, true)
    }

    const fn case(&self) -> Case<'_> {
        Case { votes: self.votes.as_slice(), elsewhere: 0, seen: self.seen }
    }

    /// Judges the reporters.
    pub(super) fn judge(&self) -> Vec<Judgement> {
        self.case().judge().1
    }
}

/// The trap of a site.
const TRAP: ReporterId = ReporterId::from_bytes((u128::MAX << 2 | 2).to_le_bytes());

/// The reporter of a person's number.
pub(super) const fn id(person: u32) -> ReporterId {
    ReporterId::from_bytes((person as u128).to_le_bytes())
}
