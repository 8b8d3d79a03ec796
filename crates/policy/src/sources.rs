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
    /// Whether that is enough to act on a count that has reached the threshold: several other networks, or its own network by
    /// itself.
    ///
    /// Its own network is none of the several. Otherwise somebody with one network less could have the first letter of another
    /// one refused.
    #[must_use]
    pub const fn suffice(&self, count: u32, threshold: Threshold, wanted: MinSources) -> bool {
        if self.others >= wanted.get() {
            return true;
        }
        let Some(own) = self.own else { return false };
        own >= threshold.get() || self.others == 0 && Self::is_alone(own, count, threshold)
    }

    /// What was seen below the quarter is in no network's count, so where the rest is no more than that, nobody helped.
    const fn is_alone(own: u32, count: u32, threshold: Threshold) -> bool {
        let quarter = threshold.quarter();
        own.saturating_add(quarter) >= threshold.get() && count.saturating_sub(own) <= quarter
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
    pub(super) const fn suffices(&self, count: u32, threshold: Threshold, wanted: MinSources) -> bool {
        match self {
            Self::NotAsked => true,
            Self::Unknown => wanted.is_off(),
            Self::Known(sources) => wanted.is_off() || sources.suffice(count, threshold, wanted),
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

/// What stands behind the counts of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backings {
    /// In how many messages it was seen, this one included; more if others are like it. None if nobody asked.
    pub messages: Option<u32>,
    /// Of the `body` signature.
    pub body: Backing,
    /// Of the `near` signatures.
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
        // Alone: the first of twenty came before networks were counted.
        assert!(suffice(20, 0, Some(15)) && !suffice(20, 0, Some(14)));
        // With others, of whom one knows or not: all by itself.
        assert!(suffice(99, 1, Some(20)) && !suffice(20, 1, Some(19)));
        assert!(suffice(99, 0, Some(20)) && !suffice(45, 0, Some(19)));
    }

    #[test]
    fn what_is_not_known_is_not_enough() {
        let (threshold, three) = (20i64.try_into().unwrap(), MinSources::default());
        assert!(!Backing::Unknown.suffices(20, threshold, three));
        let off = 1i64.try_into().unwrap();
        assert!(Backing::Unknown.suffices(20, threshold, off));
        assert!(Backing::Known(Sources { others: 0, own: None }).suffices(20, threshold, off));
    }
}
