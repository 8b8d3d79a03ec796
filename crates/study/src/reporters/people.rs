// SPDX-License-Identifier: GPL-3.0-or-later
//! The reporters: honest people who err, and liars.

use crate::random::below;
use bulkmark_trust::Side;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The day on which patient liars begin to lie, and an attacker opens his accounts.
pub const TURN: u32 = 30;

/// The behaviour of liars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Random reports.
    Random,
    /// Always the opposite of the truth.
    Opposite,
    /// The truth, without error, until the day; from then on the opposite.
    Patient(u32),
    /// No reports until the day; from then on the opposite of the truth.
    Sleeper(u32),
    /// No reports.
    Silent,
}

impl Lie {
    /// The simulated behaviours; patience lasts until the day [`TURN`].
    pub const LIES: [Self; 3] = [Self::Random, Self::Opposite, Self::Patient(TURN)];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Opposite => "opposite",
            Self::Patient(_) => "patient",
            Self::Sleeper(_) => "sleepers",
            Self::Silent => "silent",
        }
    }

    /// A liar's report of a message.
    pub(super) fn says(self, truth: Side, day: u32, random: &mut Xoshiro256PlusPlus) -> Option<Side> {
        match self {
            Self::Silent => None,
            Self::Sleeper(until) if day < until => None,
            Self::Random if below(random, 2) == 0 => Some(truth),
            Self::Patient(until) if day < until => Some(truth),
            _ => Some(opposite(truth)),
        }
    }
}

/// The other side.
pub(super) const fn opposite(side: Side) -> Side {
    match side {
        Side::Spam => Side::NotSpam,
        Side::NotSpam => Side::Spam,
    }
}

/// How many of a hundred people report how many of a hundred messages in the wrong folder: most people hardly ever do.
const TROUBLE: [(u32, u32); 4] = [(40, 1), (30, 5), (20, 20), (10, 60)];

/// Draws how many of a hundred messages a person reports.
pub(super) fn trouble(random: &mut Xoshiro256PlusPlus) -> u32 {
    let mut drawn = below(random, 100);
    for (share, messages) in TROUBLE {
        if drawn < share {
            return messages;
        }
        drawn -= share;
    }
    0
}

/// People's rate of error, in percent of the messages that they see.
const ERROR: u32 = 5;

/// An honest person's opinion of a message.
pub(super) fn opinion(truth: Side, random: &mut Xoshiro256PlusPlus) -> Side {
    if below(random, 100) < ERROR { opposite(truth) } else { truth }
}
