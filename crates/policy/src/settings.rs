// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of thresholds, actions and white lists.

use super::correspondents::Correspondents;
use super::fraction::Fraction;
use super::reply::RefusalReply;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;

/// The count from which on a message is bulk: 1 to 2^24.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Threshold(u32);

impl Threshold {
    /// The largest threshold.
    pub const MAX: u32 = 1 << 24;

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// A quarter of it, rounded up: from there on networks are counted.
    #[must_use]
    pub const fn quarter(self) -> u32 {
        self.0.div_ceil(4)
    }

    /// Whether there is a count, and it is that high.
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

/// From how many other client networks a count must come: 1 to 7. Of one signature no more than eight networks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct MinSources(u32);

impl MinSources {
    /// The most.
    pub const MAX: u32 = 7;

    /// As a number.
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
    /// For the count of the `near` signatures.
    pub near: Threshold,
    /// For what people say: how many of them must call it spam, whose word weighs whole.
    pub spam: Threshold,
    /// From how many other networks a count must come before more is done than to mark.
    pub min_sources: MinSources,
    /// In how many messages it must have come before more is done than to mark, however many recipients these had. Where `body` is
    /// lower, that is enough.
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

/// Between which thresholds all policies have theirs: what is asked and told of networks must be enough for each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The lowest of each.
    pub lowest: Thresholds,
    /// The highest of each.
    pub highest: Thresholds,
}

impl Range {
    /// That of these and one more.
    #[must_use]
    pub fn with(self, more: &Thresholds) -> Self {
        let Self { lowest, highest } = self;
        let lower = |a: Threshold, b: Threshold| if a.0 <= b.0 { a } else { b };
        let higher = |a: Threshold, b: Threshold| if a.0 >= b.0 { a } else { b };
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
                near: higher(highest.near, more.near),
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

/// What is done with a message.
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

    /// How much it takes away: the mildest is 0. What is held can still be released; what is refused temporarily mostly comes back
    /// to its sender, days later; what is refused does so at once; and of what is discarded nobody hears.
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

/// By what `share` chooses the mail for which actions are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareBy {
    /// The mailboxes of the recipients.
    #[default]
    Recipient,
    /// The network of the client: /24 of IPv4, /48 of IPv6.
    Client,
}

/// `[actions]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Actions {
    /// For bulk that is not wanted.
    pub bulk: Action,
    /// For what is bulk by its `near` signatures alone.
    pub near: Action,
    /// For what people call spam. Where it is bulk, too, the harsher is done.
    pub spam: Action,
    /// For both of these from somebody to whom a recipient wrote.
    pub correspondents: Correspondents,
    /// Whether these actions are only rehearsed.
    pub rehearse: bool,
    /// The part of recipients or clients for whom they are taken; for others they are rehearsed.
    pub share: Fraction,
    /// Of which of these.
    pub share_by: ShareBy,
    /// The answer of `reject`.
    pub reject_reply: RefusalReply<5>,
    /// The answer of `tempfail`.
    pub tempfail_reply: RefusalReply<4>,
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            bulk: Action::default(),
            near: Action::default(),
            spam: Action::default(),
            correspondents: Correspondents::default(),
            rehearse: false,
            share: Fraction::ONE,
            share_by: ShareBy::default(),
            reject_reply: RefusalReply::default(),
            tempfail_reply: RefusalReply::default(),
        }
    }
}

impl Actions {
    /// Whether more is done with some bulk or spam than to mark it.
    #[must_use]
    pub fn do_more_than_mark(&self) -> bool {
        [self.bulk, self.near, self.spam].iter().any(|&action| action != Action::Mark)
    }

    /// Whether anything is refused temporarily.
    #[must_use]
    pub fn has_tempfail(&self) -> bool {
        !self.rehearse && [self.bulk, self.near, self.spam].contains(&Action::Tempfail)
    }

    /// The same answers, where bulk and spam are only marked.
    #[must_use]
    pub fn marking(&self) -> Self {
        Self { bulk: Action::Mark, near: Action::Mark, spam: Action::Mark, ..self.clone() }
    }
}

/// What happens to a message that could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is delivered, with the verdict `unknown`.
    #[default]
    Accept,
    /// It is refused temporarily.
    Tempfail,
}

/// What counts as one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each recipient, so that a message to twenty is as bulky as twenty messages to one.
    #[default]
    Recipient,
    /// Each message, whatever the number of its recipients.
    Message,
}

/// `[whitelist]`, and that of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WhiteListFiles {
    /// Files of one entry a line.
    pub files: Vec<PathBuf>,
}
