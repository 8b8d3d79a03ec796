// SPDX-License-Identifier: GPL-3.0-or-later
//! The outcome for a message: its action, header and reply.

use super::envelope::Envelope;
use super::finding::{Counted, Finding};
use super::header::HeaderValue;
use super::reason::Exempt;
use super::rules::Rules;
use bulkmark_policy::{
    Action, Actions, OnFailure, Party, PolicyRef, RefusalReply, Rehearsal, ReplyFields, Standing, Terms,
    TrapResult, Verdict, Would,
};
use bulkmark_types::Signature;

/// The outcome for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The action.
    pub action: Action,
    /// The value of the header; docs/header.md has its grammar.
    pub header: String,
    /// The SMTP reply of a refusal.
    pub reply: Option<Reply>,
    /// Whether it gets no header, since it goes to other sites.
    pub is_silent: bool,
    /// The state of the account that sent it, if it is outbound.
    pub account: Option<Standing>,
    /// The result of the traps among its recipients, if there are any.
    pub trap: Option<TrapResult>,
    /// Recipients to remove from the envelope, if the mail server can do that.
    pub leaving: Vec<String>,
}

/// An SMTP reply.
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
    /// The outcome of a finding. `host` is the mail server's name.
    #[must_use]
    pub fn new(rules: &Rules, envelope: &Envelope, finding: &Finding, host: &str) -> Self {
        let of = |verdict, reason: &str, action, by: Option<PolicyRef>| {
            let header = HeaderValue::new(verdict).field("reason", reason).field("host", host);
            let header = header.policy(by.and_then(|by| rules.name(by))).into_string();
            Self {
                verdict,
                action,
                header,
                reply: None,
                is_silent: false,
                account: None,
                trap: None,
                leaving: Vec::new(),
            }
        };
        let plain = |verdict, reason, action| of(verdict, reason, action, None);
        let outcome = match finding {
            Finding::Exempt(Exempt::Policy) => {
                let by = rules.parties(envelope).first().map(|party| party.by);
                of(Verdict::Exempt, Exempt::Policy.as_str(), Action::Mark, by)
            }
            Finding::Exempt(reason) => plain(Verdict::Exempt, reason.as_str(), Action::Mark),
            Finding::Unknown(reason, _) => match rules.on_failure {
                OnFailure::Tempfail if !envelope.is_paused => {
                    plain(Verdict::Unknown, reason.as_str(), Action::Tempfail)
                }
                OnFailure::Accept | OnFailure::Tempfail => {
                    plain(Verdict::Unknown, reason.as_str(), Action::Mark)
                }
            },
            Finding::Canary(signature) => {
                let (by, intended, rehearsal) = canary(rules, envelope);
                let (action, would) = Would::instead(intended, rehearsal);
                let terms = rules.terms(by);
                // The reply is that of a message that has just become bulk.
                let threshold = terms.thresholds.body.get();
                let reached = Reached { verdict: Verdict::Bulk, count: threshold, threshold };
                let text = reply(terms, action, envelope, host, reached, *signature);
                let plain = of(Verdict::Bulk, "canary", action, Some(by));
                let would = would.map(|would| format!("; would={}", would.action)).unwrap_or_default();
                Self { reply: text, header: plain.header.clone() + &would, ..plain }
            }
            Finding::Counted(counted) => {
                let (decision, terms) = (&counted.decision, rules.terms(counted.decision.by));
                let reached = reached(terms, counted);
                Self {
                    verdict: decision.verdict,
                    action: decision.action,
                    header: header(rules, counted, host),
                    reply: reply(terms, decision.action, envelope, host, reached, counted.signature),
                    is_silent: false,
                    account: None,
                    trap: None,
                    leaving: Vec::new(),
                }
            }
        };
        Self { is_silent: rules.is_outbound(envelope), ..outcome }
    }

    /// The same for a message of an account in this state: over its limit, the action of `[outbound]` applies.
    #[must_use]
    pub fn with_account(self, rules: &Rules, envelope: &Envelope, standing: Standing, host: &str) -> Self {
        let this = Self { account: Some(standing), ..self };
        let action = if envelope.is_paused { Action::Mark } else { rules.outbound.action };
        if !standing.is_over || action.harshness() <= this.action.harshness() {
            return this;
        }
        let (count, threshold) = (standing.sent.bulk, rules.outbound.bulk);
        let fields =
            ReplyFields { count, threshold, id: envelope.id(), host, signature: "", reason: ACCOUNT };
        Self { action, reply: refusal(&rules.actions, action, &fields), ..this }
    }
}

impl Outcome {
    /// The same for a message with these traps among its recipients, and their result. Mail to traps only is silently discarded if so
    /// configured; otherwise traps are removed from the envelope.
    #[must_use]
    pub fn with_traps(self, rules: &Rules, envelope: &Envelope, traps: &[&str], result: TrapResult) -> Self {
        let this = Self { trap: Some(result), ..self };
        // A message that could not be judged may be sent again and judged then.
        if envelope.is_paused
            || !rules.traps.discards()
            || this.verdict == Verdict::Unknown && this.action == Action::Tempfail
        {
            return this;
        }
        if traps.len() == envelope.recipients.len() {
            return Self { action: Action::Discard, reply: None, ..this };
        }
        Self { leaving: traps.iter().map(|&trap| trap.to_owned()).collect(), ..this }
    }
}

/// The policy, action and rehearsal for the canary: the mildest for bulk to its recipients.
fn canary(rules: &Rules, envelope: &Envelope) -> (PolicyRef, Action, Option<Rehearsal>) {
    let is_outbound = rules.is_outbound(envelope);
    let of = |party: &Party<'_>| {
        let marks = is_outbound || !rules.judges(party.by);
        let actions = rules.terms(party.by).actions;
        let rehearsal = rules.rehearsal(envelope, actions, &party.recipients);
        (party.by, if marks { Action::Mark } else { actions.bulk }, rehearsal)
    };
    let parties = rules.parties(envelope);
    let all = parties.iter().map(of);
    let harshness = |&(_, action, rehearsal): &(PolicyRef, Action, Option<Rehearsal>)| {
        (if rehearsal.is_some() { 0 } else { action.harshness() }, action.harshness())
    };
    all.min_by_key(harshness).unwrap_or_default()
}

fn header(rules: &Rules, counted: &Counted, host: &str) -> String {
    let Terms { thresholds, .. } = rules.terms(counted.decision.by);
    let (body, near) = (thresholds.body.get(), thresholds.near.get());
    let mut header = HeaderValue::new(counted.decision.verdict);
    for (name, count) in [("body", counted.counts.body), ("near", counted.counts.near)] {
        if let Some(count) = count {
            header = header.field(name, counted.shown(count));
        }
    }
    if let Some(spam) = counted.counts.spam.filter(|spam| spam.units() > 0) {
        header = header.field("spam", spam);
    }
    header = header.field("threshold", body);
    if near != body {
        header = header.field("near-threshold", near);
    }
    header = header.field("host", host).policy(rules.name(counted.decision.by));
    if let Some(milder) = counted.decision.milder.and_then(|by| rules.name(by)) {
        header = header.field("milder", milder);
    }
    for (name, value) in counted.decision.sources() {
        header = header.field(name, value);
    }
    if let Some(reason) = counted.unverified {
        header = header.field("unverified", reason);
    }
    if let Some(age) = counted.stale {
        header = header.field("stale", age);
    }
    if let Some(entry) = &counted.decision.whitelist {
        header = header.field("whitelist", entry);
    }
    if let Some(signature) = counted.signature.filter(|_| rules.signature.header) {
        header = header.field("signature", signature);
    }
    header.into_string()
}

/// The verdict on a message, with the count and the threshold that led to it.
struct Reached {
    verdict: Verdict,
    count: u32,
    threshold: u32,
}

fn reached(Terms { thresholds, .. }: Terms<'_>, counted: &Counted) -> Reached {
    let (body, near) = (thresholds.body.get(), thresholds.near.get());
    let verdict = counted.decision.verdict;
    let (count, threshold) = match (verdict, counted.counts.spam, counted.counts.body, counted.counts.near) {
        (Verdict::Spam, Some(spam), ..) => (spam.users(), thresholds.spam.get()),
        (_, _, seen, Some(count)) if seen.is_none_or(|seen| seen < body) => (count, near),
        (_, _, seen, _) => (seen.unwrap_or(0), body),
    };
    Reached { verdict, count, threshold }
}

/// The reply of an action that refuses. For `unknown`, the mail server has its own.
fn reply(
    Terms { actions, .. }: Terms<'_>,
    action: Action,
    envelope: &Envelope,
    host: &str,
    Reached { verdict, count, threshold }: Reached,
    signature: Option<Signature>,
) -> Option<Reply> {
    let signature = signature.map(|signature| signature.to_string()).unwrap_or_default();
    let reason = if verdict == Verdict::Spam { SPAM } else { BULK };
    let fields = ReplyFields { count, threshold, id: envelope.id(), host, signature: &signature, reason };
    refusal(actions, action, &fields)
}

/// The reasons of refusals in replies.
const BULK: &str = "bulk mail";
const SPAM: &str = "mail reported as spam";
const ACCOUNT: &str = "mail of an account over its limit";

/// The reply of an action with these values in its text.
fn refusal(actions: &Actions, action: Action, fields: &ReplyFields<'_>) -> Option<Reply> {
    match action {
        Action::Reject => Some(filled(&actions.reject_reply, fields)),
        Action::Tempfail => Some(filled(&actions.tempfail_reply, fields)),
        Action::Mark | Action::Discard | Action::Quarantine => None,
    }
}

fn filled<const CLASS: u8>(reply: &RefusalReply<CLASS>, fields: &ReplyFields<'_>) -> Reply {
    Reply { code: reply.code.clone(), status: reply.status.clone(), text: reply.text.fill(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Exempt, Unknown};
    use bulkmark_mail::RawMessage;
    use bulkmark_policy::{Backing, Backings, Counts, Sent, Sources};

    const RAW: &[u8] = b"From: a@example.org\n\nA letter of eight words, or more than these.\n";

    /// The outcome for a message with these counts.
    fn counted(rules: &Rules, body: Option<u32>, near: Option<u32>, staleness: Option<u64>) -> Outcome {
        backed(rules, Counts { body, near, spam: None }, Backings::default(), staleness)
    }

    /// The same with these sources.
    fn backed(rules: &Rules, counts: Counts, backings: Backings, staleness: Option<u64>) -> Outcome {
        let content = Content::of(&RawMessage::from_bytes(RAW), rules);
        let envelope = Envelope { id: Some("4ID".to_owned()), ..Envelope::default() };
        let finding = Counted::find(rules, &envelope, &content, (counts, backings), staleness);
        Outcome::new(rules, &envelope, &finding, "mx.test")
    }

    fn refusing() -> Rules {
        let mut rules = Rules::default();
        rules.actions.bulk = Action::Reject;
        rules.actions.near = Action::Tempfail;
        rules.thresholds.near = 10i64.try_into().unwrap();
        rules
    }

    #[test]
    fn the_header_has_counts_and_thresholds() {
        let header = |body, near, stale| counted(&Rules::default(), body, near, stale).header;
        assert_eq!(header(Some(3), Some(27), None), "bulk; body=3; near=27; threshold=20; host=mx.test");
        assert_eq!(header(Some(3), None, Some(600)), "clean; body=3; threshold=20; host=mx.test");
        assert_eq!(header(None, Some(1), Some(601)), "clean; near=1; threshold=20; host=mx.test; stale=601");
        let of_other = counted(&refusing(), Some(1), Some(9), None).header;
        assert_eq!(of_other, "clean; body=1; near=9; threshold=20; near-threshold=10; host=mx.test");
    }

    #[test]
    fn a_reply_has_a_count_only_if_configured() {
        let text = |rules: &Rules, body, near| {
            counted(rules, Some(body), Some(near), None).reply.map(|reply| reply.text)
        };
        let mut rules = refusing();
        assert_eq!(text(&rules, 20, 99).as_deref(), Some("bulk mail refused (id 4ID)"));
        assert_eq!(text(&rules, 19, 12).as_deref(), Some("bulk mail, try again later (id 4ID)"));
        assert_eq!(text(&rules, 19, 9), None);
        // The count that reached the threshold.
        let text_with_count = || "seen {count} times, threshold {threshold}".to_owned().try_into().unwrap();
        (rules.actions.reject_reply.text, rules.actions.tempfail_reply.text) =
            (text_with_count(), text_with_count());
        assert_eq!(text(&rules, 20, 99).as_deref(), Some("seen 20 times, threshold 20"));
        assert_eq!(text(&rules, 19, 12).as_deref(), Some("seen 12 times, threshold 10"));
    }

    #[test]
    fn stale_counts_refuse_nothing_if_configured() {
        let despite = bulkmark_policy::Despite { stale: false, ..bulkmark_policy::Despite::default() };
        let rules = Rules { despite, ..refusing() };
        assert_eq!(counted(&rules, Some(20), None, Some(600)).action, Action::Reject);
        let stale = counted(&rules, Some(20), None, Some(601));
        assert_eq!((stale.verdict, stale.action, stale.reply), (Verdict::Bulk, Action::Mark, None));
    }

    /// During a pause all mail is delivered.
    #[test]
    fn during_a_pause_all_mail_is_delivered() {
        let rules = Rules { on_failure: OnFailure::Tempfail, ..refusing() };
        let envelope = Envelope { is_paused: true, ..Envelope::default() };
        let of = |finding: Finding| Outcome::new(&rules, &envelope, &finding, "mx.test");
        let canary = of(Finding::Canary(None));
        assert_eq!((canary.action, canary.reply), (Action::Mark, None));
        assert_eq!(canary.header, "bulk; reason=canary; host=mx.test; would=reject");
        assert_eq!(of(Finding::Unknown(Unknown::Timeout, String::new())).action, Action::Mark);
        let content = Content::of(&RawMessage::from_bytes(RAW), &rules);
        let counts = Counts { body: Some(20), near: None, spam: None };
        let bulk = of(Counted::find(&rules, &envelope, &content, (counts, Backings::default()), None));
        assert_eq!((bulk.action, bulk.reply.is_some()), (Action::Mark, false));
        assert!(bulk.header.ends_with("; would=reject"), "{}", bulk.header);
        let mut rules = rules;
        rules.outbound.action = Action::Quarantine;
        let standing = Standing { sent: Sent::default(), is_over: true, must_notify: false };
        assert_eq!(bulk.with_account(&rules, &envelope, standing, "mx.test").action, Action::Mark);
    }

    #[test]
    fn the_header_has_the_sources_of_bulk() {
        let of = |body, backing: Backing| {
            let backings = Backings { body: backing, ..Backings::default() };
            let outcome =
                backed(&refusing(), Counts { body: Some(body), near: None, spam: None }, backings, Some(601));
            (outcome.action, outcome.header.split_once("host=mx.test; ").unwrap().1.to_owned())
        };
        let known = |others, own| Backing::Known(Sources { others, own });
        let held = |text: &str| (Action::Mark, text.to_owned());
        assert_eq!(of(20, known(2, Some(1))), held("sources=2; own=1; held=sources; stale=601"));
        assert_eq!(of(20, known(2, None)), held("sources=2; own=unknown; held=sources; stale=601"));
        assert_eq!(of(20, Backing::Unknown), held("sources=unknown; held=sources; stale=601"));
        assert_eq!(of(20, known(0, Some(16))), (Action::Reject, "sources=0; own=16; stale=601".to_owned()));
        assert_eq!(of(19, known(0, Some(15))), held("stale=601"), "it is not bulk");
    }

    #[test]
    fn a_message_without_count_has_a_reason() {
        let outcome = |rules: &Rules, finding| Outcome::new(rules, &Envelope::default(), &finding, "mx.test");
        let (rules, unknown) =
            (Rules::default(), Finding::Unknown(Unknown::Timeout, "of the disk".to_owned()));
        let accepted = outcome(&rules, unknown.clone());
        assert_eq!(
            (&*accepted.header, accepted.action),
            ("unknown; reason=timeout; host=mx.test", Action::Mark)
        );
        let rules = Rules { on_failure: OnFailure::Tempfail, ..refusing() };
        assert_eq!(outcome(&rules, unknown).action, Action::Tempfail);
        let exempt = outcome(&rules, Finding::Exempt(Exempt::LowInformation));
        assert_eq!(
            (&*exempt.header, exempt.action),
            ("exempt; reason=low-information; host=mx.test", Action::Mark)
        );
        let canary = outcome(&rules, Finding::Canary(None));
        assert_eq!((&*canary.header, canary.action), ("bulk; reason=canary; host=mx.test", Action::Reject));
    }
}
