// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a count comes from enough networks that more may be done with a message than to mark it.

use super::settings::{MinSources, Threshold};

/// Where the copies of a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Different client networks beside the message's own.
    pub others: u32,
    /// Copies from the message's own network, this one included, as far as they are counted; none if its network is not known.
    pub own: Option<u32>,
}

impl Sources {
    /// Whether that is enough to act on a count that has reached the threshold: several other networks, or its own network alone.
    ///
    /// Its own network is none of the several. Otherwise somebody with one network less could have the first letter of another
    /// one refused.
    #[must_use]
    pub const fn suffice(&self, threshold: Threshold, wanted: MinSources) -> bool {
        if self.others >= wanted.get() {
            return true;
        }
        // What was seen below the quarter is in no network's count.
        let alone = if self.others == 0 { threshold.get() - threshold.quarter() } else { threshold.get() };
        matches!(self.own, Some(own) if own >= alone)
    }
}

/// What is known of the sources of a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Backing {
    /// Nobody asked: the count is too low for it to matter, or they are not wanted.
    #[default]
    NotAsked,
    /// The ledger failed before it told all of it.
    Unknown,
    /// This.
    Known(Sources),
}

impl Backing {
    pub(super) const fn suffices(&self, threshold: Threshold, wanted: MinSources) -> bool {
        match self {
            Self::NotAsked => true,
            Self::Unknown => wanted.is_off(),
            Self::Known(sources) => wanted.is_off() || sources.suffice(threshold, wanted),
        }
    }
}

impl Backing {
    /// The fields by which header and log tell it.
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

/// The same for both counts of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backings {
    /// Of the `body` signature.
    pub body: Backing,
    /// Of the `near` signatures.
    pub near: Backing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suffice(others: u32, own: Option<u32>) -> bool {
        let three = MinSources::default();
        Sources { others, own }.suffice(20i64.try_into().unwrap(), three)
    }

    #[test]
    fn three_other_networks_or_the_own_one_alone() {
        assert!(suffice(3, None) && suffice(3, Some(1)) && !suffice(2, Some(19)));
        assert!(!suffice(2, None) && !suffice(0, None));
        // Alone: four of twenty came before networks were counted.
        assert!(suffice(0, Some(15)) && !suffice(0, Some(14)));
        // With others: all by itself.
        assert!(suffice(1, Some(20)) && !suffice(1, Some(19)));
    }

    #[test]
    fn what_is_not_known_is_not_enough() {
        let (threshold, three) = (20i64.try_into().unwrap(), MinSources::default());
        assert!(!Backing::Unknown.suffices(threshold, three));
        let off = 1i64.try_into().unwrap();
        assert!(Backing::Unknown.suffices(threshold, off));
        assert!(Backing::Known(Sources { others: 0, own: None }).suffices(threshold, off));
    }
}
