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

/// Nothing is learned of those who nominated until their message was shown as spam to others, who could object. With so many
/// copies that were, half of it is.
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
    /// Judges those who spoke, to be asked once, [`JUDGED_AFTER`] the first word.
    ///
    /// Who was on the side that came out gets A / (A + 1) of a piece of evidence, where A is what the *others* on this side
    /// weigh; but only who told what was not known, since repeating the verdict is no merit. Who was on the other side is
    /// charged with as much.
    ///
    /// Whoever reports by a door is charged, and never credited: programs stand between the door and the people, and many of them
    /// let anybody make up a name.
    ///
    /// A trap is charged only by what users weigh whom one trusts, and is never credited: its word is no merit.
    #[must_use]
    pub fn judge(&self) -> (Outcome, Vec<Judgement>) {
        let copies = self.copies();
        let outcome = self.outcome(copies);
        let (side, beyond) = match outcome {
            Outcome::Spam => (Side::Spam, self.elsewhere),
            Outcome::NotSpam => (Side::NotSpam, -self.elsewhere),
            Outcome::Open => return (outcome, Vec::new()),
        };
        let on_side = self.voices.iter().filter(|v| (v.told || v.trap) && v.side == Some(side));
        let trusted = on_side.clone().filter(|voice| !voice.newcomer && !voice.trap);
        let trusted: u64 = trusted.map(|voice| u64::from(voice.units)).sum();
        let all =
            on_side.map(|voice| u64::from(voice.units)).sum::<u64>() + u64::try_from(beyond).unwrap_or(0);
        let judged = self.voices.iter().filter_map(|voice| {
            let agreed = voice.side? == side;
            let earns = voice.told && !voice.trap && voice.who.kind() != ReporterKind::Door;
            if voice.units == 0 || agreed && !earns || voice.trap && trusted == 0 {
                return None;
            }
            let all = if voice.trap { trusted } else { all };
            let others = all - if agreed { u64::from(voice.units) } else { 0 };
            let mut evidence = u64::from(EVIDENCE) * others / (others + u64::from(UNIT));
            if side == Side::Spam {
                evidence = evidence * copies.as_spam / (copies.as_spam + EXPOSED);
            }
            Some(Judgement { who: voice.who, agreed, evidence: u32::try_from(evidence).unwrap_or(EVIDENCE) })
        });
        (outcome, judged.collect())
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

/// Copies of a message, by the verdict that they had.
#[derive(Debug, Clone, Copy, Default)]
struct Copies {
    as_spam: u64,
    as_mail: u64,
}
