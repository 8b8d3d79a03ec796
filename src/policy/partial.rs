// SPDX-License-Identifier: GPL-3.0-or-later
//! What a policy says of thresholds and actions; what it does not say is as for everybody.

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
    /// From how many other networks a count must come.
    pub min_sources: Option<MinSources>,
}

impl SomeThresholds {
    /// All of them, on what holds for everybody.
    pub(super) fn over(&self, all: &Thresholds) -> Thresholds {
        Thresholds {
            body: self.body.unwrap_or(all.body),
            near: self.near.unwrap_or(all.near),
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
}

impl<C, S> Default for SomeReply<C, S> {
    fn default() -> Self {
        Self { code: None, status: None, text: None }
    }
}

impl<C: Clone, S: Clone> SomeReply<C, S> {
    fn over(&self, all: (&C, &S, &Text)) -> (C, S, Text) {
        let (code, status, text) = all;
        (
            self.code.as_ref().unwrap_or(code).clone(),
            self.status.as_ref().unwrap_or(status).clone(),
            self.text.as_ref().unwrap_or(text).clone(),
        )
    }
}

impl SomeActions {
    /// All of them, on what holds for everybody.
    pub(super) fn over(&self, all: &Actions) -> Actions {
        let RejectReply { code, status, text } = &all.reject;
        let (code, status, text) = self.reject.over((code, status, text));
        let reject = RejectReply { code, status, text };
        let TempfailReply { code, status, text } = &all.tempfail;
        let (code, status, text) = self.tempfail.over((code, status, text));
        let tempfail = TempfailReply { code, status, text };
        Actions { bulk: self.bulk.unwrap_or(all.bulk), near: self.near.unwrap_or(all.near), reject, tempfail }
    }
}
