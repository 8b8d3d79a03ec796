// SPDX-License-Identifier: GPL-3.0-or-later
//! Who reports: honest people who err, and liars.

use crate::random::below;
use bulkmark_trust::Side;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The day on which patient liars begin to lie, and somebody opens his accounts.
pub const TURN: u32 = 30;

/// How liars lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Spam or not as a coin falls.
    Random,
    /// Always the opposite of what is true.
    Opposite,
    /// What is true, without error, until the day; from then on the opposite.
    Patient(u32),
    /// Nothing until the day; from then on the opposite.
    Sleeper(u32),
    /// They say nothing.
    Silent,
}

impl Lie {
    /// Those that are simulated; patience lasts until the day [`TURN`].
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

    /// What a liar says of a message.
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

/// How many of a hundred people take the trouble for how many of a hundred messages that lie in the wrong folder: most
/// people hardly ever do.
const TROUBLE: [(u32, u32); 4] = [(40, 1), (30, 5), (20, 20), (10, 60)];

/// Draws of how many of a hundred messages somebody takes the trouble.
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

/// How often people err, in percent of what they look at.
const ERROR: u32 = 5;

/// What an honest person thinks of a message.
pub(super) fn opinion(truth: Side, random: &mut Xoshiro256PlusPlus) -> Side {
    if below(random, 100) < ERROR { opposite(truth) } else { truth }
}
