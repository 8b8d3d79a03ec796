// SPDX-License-Identifier: GPL-3.0-or-later
//! The reports on one signature: whether a new one counts, and its weight.

use super::settings::Settings;
use super::standing::Standing;
use super::vote::{Side, Vote};
use bulkmark_types::ReporterId;

/// The reports on one signature, and its count.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The votes of this window, at most one for each reporter, in any order. Votes without weight may be left out.
    pub votes: &'a [Vote],
    /// The net weight of reports at other sites of the federation, in units: spam less not spam.
    pub elsewhere: i64,
    /// Its count of mail.
    pub seen: u32,
}

/// The effect of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The report counts: the caller stores the vote and adds its units, maybe none, on its side.
    Counts(Vote),
    /// The report withdraws the reporter's previous one: the caller stores the vote, and subtracts these units, or adds them on the other
    /// side.
    Withdraws(Vote, u8),
    /// The reporter repeats its report: nothing changes.
    Repeats,
}

impl Case<'_> {
    /// Weighs a report of a reporter with this standing, on a site with so many established reporters; `now` is in seconds since 1970.
    #[must_use]
    pub fn weigh(
        &self,
        (reporter, side): (ReporterId, Side),
        standing: &Standing,
        (settings, established): (&Settings, u32),
        now: u64,
    ) -> Effect {
        let net = self.net();
        let threshold = i64::from(settings.threshold());
        let before = self.votes.iter().find(|vote| vote.reporter == reporter);
        if let Some((vote, reported)) = before.and_then(|vote| Some((vote, vote.side?))) {
            if reported == side {
                return Effect::Repeats;
            }
            let spam_after = net - signed(reported, vote.units) >= threshold;
            let vote = Vote { side: None, units: 0, seen: self.seen, spam_after, ..*vote };
            return Effect::Withdraws(vote, before.map_or(0, |vote| vote.units));
        }
        let newcomer = !standing.is_established(settings, now);
        let mut units = standing.units(settings, now);
        if newcomer {
            let most = self.most_of_newcomers(side, settings, established);
            units = at_most(units, most - i64::from(self.newcomers(side)));
        }
        if side == Side::NotSpam {
            // A revocation only takes back nominations: it has no effect in advance.
            units = at_most(units, net);
        }
        Effect::Counts(Vote {
            reporter,
            side: Some(side),
            units,
            informative: (net >= threshold) == (side == Side::NotSpam),
            newcomer,
            trap: false,
            seen: self.seen,
            spam_after: net + signed(side, units) >= threshold,
        })
    }

    /// The weight for spam less the weight against it, in units.
    #[must_use]
    pub fn net(&self) -> i64 {
        let units = |vote: &Vote| vote.side.map_or(0, |side| signed(side, vote.units));
        self.votes.iter().map(units).sum::<i64>() + self.elsewhere
    }

    /// The most that newcomers can weigh together on a side. They can revoke the nominations of newcomers and of other sites on a young
    /// site too, but no more of this site's known reporters' than on an old one.
    fn most_of_newcomers(&self, side: Side, settings: &Settings, established: u32) -> i64 {
        let most = i64::from(settings.newcomers(established));
        match side {
            Side::Spam => most,
            Side::NotSpam => {
                let theirs = i64::from(self.newcomers(Side::Spam)).saturating_add(self.elsewhere);
                most.min(theirs.max(settings.max_newcomers().into()))
            }
        }
    }

    /// The summed weight of newcomers on a side.
    fn newcomers(&self, side: Side) -> u32 {
        let them = self.votes.iter().filter(|vote| vote.newcomer && vote.side == Some(side));
        them.map(|vote| u32::from(vote.units)).sum()
    }
}

/// Units for spam, negative against it.
fn signed(side: Side, units: u8) -> i64 {
    match side {
        Side::Spam => units.into(),
        Side::NotSpam => -i64::from(units),
    }
}

fn at_most(units: u8, bound: i64) -> u8 {
    units.min(u8::try_from(bound.max(0)).unwrap_or(units))
}
