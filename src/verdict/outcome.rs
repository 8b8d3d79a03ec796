// SPDX-License-Identifier: GPL-3.0-or-later
//! What is to be done with a message, and what its header and an answer say.

use super::envelope::Envelope;
use super::finding::{Counted, Finding};
use super::header::HeaderValue;
use super::rules::Rules;
use crate::policy::{Action, OnFailure, ReplyFields, Verdict};
use crate::signature::Signature;

/// What is to be done with a message, and said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was found.
    pub verdict: Verdict,
    /// What is to be done.
    pub action: Action,
    /// The value of the header; docs/header.md has its grammar.
    pub header: String,
    /// The SMTP answer of a refusal.
    pub reply: Option<Reply>,
}

/// An SMTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Three digits.
    pub code: String,
    /// The enhanced status code (RFC 3463).
    pub status: String,
    /// The text.
    pub text: String,
}

impl Outcome {
    /// What follows from a finding. `host` is the mail server's name.
    #[must_use]
    pub fn new(rules: &Rules, envelope: &Envelope, finding: &Finding, host: &str) -> Self {
        let plain = |verdict, reason: &str, action| Self {
            verdict,
            action,
            header: HeaderValue::new(verdict).field("reason", reason).field("host", host).into_string(),
            reply: None,
        };
        match finding {
            Finding::Exempt(reason) => plain(Verdict::Exempt, reason.as_str(), Action::Mark),
            Finding::Unknown(reason, _) => match rules.on_failure {
                OnFailure::Accept => plain(Verdict::Unknown, reason.as_str(), Action::Mark),
                OnFailure::Tempfail => plain(Verdict::Unknown, reason.as_str(), Action::Tempfail),
            },
            Finding::Canary(signature) => {
                let action = rules.actions.bulk;
                // A refusal reads as that of a message that has just become bulk.
                let threshold = rules.thresholds.body.get();
                let text = reply(rules, action, envelope, host, (threshold, threshold), *signature);
                Self { reply: text, ..plain(Verdict::Bulk, "canary", action) }
            }
            Finding::Counted(counted) => Self {
                verdict: counted.decision.verdict,
                action: counted.decision.action,
                header: header(rules, counted, host),
                reply: reply(
                    rules,
                    counted.decision.action,
                    envelope,
                    host,
                    reached(rules, counted),
                    counted.signature,
                ),
            },
        }
    }
}

fn header(rules: &Rules, counted: &Counted, host: &str) -> String {
    let (body, near) = (rules.thresholds.body.get(), rules.thresholds.near.get());
    let mut header = HeaderValue::new(counted.decision.verdict);
    for (name, count) in [("body", counted.counts.body), ("near", counted.counts.near)] {
        if let Some(count) = count {
            header = header.field(name, count);
        }
    }
    header = header.field("threshold", body);
    if near != body {
        header = header.field("near-threshold", near);
    }
    header = header.field("host", host);
    if let Some(age) = counted.stale {
        header = header.field("stale", age);
    }
    if let Some(entry) = &counted.decision.whitelist {
        header = header.field("whitelist", entry);
    }
    header.into_string()
}

/// Count and threshold of the kind by which it is bulk, for who is refused.
fn reached(rules: &Rules, counted: &Counted) -> (u32, u32) {
    let (body, near) = (rules.thresholds.body.get(), rules.thresholds.near.get());
    match (counted.counts.body, counted.counts.near) {
        (body_count, Some(count)) if body_count.is_none_or(|seen| seen < body) => (count, near),
        (body_count, _) => (body_count.unwrap_or(0), body),
    }
}

/// The answer of an action that refuses; the one of `unknown` is the mail server's own.
fn reply(
    rules: &Rules,
    action: Action,
    envelope: &Envelope,
    host: &str,
    (count, threshold): (u32, u32),
    signature: Option<Signature>,
) -> Option<Reply> {
    let (code, status, text) = match action {
        Action::Reject => {
            let reply = &rules.actions.reject;
            (reply.code.as_str(), reply.status.as_str(), &reply.text)
        }
        Action::Tempfail => {
            let reply = &rules.actions.tempfail;
            (reply.code.as_str(), reply.status.as_str(), &reply.text)
        }
        Action::Mark | Action::Discard | Action::Quarantine => return None,
    };
    let signature = signature.map(|signature| signature.to_string()).unwrap_or_default();
    let fields = ReplyFields { count, threshold, id: envelope.id(), host, signature: &signature };
    Some(Reply { code: code.to_owned(), status: status.to_owned(), text: text.fill(&fields) })
}
