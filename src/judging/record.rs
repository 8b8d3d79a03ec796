// SPDX-License-Identifier: GPL-3.0-or-later
//! The record of a message for metrics and status page.

use super::judgement::Judgement;
use super::shared::shared;
use crate::activity::{Activity, Judged, Recent, Record, Seen};
use bulkmark_counts::Shared;
use bulkmark_ledger::now;
use bulkmark_mail::subject;
use bulkmark_policy::{Action, Counts, Held, Verdict, suggestion};
use bulkmark_verdict::{Counted, Envelope, Exempt, Finding, Rules, Unknown};
use std::panic::catch_unwind;
use std::time::Duration;

/// The most characters of a subject or name from outside that are kept.
const MAX_CHARS: usize = 120;

/// The most recipients of a message that are named.
const NAMED: usize = 5;

/// Kinds of counts, as reasons of bulk.
const BODY: &str = "body";
const NEAR: &str = "near";
const USER_REPORTS: &str = "user-reports";

/// Records a judgement that took `time`, and returns the name of its mailing. `subject_field` is the value of the Subject field, if it is
/// recorded.
pub(super) fn record(
    activity: &Activity,
    rules: &Rules,
    envelope: &Envelope,
    subject_field: Option<&[u8]>,
    judgement: &Judgement,
    time: Duration,
) -> Option<String> {
    let now = now();
    let Judgement { finding, outcome, content, reported, .. } = judgement;
    let (verdict, action) = (outcome.verdict, outcome.action);
    let (held, would) = (held(finding), would(finding));
    let (mut reason, counts, signature, bulk) = match finding {
        // It is a test of the mail system, and no mail: only the log has it.
        Finding::Canary(_) => {
            activity.canary();
            return None;
        }
        Finding::Exempt(reason) => (Some(reason.as_str()), None, None, None),
        Finding::Unknown(reason, _) => (Some(reason.as_str()), None, None, None),
        Finding::Counted(counted) => {
            let bulk = content.as_ref().filter(|_| counted.is_bulk).map(|content| (content, counted.counts));
            (kind(rules, counted), Some(counted.counts), counted.signature, bulk)
        }
    };
    let reason_label = reason.unwrap_or_default();
    let domain = note_client(activity, finding, envelope);
    let judged =
        Judged { verdict, action, reason: reason_label, held, would, signatures: *reported, time, now };
    count(activity, &judged, policy(rules, envelope, finding));
    if !activity.is_recording() {
        return None;
    }
    if counts.is_some() {
        reason = held.map(why).or_else(|| unverified(finding));
    }
    let is_wanted = verdict == Verdict::Whitelisted;
    let Record { clients, recipients, .. } = activity.wanted;
    let named = envelope.recipients.iter().take(if recipients { NAMED } else { 0 });
    let recent = Recent {
        at: now,
        id: short(envelope.id()),
        verdict: verdict.to_string(),
        action: (verdict.is_unwanted() || action != Action::Mark).then(|| action.to_string()),
        would: would.map(|would| would.to_string()),
        reason,
        body: counts.and_then(|counts| counts.body),
        near: counts.and_then(|counts| counts.near),
        spam: spam_weight(counts),
        signature: signature.map(|signature| signature.to_string()),
        mailing: None,
        domain: short(&domain.to_lowercase()),
        client: clients.then(|| client(envelope)),
        recipients: named.map(|recipient| short(recipient)).collect(),
        nrcpt: envelope.recipients.len(),
        ms: (time.as_secs_f64() * 10_000.0).round() / 10.0,
    };
    let subject = bulk.and(subject_field).map(readable);
    let seen = bulk.map(|(content, counts)| Seen {
        signatures: &content.signatures,
        counts,
        subject: subject.as_deref(),
        action: (!is_wanted).then_some(action),
        would,
        // Mail that users report as spam should not get into a white list.
        suggestion: suggestion(envelope.host.as_deref(), domain, content.list_id.as_deref())
            .filter(|_| verdict == Verdict::Bulk),
        stays_here: shared(rules, envelope, content) != Shared::All,
    });
    activity.record(recent, seen.as_ref())
}

/// A subject as the page shows it. An unreadable one is missing there; the message is not affected.
fn readable(field: &[u8]) -> String {
    short(&catch_unwind(|| subject(field)).unwrap_or_default())
}

/// Counts a message, also for the policy that decided.
fn count(activity: &Activity, judged: &Judged, policy: Option<&str>) {
    activity.judged(judged);
    if let Some(policy) = policy {
        activity.decided_by(policy, judged);
    }
}

/// The reason why it is unknown whether it is wanted.
fn unverified(finding: &Finding) -> Option<&'static str> {
    let is_unverified = matches!(finding, Finding::Counted(counted) if counted.unverified.is_some());
    is_unverified.then_some("no answer of DNS")
}

/// The policy that decided, if there are several.
fn policy<'a>(rules: &'a Rules, envelope: &Envelope, finding: &Finding) -> Option<&'a str> {
    match finding {
        Finding::Counted(counted) => rules.name(counted.decision.by),
        Finding::Exempt(Exempt::Policy) => rules.name(rules.parties(envelope).first()?.by),
        Finding::Exempt(_) | Finding::Unknown(..) | Finding::Canary(_) => None,
    }
}

/// Counts the client of a judged message. Returns the sender's domain.
fn note_client<'a>(activity: &Activity, finding: &Finding, envelope: &'a Envelope) -> &'a str {
    let sender = envelope.sender.as_deref().unwrap_or_default();
    let domain = sender.rsplit_once('@').map_or("", |(_, domain)| domain);
    if let (Finding::Counted(_), Some(client)) = (finding, envelope.client) {
        activity.came_from(client, domain);
    }
    domain
}

/// The reason why it is only marked although it is bulk or spam, if so.
const fn held(finding: &Finding) -> Option<Held> {
    match finding {
        Finding::Counted(counted) => counted.decision.held,
        Finding::Exempt(_) | Finding::Unknown(..) | Finding::Canary(_) => None,
    }
}

/// The action that is only rehearsed.
fn would(finding: &Finding) -> Option<Action> {
    match finding {
        Finding::Counted(counted) => counted.decision.would.map(|would| would.action),
        Finding::Exempt(_) | Finding::Unknown(..) | Finding::Canary(_) => None,
    }
}

/// The reason as the page shows it.
const fn why(held: Held) -> &'static str {
    match held {
        Held::Sources => "few sources",
        Held::Messages => "few messages",
        Held::Correspondent => "correspondent",
        Held::Allowed => "allowed",
    }
}

/// The kind of count that has reached its threshold: that of the body, or only the near count.
fn kind(rules: &Rules, counted: &Counted) -> Option<&'static str> {
    let exact = rules.terms(counted.decision.by).thresholds.body.is_reached(counted.counts.body);
    if counted.decision.verdict == Verdict::Spam {
        return Some(USER_REPORTS);
    }
    counted.is_bulk.then_some(if exact { BODY } else { NEAR })
}

/// The weight of spam reports, if there are any.
fn spam_weight(counts: Option<Counts>) -> Option<String> {
    counts?.spam.filter(|spam| spam.units() > 0).map(|spam| spam.to_string())
}

/// The client as the page shows it: `mail.example.org [192.0.2.7]`.
fn client(envelope: &Envelope) -> String {
    let ip = envelope.client.map_or_else(|| "local".to_owned(), |ip| ip.to_string());
    short(&envelope.host.as_ref().map_or_else(|| format!("[{ip}]"), |host| format!("{host} [{ip}]")))
}

/// Announces all reasons of counted messages, so that each metric exists before its first message.
pub(super) fn expect(activity: &Activity) {
    activity.expect(Verdict::Clean, "");
    activity.expect(Verdict::Spam, USER_REPORTS);
    for verdict in [Verdict::Bulk, Verdict::Whitelisted] {
        [BODY, NEAR].into_iter().for_each(|kind| activity.expect(verdict, kind));
    }
    Exempt::ALL.iter().for_each(|reason| activity.expect(Verdict::Exempt, reason.as_str()));
    Unknown::ALL.iter().for_each(|reason| activity.expect(Verdict::Unknown, reason.as_str()));
}

fn short(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
