// SPDX-License-Identifier: GPL-3.0-or-later
//! The settings of thresholds, actions and white lists.

use super::correspondents::Correspondents;
use super::rehearse::Rehearse;
use super::reply::RefusalReply;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;

/// The count from which on a message is bulk: 1 to 2^24.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Threshold(u32);

impl Threshold {
    /// The largest threshold.
    pub const MAX: u32 = 1 << 24;

    /// The threshold that no count reaches: 0 in the configuration, where that is allowed.
    pub const NEVER: Self = Self(u32::MAX);

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as in the configuration, where 0 is [`NEVER`](Self::NEVER).
    #[must_use]
    pub const fn configured(self) -> u32 {
        if self.0 == u32::MAX { 0 } else { self.0 }
    }

    /// A quarter of it, rounded up: the count from which on networks are counted.
    #[must_use]
    pub const fn quarter(self) -> u32 {
        self.0.div_ceil(4)
    }

    /// Whether there is a count, and it has reached the threshold.
    #[must_use]
    pub fn is_reached(self, count: Option<u32>) -> bool {
        count.is_some_and(|count| count >= self.0)
    }
}

impl TryFrom<i64> for Threshold {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        let in_range = u32::try_from(value).ok().filter(|value| (1..=Self::MAX).contains(value));
        in_range.map(Self).ok_or_else(|| format!("found {value}, expected 1 to {}", Self::MAX))
    }
}

/// A threshold that may be 0.
fn or_never<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Threshold, D::Error> {
    match i64::deserialize(deserializer)? {
        0 => Ok(Threshold::NEVER),
        value => Threshold::try_from(value)
            .map_err(|_| D::Error::custom(format!("found {value}, expected 0 to {}", Threshold::MAX))),
    }
}

/// The same for a policy.
pub(super) fn or_never_for_some<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Threshold>, D::Error> {
    or_never(deserializer).map(Some)
}

/// The number of other client networks that a count must come from: 1 to 7. At most eight networks of one signature are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct MinSources(u32);

impl MinSources {
    /// The largest number.
    pub const MAX: u32 = 7;

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether networks do not matter.
    #[must_use]
    pub const fn is_off(self) -> bool {
        self.0 <= 1
    }
}

impl Default for MinSources {
    fn default() -> Self {
        Self(3)
    }
}

impl TryFrom<i64> for MinSources {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        let in_range = u32::try_from(value).ok().filter(|value| (1..=Self::MAX).contains(value));
        in_range.map(Self).ok_or_else(|| format!("found {value}, expected 1 to {}", Self::MAX))
    }
}

/// `[thresholds]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Thresholds {
    /// For the count of the `body` signature.
    pub body: Threshold,
    /// For the count of the `near` signatures; if never, for all mail, they are not made.
    #[serde(deserialize_with = "or_never")]
    pub near: Threshold,
    /// For user reports: the number of fully trusted users who must report it as spam.
    pub spam: Threshold,
    /// The number of other networks that a count must come from for any action beyond marking.
    pub min_sources: MinSources,
    /// The number of messages, regardless of recipients, in which it must have come for any action beyond marking. If `body` is lower, that
    /// is enough.
    pub min_messages: Threshold,
}

impl Default for Thresholds {
    fn default() -> Self {
        // The paper, section 4: DCC's users usually take 20.
        let spam = Threshold(3);
        Self {
            body: Threshold(20),
            near: Threshold(20),
            spam,
            min_sources: MinSources::default(),
            min_messages: Threshold(3),
        }
    }
}

/// The range of the thresholds of all policies: reports and look-ups of networks must be enough for each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The lowest of each.
    pub lowest: Thresholds,
    /// The highest of each.
    pub highest: Thresholds,
}

impl Range {
    /// The range extended by these thresholds.
    #[must_use]
    pub fn with(self, more: &Thresholds) -> Self {
        let Self { lowest, highest } = self;
        let lower = |a: Threshold, b: Threshold| if a.0 <= b.0 { a } else { b };
        let higher = |a: Threshold, b: Threshold| if a.0 >= b.0 { a } else { b };
        let higher_near = match (highest.near, more.near) {
            (Threshold::NEVER, near) | (near, Threshold::NEVER) => near,
            (a, b) => higher(a, b),
        };
        Self {
            lowest: Thresholds {
                body: lower(lowest.body, more.body),
                near: lower(lowest.near, more.near),
                spam: lower(lowest.spam, more.spam),
                min_sources: MinSources(lowest.min_sources.0.min(more.min_sources.0)),
                min_messages: lower(lowest.min_messages, more.min_messages),
            },
            highest: Thresholds {
                body: higher(highest.body, more.body),
                near: higher_near,
                spam: higher(highest.spam, more.spam),
                min_sources: MinSources(highest.min_sources.0.max(more.min_sources.0)),
                min_messages: higher(highest.min_messages, more.min_messages),
            },
        }
    }
}

impl From<&Thresholds> for Range {
    fn from(only: &Thresholds) -> Self {
        Self { lowest: only.clone(), highest: only.clone() }
    }
}

/// The action on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It is delivered with the header.
    #[default]
    Mark,
    /// It is refused for good.
    Reject,
    /// It is refused temporarily.
    Tempfail,
    /// It is accepted and discarded.
    Discard,
    /// It is accepted and held in the MTA's queue.
    Quarantine,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mark, Self::Reject, Self::Tempfail, Self::Discard, Self::Quarantine];

    /// The harshness; the mildest action has 0. Held mail can still be released; temporarily refused mail mostly returns to its sender days
    /// later, refused mail at once; and nobody learns of discarded mail.
    #[must_use]
    pub const fn harshness(self) -> u8 {
        match self {
            Self::Mark => 0,
            Self::Quarantine => 1,
            Self::Tempfail => 2,
            Self::Reject => 3,
            Self::Discard => 4,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mark => "mark",
            Self::Reject => "reject",
            Self::Tempfail => "tempfail",
            Self::Discard => "discard",
            Self::Quarantine => "quarantine",
        })
    }
}

/// `[actions]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Actions {
    /// For bulk that is not wanted.
    pub bulk: Action,
    /// For mail that is bulk by its `near` signatures only.
    pub near: Action,
    /// For mail that users report as spam. If it is also bulk, the harsher action is taken.
    pub spam: Action,
    /// For both of these from a correspondent of a recipient.
    pub correspondents: Correspondents,
    /// The mail for which these actions are only rehearsed.
    pub rehearse: Rehearse,
    /// The answer of `reject`.
    pub reject_reply: RefusalReply<5>,
    /// The answer of `tempfail`.
    pub tempfail_reply: RefusalReply<4>,
}

impl Actions {
    /// Whether some bulk or spam is not only marked.
    #[must_use]
    pub fn do_more_than_mark(&self) -> bool {
        [self.bulk, self.near, self.spam].iter().any(|&action| action != Action::Mark)
    }

    /// Whether some action is to refuse temporarily.
    #[must_use]
    pub fn has_tempfail(&self) -> bool {
        self.rehearse != Rehearse::Always && [self.bulk, self.near, self.spam].contains(&Action::Tempfail)
    }

    /// The same settings with the actions set to `mark`.
    #[must_use]
    pub fn marking(&self) -> Self {
        Self { bulk: Action::Mark, near: Action::Mark, spam: Action::Mark, ..self.clone() }
    }
}

/// The treatment of a message that could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is delivered, with the verdict `unknown`.
    #[default]
    Accept,
    /// It is refused temporarily.
    Tempfail,
}

/// The unit of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each recipient: a message to twenty counts as much as twenty messages to one.
    #[default]
    Recipient,
    /// Each message, regardless of the number of recipients.
    Message,
}

/// `[whitelist]`, and that of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WhiteListFiles {
    /// Files of one entry a line.
    pub files: Vec<PathBuf>,
}
