// SPDX-License-Identifier: GPL-3.0-or-later
//! The thresholds and actions that a policy overrides.

use super::correspondents::Correspondents;
use super::rehearse::Rehearse;
use super::reply::RefusalReply;
use super::settings::{Action, Actions, MinSources, Threshold, Thresholds, or_never_for_some};
use serde::Deserialize;

/// `thresholds` of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ThresholdOverrides {
    /// For the count of the `body` signature.
    pub body: Option<Threshold>,
    /// For the count of the `near` signatures.
    #[serde(deserialize_with = "or_never_for_some")]
    pub near: Option<Threshold>,
    /// The number of fully trusted users who must report it as spam.
    pub spam: Option<Threshold>,
    /// The number of other networks that a count must come from.
    pub min_sources: Option<MinSources>,
    /// The number of messages in which it must have come.
    pub min_messages: Option<Threshold>,
}

impl ThresholdOverrides {
    /// All values: those of the policy, and `all` for the rest.
    pub(super) fn over(&self, all: &Thresholds) -> Thresholds {
        Thresholds {
            body: self.body.unwrap_or(all.body),
            near: self.near.unwrap_or(all.near),
            spam: self.spam.unwrap_or(all.spam),
            min_sources: self.min_sources.unwrap_or(all.min_sources),
            min_messages: self.min_messages.unwrap_or(all.min_messages),
        }
    }
}

/// `actions` of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ActionOverrides {
    /// For bulk that is not wanted.
    pub bulk: Option<Action>,
    /// For mail that is bulk by its `near` signatures only.
    pub near: Option<Action>,
    /// For mail that users report as spam.
    pub spam: Option<Action>,
    /// For both of these from a correspondent of a recipient.
    pub correspondents: Option<Correspondents>,
    /// The mail for which they are only rehearsed.
    pub rehearse: Option<Rehearse>,
    /// The answer of `reject`.
    pub reject_reply: Option<RefusalReply<5>>,
    /// The answer of `tempfail`.
    pub tempfail_reply: Option<RefusalReply<4>>,
}

impl ActionOverrides {
    /// All values: those of the policy, and `all` for the rest.
    #[must_use]
    pub fn over(&self, all: &Actions) -> Actions {
        Actions {
            bulk: self.bulk.unwrap_or(all.bulk),
            near: self.near.unwrap_or(all.near),
            spam: self.spam.unwrap_or(all.spam),
            correspondents: self.correspondents.unwrap_or(all.correspondents),
            rehearse: self.rehearse.unwrap_or(all.rehearse),
            reject_reply: self.reject_reply.as_ref().unwrap_or(&all.reject_reply).clone(),
            tempfail_reply: self.tempfail_reply.as_ref().unwrap_or(&all.tempfail_reply).clone(),
        }
    }
}
