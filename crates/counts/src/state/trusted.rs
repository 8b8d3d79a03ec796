// SPDX-License-Identifier: GPL-3.0-or-later
//! The weight of user reports: applies the rules of trust to the ledger's data.

use crate::state::cases::MAX_VOICES;
use crate::state::saying::{Saying, Side, Weighing};
use bulkmark_trust::{Heard, Standings, Voice};
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
pub struct Known {
    /// Its count of mail.
    pub seen: u32,
    /// Nominations less revocations, as they weigh here.
    pub net: i64,
}

impl Known {
    /// Makes a case of trust: weight that is not from the votes comes from other sites.
    pub fn case(self, voices: &[Voice]) -> bulkmark_trust::Case<'_> {
        let alone = bulkmark_trust::Case { voices, elsewhere: 0, seen: self.seen };
        bulkmark_trust::Case { elsewhere: self.net - alone.net(), ..alone }
    }
}

/// Returns the weight of a new report, and the vote to store.
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
    // An earlier vote of the reporter has expired or was withdrawn.
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

/// Likewise for a trap, which weighs `full` units if it is fully trusted.
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
        // A revocation only takes back nominations: it has no effect in advance.
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

/// Returns the vote to store after a withdrawal of so many units.
pub fn taken_back(known: Known, voices: &[Voice], saying: &Saying, units: u32) -> Option<Voice> {
    let voice = voices.iter().find(|voice| voice.who == saying.reporter)?;
    let signed = if voice.side? == Side::Spam { -i64::from(units) } else { i64::from(units) };
    let spam_after = known.net + signed >= i64::from(saying.weighing.settings.threshold());
    Some(Voice { side: None, units: 0, seen: known.seen, spam_after, ..*voice })
}
