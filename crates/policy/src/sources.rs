// SPDX-License-Identifier: GPL-3.0-or-later
//! The sources of a count, and whether there are enough of them for any action beyond marking.

use super::settings::{MinSources, Threshold};

/// The networks that the copies of a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Other client networks than the message's own.
    pub others: u32,
    /// Counted copies from the message's own network, this one included; `None` if its network is not known.
    pub own: Option<u32>,
}

impl Sources {
    /// Whether they are enough to act on a count that has reached the threshold: several other networks, or its own network alone.
    ///
    /// Its own network is not one of the several. Otherwise an attacker with one network less could get another sender's first letter
    /// refused.
    #[must_use]
    pub const fn suffice(&self, count: u32, threshold: Threshold, wanted: MinSources) -> bool {
        if self.others >= wanted.get() {
            return true;
        }
        let Some(own) = self.own else { return false };
        own >= threshold.get() || self.others == 0 && Self::is_alone(own, count, threshold)
    }

    /// Copies below the quarter are in no network's count. So if the other copies are no more than that, no other network sent any.
    const fn is_alone(own: u32, count: u32, threshold: Threshold) -> bool {
        let quarter = threshold.quarter();
        own.saturating_add(quarter) >= threshold.get() && count.saturating_sub(own) <= quarter
    }
}

/// The knowledge about the sources of a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Backing {
    /// Not looked up: the count is too low, or sources do not matter.
    #[default]
    NotAsked,
    /// The ledger failed before it returned all of them.
    Unknown,
    /// These.
    Known(Sources),
}

impl Backing {
    pub(super) const fn suffices(&self, count: u32, threshold: Threshold, wanted: MinSources) -> bool {
        match self {
            Self::NotAsked => true,
            Self::Unknown => wanted.is_off(),
            Self::Known(sources) => wanted.is_off() || sources.suffice(count, threshold, wanted),
        }
    }
}

impl Backing {
    /// The fields in header and log.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let unknown = || "unknown".to_owned();
        match self {
            Self::NotAsked => Vec::new(),
            Self::Unknown => vec![("sources", unknown())],
            Self::Known(Sources { others, own }) => {
                vec![
                    ("sources", others.to_string()),
                    ("own", own.map_or_else(unknown, |own| own.to_string())),
                ]
            }
        }
    }
}

/// The sources of a message's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backings {
    /// The number of messages in which it was seen, this one included; more if others are similar. `None` if not looked up.
    pub messages: Option<u32>,
    /// The sources of the `body` count.
    pub body: Backing,
    /// The sources of the `near` count.
    pub near: Backing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suffice(count: u32, others: u32, own: Option<u32>) -> bool {
        let three = MinSources::default();
        Sources { others, own }.suffice(count, 20i64.try_into().unwrap(), three)
    }

    #[test]
    fn three_other_networks_or_the_own_one_alone() {
        assert!(suffice(20, 3, None) && suffice(20, 3, Some(1)) && !suffice(99, 2, Some(19)));
        assert!(!suffice(99, 2, None) && !suffice(99, 0, None));
        // Alone: the first of twenty came before networks are counted.
        assert!(suffice(20, 0, Some(15)) && !suffice(20, 0, Some(14)));
        // With others, known or not: its own network must reach the threshold.
        assert!(suffice(99, 1, Some(20)) && !suffice(20, 1, Some(19)));
        assert!(suffice(99, 0, Some(20)) && !suffice(45, 0, Some(19)));
    }

    #[test]
    fn unknown_sources_are_not_enough() {
        let (threshold, three) = (20i64.try_into().unwrap(), MinSources::default());
        assert!(!Backing::Unknown.suffices(20, threshold, three));
        let off = 1i64.try_into().unwrap();
        assert!(Backing::Unknown.suffices(20, threshold, off));
        assert!(Backing::Known(Sources { others: 0, own: None }).suffices(20, threshold, off));
    }
}
