// SPDX-License-Identifier: GPL-3.0-or-later
//! What a policy says of thresholds and actions; what it does not say is as for everybody.

use super::correspondents::Correspondents;
use super::reply::{Code, RejectReply, Status, TempfailReply, Text};
use super::settings::{Action, Actions, MinSources, Threshold, Thresholds};
use serde::Deserialize;

/// `thresholds` of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SomeThresholds {
    /// For the count of the `body` signature.
    pub body: Option<Threshold>,
    /// For the count of the `near` signatures.
    pub near: Option<Threshold>,
    /// How many people must call it spam.
    pub spam: Option<Threshold>,
    /// From how many other networks a count must come.
    pub min_sources: Option<MinSources>,
}

impl SomeThresholds {
    /// All of them, on what holds for everybody.
    pub(super) fn over(&self, all: &Thresholds) -> Thresholds {
        Thresholds {
            body: self.body.unwrap_or(all.body),
            near: self.near.unwrap_or(all.near),
            spam: self.spam.unwrap_or(all.spam),
            min_sources: self.min_sources.unwrap_or(all.min_sources),
        }
    }
}

/// `actions` of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SomeActions {
    /// For bulk that is not wanted.
    pub bulk: Option<Action>,
    /// For what is bulk by its `near` signatures alone.
    pub near: Option<Action>,
    /// For what people call spam.
    pub spam: Option<Action>,
    /// For both of these from somebody to whom a recipient wrote.
    pub correspondents: Option<Correspondents>,
    /// The answer of `reject`.
    pub reject: SomeReply<Code<5>, Status<5>>,
    /// The answer of `tempfail`.
    pub tempfail: SomeReply<Code<4>, Status<4>>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SomeReply<C, S> {
    code: Option<C>,
    status: Option<S>,
    text: Option<Text>,
    spam_text: Option<Text>,
}

impl<C, S> Default for SomeReply<C, S> {
    fn default() -> Self {
        Self { code: None, status: None, text: None, spam_text: None }
    }
}

impl<C: Clone, S: Clone> SomeReply<C, S> {
    fn over(&self, all: (&C, &S, &Text, &Text)) -> (C, S, Text, Text) {
        let (code, status, text, spam_text) = all;
        (
            self.code.as_ref().unwrap_or(code).clone(),
            self.status.as_ref().unwrap_or(status).clone(),
            self.text.as_ref().unwrap_or(text).clone(),
            self.spam_text.as_ref().unwrap_or(spam_text).clone(),
        )
    }
}

impl SomeActions {
    /// All of them, on what holds for everybody.
    pub(super) fn over(&self, all: &Actions) -> Actions {
        let RejectReply { code, status, text, spam_text } = &all.reject;
        let (code, status, text, spam_text) = self.reject.over((code, status, text, spam_text));
        let reject = RejectReply { code, status, text, spam_text };
        let TempfailReply { code, status, text, spam_text } = &all.tempfail;
        let (code, status, text, spam_text) = self.tempfail.over((code, status, text, spam_text));
        let tempfail = TempfailReply { code, status, text, spam_text };
        Actions {
            bulk: self.bulk.unwrap_or(all.bulk),
            near: self.near.unwrap_or(all.near),
            spam: self.spam.unwrap_or(all.spam),
            correspondents: self.correspondents.unwrap_or(all.correspondents),
            reject,
            tempfail,
        }
    }
}
