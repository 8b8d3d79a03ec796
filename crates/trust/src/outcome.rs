// SPDX-License-Identifier: GPL-3.0-or-later
//! The outcome of a message (spam or not), and the evidence that it gives about its reporters.

use super::case::Case;
use super::standing::{EVIDENCE, Standing};
use super::vote::{Side, Vote};
use bulkmark_types::{ReporterId, ReporterKind, UNIT};

/// The time from the first user report on a signature to its judgement, in seconds: most people have read their mail by then.
pub const JUDGED_AFTER: u64 = 2 * 86_400;

/// Added to the copies that came, because a rate from few copies is uncertain.
const FEW: u64 = 20;

/// Reporters earn evidence only if others got the message and could object. With this many copies for others, they earn half of it.
const EXPOSED: u64 = 3;

/// The outcome of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Spam: users who saw it among their mail objected more often than users who saw it among spam.
    Spam,
    /// Not spam: the other way round.
    NotSpam,
    /// It never was spam, or is disputed: no reporter gains or loses trust.
    Open,
}

/// Evidence for or against one reporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// The reporter.
    pub reporter: ReporterId,
    /// True if others agreed with the reporter, false if they contradicted it.
    pub agreed: bool,
    /// In parts of [`EVIDENCE`].
    evidence: u32,
}

impl Judgement {
    /// Returns the reporter's standing afterwards. `parts` is the number of judged signatures of the message; each gives its part of the
    /// evidence.
    #[must_use]
    pub fn apply(&self, mut standing: Standing, parts: u32, now: u64) -> Standing {
        let evidence = self.evidence / parts.max(1);
        if self.agreed {
            standing.agree(evidence, now);
        } else {
            standing.contradict(evidence, now);
        }
        standing
    }
}

impl Case<'_> {
    /// Judges the reporters. Called once, [`JUDGED_AFTER`] the first report.
    ///
    /// A reporter on the winning side gets A / (A + 1) of a piece of evidence, where A is the weight of the *others* on this side, times c
    /// / (c + 3), where c is the number of copies for others than the reporters. It gets nothing for repeating the verdict, nor if all
    /// others on its side are newcomers: accounts of one owner could vouch for each other. A reporter on the other side is charged by the
    /// same formula, and newcomers count in it.
    ///
    /// Reporters of interfaces are charged, but never credited: programs stand between an interface and its users, and many of them accept
    /// any name.
    ///
    /// A trap is charged only by the weight of trusted users, and is never credited: its report is no merit.
    #[must_use]
    pub fn judge(&self) -> (Outcome, Vec<Judgement>) {
        let copies = self.copies();
        let outcome = self.outcome(copies);
        let (side, beyond) = match outcome {
            Outcome::Spam => (Side::Spam, self.elsewhere),
            Outcome::NotSpam => (Side::NotSpam, -self.elsewhere),
            Outcome::Open => return (outcome, Vec::new()),
        };
        let seen_by_others = self.seen_by_others(side, copies);
        let weights = self.weights(side, u64::try_from(beyond).unwrap_or(0));
        let judged = self.votes.iter().filter_map(|vote| {
            let agreed = vote.side? == side;
            if vote.units == 0 {
                return None;
            }
            let others = if agreed { weights.others_with(vote)? } else { weights.against(vote)? };
            let evidence = u64::from(EVIDENCE) * others / (others + u64::from(UNIT));
            let evidence = evidence * seen_by_others / (seen_by_others + EXPOSED);
            Some(Judgement {
                reporter: vote.reporter,
                agreed,
                evidence: u32::try_from(evidence).unwrap_or(EVIDENCE),
            })
        });
        (outcome, judged.collect())
    }

    /// Sums the weights of the informative votes and of the traps on the winning side. `beyond` is the net weight of other sites' users for
    /// this side.
    fn weights(&self, side: Side, beyond: u64) -> Weights {
        let mut weights = Weights { all: beyond, known: beyond, trusted: 0 };
        for vote in self.votes.iter().filter(|v| (v.informative || v.trap) && v.side == Some(side)) {
            let units = u64::from(vote.units);
            weights.all += units;
            weights.known += if vote.newcomer { 0 } else { units };
            weights.trusted += if vote.newcomer || vote.trap { 0 } else { units };
        }
        weights
    }

    /// The copies for others than the reporters, who got one each. For spam, only copies that were shown as spam.
    fn seen_by_others(&self, side: Side, copies: Copies) -> u64 {
        let reporters = self.votes.iter().filter(|vote| !vote.trap).count();
        let all = copies.as_mail.saturating_add(copies.as_spam);
        let others = all.saturating_sub(u64::try_from(reporters).unwrap_or(u64::MAX));
        if side == Side::Spam { others.min(copies.as_spam) } else { others }
    }

    /// Users nominate spam that they see among their mail, and revoke mail that they see among spam. So for both verdicts the number of
    /// objections is known, and the number of users who could object.
    fn outcome(&self, copies: Copies) -> Outcome {
        if copies.as_spam == 0 {
            return Outcome::Open;
        }
        let rate = |side, copies: u64| {
            let informative = self.votes.iter().filter(|v| v.informative && !v.trap && v.side == Some(side));
            let units: u64 = informative.map(|vote| u64::from(vote.units)).sum();
            // There cannot be more objections than copies.
            (units.min(copies * u64::from(UNIT)) << 20) / (copies + FEW)
        };
        let (spam, not) = (rate(Side::Spam, copies.as_mail), rate(Side::NotSpam, copies.as_spam));
        if spam >= 2 * not {
            Outcome::Spam
        } else if not >= 2 * spam {
            Outcome::NotSpam
        } else {
            Outcome::Open
        }
    }

    /// Counts the copies by verdict: between one vote and the next, all had the same.
    fn copies(&self) -> Copies {
        let mut votes: Vec<&Vote> = self.votes.iter().collect();
        votes.sort_by_key(|vote| vote.seen);
        let mut copies = Copies::default();
        let (mut from, mut spam) = (0, false);
        for (to, spam_after) in
            votes.iter().map(|vote| (vote.seen, vote.spam_after)).chain([(self.seen, false)])
        {
            let came = u64::from(to.saturating_sub(from));
            if spam {
                copies.as_spam += came;
            } else {
                copies.as_mail += came;
            }
            (from, spam) = (to.max(from), spam_after);
        }
        copies
    }
}

/// The summed weights of the reports on one side, in units.
struct Weights {
    all: u64,
    /// Without newcomers.
    known: u64,
    /// Only trusted users.
    trusted: u64,
}

impl Weights {
    /// The weight of all others on this side; `None` if the reporter earns nothing.
    fn others_with(&self, vote: &Vote) -> Option<u64> {
        let units = u64::from(vote.units);
        if !vote.informative || vote.trap || vote.reporter.kind() == ReporterKind::Interface {
            return None;
        }
        let others_known = self.known - if vote.newcomer { 0 } else { units };
        (others_known > 0).then(|| self.all - units)
    }

    /// The weight of this side against a reporter on the other one; `None` if it does not affect the reporter.
    const fn against(&self, vote: &Vote) -> Option<u64> {
        match (vote.trap, self.trusted) {
            (true, 0) => None,
            (true, trusted) => Some(trusted),
            (false, _) => Some(self.all),
        }
    }
}

/// Copies of a message, by their verdict.
#[derive(Debug, Clone, Copy, Default)]
struct Copies {
    as_spam: u64,
    as_mail: u64,
}
