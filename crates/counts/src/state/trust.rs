// SPDX-License-Identifier: GPL-3.0-or-later
//! The weight of user reports: applies the rules of trust to the ledger's data.

use crate::state::cases::MAX_VOTES;
use crate::state::submission::{Side, Submission, Weighing};
use bulkmark_trust::{Effect, Standings, Vote};
use bulkmark_types::UNIT;

/// The most votes of traps for a signature, so that there is room for users' votes.
const MAX_TRAPS: usize = 32;

/// The reporters' standings, and the rules for weights.
#[derive(Default)]
pub struct Trust {
    /// The standing of each reporter.
    pub standings: Standings,
    /// The rules of the last submission.
    pub weighing: Weighing,
    /// The day of the last sweep.
    pub swept: u64,
}

/// The facts about a signature before a report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// Its count of mail.
    pub seen: u32,
    /// Nominations less revocations, as they weigh here.
    pub net: i64,
}

impl Facts {
    /// Makes a case of trust: weight that is not from the votes comes from other sites.
    pub fn case(self, votes: &[Vote]) -> bulkmark_trust::Case<'_> {
        let alone = bulkmark_trust::Case { votes, elsewhere: 0, seen: self.seen };
        bulkmark_trust::Case { elsewhere: self.net - alone.net(), ..alone }
    }
}

/// Returns the weight of a new report, and the vote to store.
pub fn weigh_new(
    trust: &Trust,
    known: Facts,
    votes: &[Vote],
    submission: &Submission,
    (side, most): (Side, u32),
) -> (u32, Option<Vote>) {
    if let Some(full) = submission.trap {
        return weigh_trap(trust, known, votes, (submission, full), (side, most));
    }
    let reporter = submission.reporter;
    // An earlier vote of the reporter has expired or was withdrawn.
    let others: Vec<Vote> = votes.iter().filter(|vote| vote.reporter != reporter).copied().collect();
    let standing = trust.standings.of(&reporter);
    let rules = (&submission.weighing.settings, trust.standings.established());
    let Effect::Counts(vote) = known.case(&others).weigh((reporter, side), &standing, rules, submission.now)
    else {
        return (0, None);
    };
    let units = u32::from(vote.units).min(most);
    if others.len() < MAX_VOTES {
        let units = u8::try_from(units).unwrap_or(vote.units);
        return (units.into(), Some(Vote { units, ..vote }));
    }
    (if vote.newcomer { 0 } else { units }, None)
}

/// Likewise for a trap, which weighs `full` units if it is fully trusted.
fn weigh_trap(
    trust: &Trust,
    known: Facts,
    votes: &[Vote],
    (submission, full): (&Submission, u32),
    (side, most): (Side, u32),
) -> (u32, Option<Vote>) {
    let reporter = submission.reporter;
    let full = u8::try_from(full.clamp(1, UNIT)).unwrap_or(1);
    let mut units = u32::from(trust.standings.of(&reporter).trap_units(full, submission.now)).min(most);
    let threshold = i64::from(submission.weighing.settings.threshold());
    let was_spam = known.net >= threshold;
    let mut net = known.net + i64::from(units);
    if side == Side::NotSpam {
        // A revocation only takes back nominations: it has no effect in advance.
        units = units.min(u32::try_from(known.net.max(0)).unwrap_or(UNIT));
        net = known.net - i64::from(units);
    }
    let vote = Vote {
        reporter,
        side: Some(side),
        units: u8::try_from(units).unwrap_or(full),
        informative: was_spam == (side == Side::NotSpam),
        newcomer: false,
        trap: true,
        seen: known.seen,
        spam_after: net >= threshold,
    };
    let others = votes.iter().filter(|vote| vote.reporter != reporter);
    let (all, traps) = others.fold((0, 0), |(all, traps), vote| (all + 1, traps + usize::from(vote.trap)));
    (units, (units > 0 && all < MAX_VOTES && traps < MAX_TRAPS).then_some(vote))
}

/// Returns the vote to store after a withdrawal of so many units.
pub fn withdrawn(known: Facts, votes: &[Vote], submission: &Submission, units: u32) -> Option<Vote> {
    let vote = votes.iter().find(|vote| vote.reporter == submission.reporter)?;
    let signed = if vote.side? == Side::Spam { -i64::from(units) } else { i64::from(units) };
    let spam_after = known.net + signed >= i64::from(submission.weighing.settings.threshold());
    Some(Vote { side: None, units: 0, seen: known.seen, spam_after, ..*vote })
}
