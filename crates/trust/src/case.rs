// SPDX-License-Identifier: GPL-3.0-or-later
//! What is said of one signature: whether somebody's word counts, and how much.

use super::settings::Settings;
use super::standing::Standing;
use super::voice::{Side, Voice};
use bulkmark_types::ReporterId;

/// What is known of one signature.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What was said of it in this window, at most once by each reporter, in any order. Voices that weigh nothing may be
    /// left out.
    pub voices: &'a [Voice],
    /// What others said who are not heard here, in units for spam less units against: the federation's share.
    pub elsewhere: i64,
    /// How often it was counted, as mail.
    pub seen: u32,
}

/// What comes of saying something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It counts: the voice is to be kept, and its units are to be added on its side. They may be none.
    Counts(Voice),
    /// It takes back what this reporter said before: the voice is to be kept, and so many units are to be taken off, or added
    /// on the other side.
    TakesBack(Voice, u8),
    /// This reporter said so before: nothing changes.
    Again,
}

impl Case<'_> {
    /// Hears what `who`, of such a standing, says now (in seconds since 1970) on a site with so many established reporters.
    #[must_use]
    pub fn hear(
        &self,
        (who, side): (ReporterId, Side),
        standing: &Standing,
        (settings, established): (&Settings, u32),
        now: u64,
    ) -> Heard {
        let net = self.net();
        let threshold = i64::from(settings.threshold());
        let before = self.voices.iter().find(|voice| voice.who == who);
        if let Some((voice, said)) = before.and_then(|voice| Some((voice, voice.side?))) {
            if said == side {
                return Heard::Again;
            }
            let spam_after = net - signed(said, voice.units) >= threshold;
            let voice = Voice { side: None, units: 0, seen: self.seen, spam_after, ..*voice };
            return Heard::TakesBack(voice, before.map_or(0, |voice| voice.units));
        }
        let newcomer = !standing.is_established(settings, now);
        let mut units = standing.units(settings, now);
        if newcomer {
            let most = self.most_of_newcomers(side, settings, established);
            units = at_most(units, most - i64::from(self.newcomers(side)));
        }
        if side == Side::NotSpam {
            // What nobody nominated cannot be revoked, in advance least of all.
            units = at_most(units, net);
        }
        Heard::Counts(Voice {
            who,
            side: Some(side),
            units,
            told: (net >= threshold) == (side == Side::NotSpam),
            newcomer,
            trap: false,
            seen: self.seen,
            spam_after: net + signed(side, units) >= threshold,
        })
    }

    /// What speaks for spam, less what speaks against it, in units.
    #[must_use]
    pub fn net(&self) -> i64 {
        let units = |voice: &Voice| voice.side.map_or(0, |side| signed(side, voice.units));
        self.voices.iter().map(units).sum::<i64>() + self.elsewhere
    }

    /// What newcomers may weigh together on a side. They may take back what newcomers and other sites said, on a young site too, and of
    /// what this site's known reporters said no more than on an old one.
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

    /// What newcomers weigh together on a side.
    fn newcomers(&self, side: Side) -> u32 {
        let them = self.voices.iter().filter(|voice| voice.newcomer && voice.side == Some(side));
        them.map(|voice| u32::from(voice.units)).sum()
    }
}

/// Units for spam, or less than 0 against it.
fn signed(side: Side, units: u8) -> i64 {
    match side {
        Side::Spam => units.into(),
        Side::NotSpam => -i64::from(units),
    }
}

fn at_most(units: u8, bound: i64) -> u8 {
    units.min(u8::try_from(bound.max(0)).unwrap_or(units))
}
