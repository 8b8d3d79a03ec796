// SPDX-License-Identifier: GPL-3.0-or-later
//! What somebody's word weighs: from what the ledger knows to the rules of trust.

use crate::state::cases::MAX_VOICES;
use crate::state::saying::{Saying, Side, Weighing};
use bulkmark_trust::{Heard, Standings, Voice};
use bulkmark_types::UNIT;

/// Traps' voices of a signature that are kept to be judged: they leave room for users'.
const MAX_TRAPS: usize = 32;

/// Whom to believe, and by which rules.
#[derive(Default)]
pub struct Trust {
    /// What is known of each reporter.
    pub standings: Standings,
    /// As somebody spoke last.
    pub weighing: Weighing,
    /// The day on which it was last swept.
    pub swept: u64,
}

/// What is known of a signature before somebody speaks of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// How often it was counted, as mail.
    pub seen: u32,
    /// Nominations less revocations, as they weigh here.
    pub net: i64,
}

impl Known {
    /// As a case of trust: whatever its voices did not say was said elsewhere.
    pub fn case(self, voices: &[Voice]) -> bulkmark_trust::Case<'_> {
        let alone = bulkmark_trust::Case { voices, elsewhere: 0, seen: self.seen };
        bulkmark_trust::Case { elsewhere: self.net - alone.net(), ..alone }
    }
}

/// What a new word weighs, and how it is remembered.
pub fn weigh_new(
    trust: &Trust,
    known: Known,
    voices: &[Voice],
    saying: &Saying,
    (side, most): (Side, u32),
) -> (u32, Option<Voice>) {
    if let Some(full) = saying.trap {
        return weigh_trap(trust, known, voices, (saying, full), (side, most));
    }
    let who = saying.reporter;
    // What it said before is over, or came to nothing.
    let others: Vec<Voice> = voices.iter().filter(|voice| voice.who != who).copied().collect();
    let standing = trust.standings.of(&who);
    let rules = (&saying.weighing.settings, trust.standings.established());
    let Heard::Counts(voice) = known.case(&others).hear((who, side), &standing, rules, saying.now) else {
        return (0, None);
    };
    let units = u32::from(voice.units).min(most);
    if others.len() < MAX_VOICES {
        let units = u8::try_from(units).unwrap_or(voice.units);
        return (units.into(), Some(Voice { units, ..voice }));
    }
    (if voice.newcomer { 0 } else { units }, None)
}

/// The same for a trap, whose word weighs `full` where it is trusted.
fn weigh_trap(
    trust: &Trust,
    known: Known,
    voices: &[Voice],
    (saying, full): (&Saying, u32),
    (side, most): (Side, u32),
) -> (u32, Option<Voice>) {
    let who = saying.reporter;
    let full = u8::try_from(full.clamp(1, UNIT)).unwrap_or(1);
    let mut units = u32::from(trust.standings.of(&who).trap_units(full, saying.now)).min(most);
    let threshold = i64::from(saying.weighing.settings.threshold());
    let was_spam = known.net >= threshold;
    let mut net = known.net + i64::from(units);
    if side == Side::NotSpam {
        // What nobody nominated cannot be revoked, in advance least of all.
        units = units.min(u32::try_from(known.net.max(0)).unwrap_or(UNIT));
        net = known.net - i64::from(units);
    }
    let voice = Voice {
        who,
        side: Some(side),
        units: u8::try_from(units).unwrap_or(full),
        told: was_spam == (side == Side::NotSpam),
        newcomer: false,
        trap: true,
        seen: known.seen,
        spam_after: net >= threshold,
    };
    let others = voices.iter().filter(|voice| voice.who != who);
    let (all, traps) = others.fold((0, 0), |(all, traps), voice| (all + 1, traps + usize::from(voice.trap)));
    (units, (units > 0 && all < MAX_VOICES && traps < MAX_TRAPS).then_some(voice))
}

/// How it is remembered that somebody took so much back.
pub fn taken_back(known: Known, voices: &[Voice], saying: &Saying, units: u32) -> Option<Voice> {
    let voice = voices.iter().find(|voice| voice.who == saying.reporter)?;
    let signed = if voice.side? == Side::Spam { -i64::from(units) } else { i64::from(units) };
    let spam_after = known.net + signed >= i64::from(saying.weighing.settings.threshold());
    Some(Voice { side: None, units: 0, seen: known.seen, spam_after, ..*voice })
}
