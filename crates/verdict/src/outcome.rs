// SPDX-License-Identifier: GPL-3.0-or-later
//! What is to be done with a message, and what its header and an answer say.

use super::envelope::Envelope;
use super::finding::{Counted, Finding};
use super::header::HeaderValue;
use super::reason::Exempt;
use super::rules::Rules;
use bulkmark_policy::{
    Action, By, OnFailure, Party, RefusalReply, Rehearsal, ReplyFields, Sprung, Standing, Terms, Verdict,
    Would,
};
use bulkmark_types::Signature;

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
    /// Whether the message leaves without the header, since it goes to others.
    pub is_silent: bool,
    /// How the account stands that sent it, where it is outbound.
    pub account: Option<Standing>,
    /// What the traps among its recipients made of it, if there are any.
    pub trap: Option<Sprung>,
    /// Recipients who are to be taken out of the envelope, if the mail server can do that.
    pub leaving: Vec<String>,
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
        let of = |verdict, reason: &str, action, by: Option<By>| {
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
                // A refusal reads as that of a message that has just become bulk.
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
        Self { is_silent: rules.is_outbound(envelope) && !rules.outbound.header, ..outcome }
    }

    /// The same for a message of an account that stands so: what is done with it is what is said of accounts over their limit.
    #[must_use]
    pub fn of_account(self, rules: &Rules, envelope: &Envelope, standing: Standing, host: &str) -> Self {
        let this = Self { account: Some(standing), ..self };
        let action = if envelope.is_paused { Action::Mark } else { rules.outbound.action };
        if !standing.is_over || action.harshness() <= this.action.harshness() {
            return this;
        }
        let codes = match action {
            Action::Reject => Some(("550", "5.7.1")),
            Action::Tempfail => Some(("451", "4.7.1")),
            Action::Mark | Action::Discard | Action::Quarantine => None,
        };
        let (count, threshold) = (standing.sent.bulk, rules.outbound.bulk);
        let fields = ReplyFields { count, threshold, id: envelope.id(), host, signature: "", reason: BULK };
        let reply = codes.map(|(code, status)| Reply {
            code: code.to_owned(),
            status: status.to_owned(),
            text: rules.outbound.text.fill(&fields),
        });
        Self { action, reply, ..this }
    }
}

impl Outcome {
    /// The same for a message of whose recipients these are traps, which made that of it. What goes to traps alone is discarded where that is
    /// configured, and told to nobody; from others the traps leave.
    #[must_use]
    pub fn of_traps(self, rules: &Rules, envelope: &Envelope, traps: &[&str], sprung: Sprung) -> Self {
        let this = Self { trap: Some(sprung), ..self };
        // What could not be judged may come again, to be.
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

/// What is done with the canary: the mildest that is done with bulk for its recipients, and whose policy that is.
fn canary(rules: &Rules, envelope: &Envelope) -> (By, Action, Option<Rehearsal>) {
    let is_outbound = rules.is_outbound(envelope);
    let of = |party: &Party<'_>| {
        let marks = is_outbound || !rules.judges(party.by);
        let actions = rules.terms(party.by).actions;
        let rehearsal = rules.rehearsal(envelope, actions, &party.recipients);
        (party.by, if marks { Action::Mark } else { actions.bulk }, rehearsal)
    };
    let parties = rules.parties(envelope);
    let all = parties.iter().map(of);
    let harshness = |&(_, action, rehearsal): &(By, Action, Option<Rehearsal>)| {
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

/// The verdict on a message, and count and threshold of the kind by which it is that.
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

/// The answer of an action that refuses; the one of `unknown` is the mail server's own.
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
    match action {
        Action::Reject => Some(filled(&actions.reject_reply, &fields)),
        Action::Tempfail => Some(filled(&actions.tempfail_reply, &fields)),
        Action::Mark | Action::Discard | Action::Quarantine => None,
    }
}

/// Why a message is refused, as its sender is told.
const BULK: &str = "bulk mail";
const SPAM: &str = "mail reported as spam";

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

    /// What is said of a message with these counts.
    fn counted(rules: &Rules, body: Option<u32>, near: Option<u32>, staleness: Option<u64>) -> Outcome {
        backed(rules, Counts { body, near, spam: None }, Backings::default(), staleness)
    }

    /// The same where it comes from there.
    fn backed(rules: &Rules, counts: Counts, backings: Backings, staleness: Option<u64>) -> Outcome {
        let content = Content::of(&RawMessage::from_bytes(RAW).unwrap(), rules);
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
    fn the_header_tells_counts_and_thresholds() {
        let header = |body, near, stale| counted(&Rules::default(), body, near, stale).header;
        assert_eq!(header(Some(3), Some(27), None), "bulk; body=3; near=27; threshold=20; host=mx.test");
        assert_eq!(header(Some(3), None, Some(600)), "clean; body=3; threshold=20; host=mx.test");
        assert_eq!(header(None, Some(1), Some(601)), "clean; near=1; threshold=20; host=mx.test; stale=601");
        let of_other = counted(&refusing(), Some(1), Some(9), None).header;
        assert_eq!(of_other, "clean; body=1; near=9; threshold=20; near-threshold=10; host=mx.test");
    }

    #[test]
    fn who_is_refused_is_told_no_count_but_where_that_is_configured() {
        let text = |rules: &Rules, body, near| {
            counted(rules, Some(body), Some(near), None).reply.map(|reply| reply.text)
        };
        let mut rules = refusing();
        assert_eq!(text(&rules, 20, 99).as_deref(), Some("bulk mail refused (id 4ID)"));
        assert_eq!(text(&rules, 19, 12).as_deref(), Some("bulk mail, try again later (id 4ID)"));
        assert_eq!(text(&rules, 19, 9), None);
        // The count that did it.
        let told = || "seen {count} times, threshold {threshold}".to_owned().try_into().unwrap();
        (rules.actions.reject_reply.text, rules.actions.tempfail_reply.text) = (told(), told());
        assert_eq!(text(&rules, 20, 99).as_deref(), Some("seen 20 times, threshold 20"));
        assert_eq!(text(&rules, 19, 12).as_deref(), Some("seen 12 times, threshold 10"));
    }

    #[test]
    fn stale_counts_refuse_nobody_where_that_is_configured() {
        let despite = bulkmark_policy::Despite { stale: false, ..bulkmark_policy::Despite::default() };
        let rules = Rules { despite, ..refusing() };
        assert_eq!(counted(&rules, Some(20), None, Some(600)).action, Action::Reject);
        let stale = counted(&rules, Some(20), None, Some(601));
        assert_eq!((stale.verdict, stale.action, stale.reply), (Verdict::Bulk, Action::Mark, None));
    }

    /// While it is paused nothing is taken away, for whatever reason.
    #[test]
    fn a_pause_has_all_mail_delivered() {
        let rules = Rules { on_failure: OnFailure::Tempfail, ..refusing() };
        let envelope = Envelope { is_paused: true, ..Envelope::default() };
        let of = |finding: Finding| Outcome::new(&rules, &envelope, &finding, "mx.test");
        let canary = of(Finding::Canary(None));
        assert_eq!((canary.action, canary.reply), (Action::Mark, None));
        assert_eq!(canary.header, "bulk; reason=canary; host=mx.test; would=reject");
        assert_eq!(of(Finding::Unknown(Unknown::Timeout, String::new())).action, Action::Mark);
        let content = Content::of(&RawMessage::from_bytes(RAW).unwrap(), &rules);
        let counts = Counts { body: Some(20), near: None, spam: None };
        let bulk = of(Counted::find(&rules, &envelope, &content, (counts, Backings::default()), None));
        assert_eq!((bulk.action, bulk.reply.is_some()), (Action::Mark, false));
        assert!(bulk.header.ends_with("; would=reject"), "{}", bulk.header);
        let mut rules = rules;
        rules.outbound.action = Action::Quarantine;
        let standing = Standing { sent: Sent::default(), is_over: true, is_news: false };
        assert_eq!(bulk.of_account(&rules, &envelope, standing, "mx.test").action, Action::Mark);
    }

    #[test]
    fn the_header_tells_from_where_the_count_of_bulk_comes() {
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
    fn what_has_no_count_has_a_reason() {
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
