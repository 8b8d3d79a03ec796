// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message turned out to be, and what that tells of those who spoke of it.

use super::case::Case;
use super::standing::{EVIDENCE, Standing};
use super::voice::{Side, Voice};
use bulkmark_types::{ReporterId, ReporterKind, UNIT};

/// When a signature is judged, in seconds after the first word on it: most people have read their mail by then.
pub const JUDGED_AFTER: u64 = 2 * 86_400;

/// So few copies tell nothing: they are added to the copies that came.
const FEW: u64 = 20;

/// Nothing is learned of a reporter until others got the message and could object. With so many copies that they got, half of it is.
const EXPOSED: u64 = 3;

/// What a signature turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Spam: those who saw it among their mail objected more often than those who saw it among spam.
    Spam,
    /// Not spam: the other way round.
    NotSpam,
    /// It never was spam, or is disputed: nobody learns from it.
    Open,
}

/// What a reporter is to be credited or charged with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// The reporter.
    pub who: ReporterId,
    /// Whether others bore it out; else they contradicted it.
    pub agreed: bool,
    /// How much of a piece of evidence.
    evidence: u32,
}

impl Judgement {
    /// The reporter's standing after it. `parts` is how many signatures of the message are judged, each for its part.
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
    /// Judges the reporters, to be asked once, [`JUDGED_AFTER`] the first report.
    ///
    /// A reporter on the side that came out gets A / (A + 1) of a piece of evidence, where A is the weight of the *others* on this side,
    /// times c / (c + 3), where c is the number of copies that others got than those who reported it. It gets nothing for repeating the
    /// verdict, nor if all others on its side are newcomers: accounts of one owner could vouch for each other. A reporter on the other side
    /// is charged with as much, by whomever.
    ///
    /// Reporters of interfaces are charged, and never credited: programs stand between an interface and its users, and many of them
    /// let anybody make up a name.
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
        let judged = self.voices.iter().filter_map(|voice| {
            let agreed = voice.side? == side;
            if voice.units == 0 {
                return None;
            }
            let others = if agreed { weights.others_with(voice)? } else { weights.against(voice)? };
            let evidence = u64::from(EVIDENCE) * others / (others + u64::from(UNIT));
            let evidence = evidence * seen_by_others / (seen_by_others + EXPOSED);
            Some(Judgement { who: voice.who, agreed, evidence: u32::try_from(evidence).unwrap_or(EVIDENCE) })
        });
        (outcome, judged.collect())
    }

    /// What the reports on the side that came out weigh, of what was not known; `beyond` is what others' users add.
    fn weights(&self, side: Side, beyond: u64) -> Weights {
        let mut weights = Weights { all: beyond, known: beyond, trusted: 0 };
        for voice in self.voices.iter().filter(|v| (v.told || v.trap) && v.side == Some(side)) {
            let units = u64::from(voice.units);
            weights.all += units;
            weights.known += if voice.newcomer { 0 } else { units };
            weights.trusted += if voice.newcomer || voice.trap { 0 } else { units };
        }
        weights
    }

    /// Copies that others got than those who reported: each of these got one. For spam only those that were shown as such.
    fn seen_by_others(&self, side: Side, copies: Copies) -> u64 {
        let reporters = self.voices.iter().filter(|voice| !voice.trap).count();
        let all = copies.as_mail.saturating_add(copies.as_spam);
        let others = all.saturating_sub(u64::try_from(reporters).unwrap_or(u64::MAX));
        if side == Side::Spam { others.min(copies.as_spam) } else { others }
    }

    /// Who sees spam among the mail nominates it, and who sees mail among spam revokes it. So whether a message was
    /// taken for spam or not, it is known how many objected, of how many who could.
    fn outcome(&self, copies: Copies) -> Outcome {
        if copies.as_spam == 0 {
            return Outcome::Open;
        }
        let rate = |side, copies: u64| {
            let told = self.voices.iter().filter(|v| v.told && !v.trap && v.side == Some(side));
            let units: u64 = told.map(|voice| u64::from(voice.units)).sum();
            // More than come cannot object.
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

    /// Between one word and the next all copies had the same verdict.
    fn copies(&self) -> Copies {
        let mut voices: Vec<&Voice> = self.voices.iter().collect();
        voices.sort_by_key(|voice| voice.seen);
        let mut copies = Copies::default();
        let (mut from, mut spam) = (0, false);
        for (to, spam_after) in
            voices.iter().map(|voice| (voice.seen, voice.spam_after)).chain([(self.seen, false)])
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

/// What the reports on one side weigh together, in units.
struct Weights {
    all: u64,
    /// Those of others than newcomers.
    known: u64,
    /// Those of trusted users.
    trusted: u64,
}

impl Weights {
    /// What all others weigh beside a reporter on this side; none if it earns nothing.
    fn others_with(&self, voice: &Voice) -> Option<u64> {
        let units = u64::from(voice.units);
        if !voice.told || voice.trap || voice.who.kind() == ReporterKind::Interface {
            return None;
        }
        let others_known = self.known - if voice.newcomer { 0 } else { units };
        (others_known > 0).then(|| self.all - units)
    }

    /// What this side weighs against a reporter on the other one; none if it does not matter to it.
    const fn against(&self, voice: &Voice) -> Option<u64> {
        match (voice.trap, self.trusted) {
            (true, 0) => None,
            (true, trusted) => Some(trusted),
            (false, _) => Some(self.all),
        }
    }
}

/// Copies of a message, by the verdict that they had.
#[derive(Debug, Clone, Copy, Default)]
struct Copies {
    as_spam: u64,
    as_mail: u64,
}
