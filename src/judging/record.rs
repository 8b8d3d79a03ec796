// SPDX-License-Identifier: GPL-3.0-or-later
//! What metrics and status page keep of a message.

use super::judgement::Judgement;
use crate::activity::{Activity, Judged, Recent, Record, Seen};
use bulkmark_ledger::now;
use bulkmark_mail::subject;
use bulkmark_policy::{Action, Counts, Held, Verdict, suggestion};
use bulkmark_verdict::{Counted, Envelope, Exempt, Finding, Rules, Unknown};
use std::panic::catch_unwind;
use std::time::Duration;

/// Letters of a subject or name from outside that are kept.
const MAX_LETTERS: usize = 120;

/// Recipients of a message that are named.
const NAMED: usize = 5;

/// Kinds of counts, as reasons of bulk.
const BODY: &str = "body";
const NEAR: &str = "near";
const USER_REPORTS: &str = "user-reports";

/// Records a judgement that took so long. `subject_field` is the value of the Subject field, where it is wanted.
pub(super) fn record(
    activity: &Activity,
    rules: &Rules,
    envelope: &Envelope,
    subject_field: Option<&[u8]>,
    judgement: &Judgement,
    time: Duration,
) {
    let now = now();
    let Judgement { finding, outcome, content, reported } = judgement;
    let (verdict, action) = (outcome.verdict, outcome.action);
    let (held, would) = (held(finding), would(finding));
    let (mut reason, counts, signature, bulk) = match finding {
        // It is a test of the mail system, and no mail: it stands in the log alone.
        Finding::Canary(_) => return activity.canary(),
        Finding::Exempt(reason) => (Some(reason.as_str()), None, None, None),
        Finding::Unknown(reason, _) => (Some(reason.as_str()), None, None, None),
        Finding::Counted(counted) => {
            let bulk = content.as_ref().filter(|_| counted.is_bulk);
            let bulk = bulk.map(|content| (&content.signatures, counted.counts));
            (kind(rules, counted), Some(counted.counts), counted.signature, bulk)
        }
    };
    let told = reason.unwrap_or_default();
    let domain = note_client(activity, finding, envelope);
    let judged = Judged { verdict, action, reason: told, held, would, signatures: *reported, time, now };
    count(activity, &judged, policy(rules, envelope, finding));
    if !activity.is_recording() {
        return;
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
        spam: called_spam(counts),
        signature: signature.map(|signature| signature.to_string()),
        mailing: None,
        domain: short(&domain.to_lowercase()),
        client: clients.then(|| client(envelope)),
        recipients: named.map(|recipient| short(recipient)).collect(),
        nrcpt: envelope.recipients.len(),
        ms: (time.as_secs_f64() * 10_000.0).round() / 10.0,
    };
    let subject = bulk.and(subject_field).map(|value| {
        // A subject that cannot be read costs the page a subject, and nobody a message.
        short(&catch_unwind(|| subject(value)).unwrap_or_default())
    });
    let list_id = content.as_ref().and_then(|content| content.list_id.as_deref());
    let seen = bulk.map(|(signatures, counts)| Seen {
        signatures,
        counts,
        subject: subject.as_deref(),
        action: (!is_wanted).then_some(action),
        would,
        // Nobody is to put into a white list mail that users report as spam.
        suggestion: suggestion(envelope.host.as_deref(), domain, list_id)
            .filter(|_| verdict == Verdict::Bulk),
    });
    activity.record(recent, seen.as_ref());
}

/// Counts a message, also for the policy that decided.
fn count(activity: &Activity, judged: &Judged, policy: Option<&str>) {
    activity.judged(judged);
    if let Some(policy) = policy {
        activity.decided_by(policy, judged);
    }
}

/// Why it may be wanted, and nobody knows.
fn unverified(finding: &Finding) -> Option<&'static str> {
    let is_unverified = matches!(finding, Finding::Counted(counted) if counted.unverified.is_some());
    is_unverified.then_some("no answer of DNS")
}

/// The policy that decided, where there are several.
fn policy<'a>(rules: &'a Rules, envelope: &Envelope, finding: &Finding) -> Option<&'a str> {
    match finding {
        Finding::Counted(counted) => rules.name(counted.decision.by),
        Finding::Exempt(Exempt::Policy) => rules.name(rules.parties(envelope).first()?.by),
        Finding::Exempt(_) | Finding::Unknown(..) | Finding::Canary(_) => None,
    }
}

/// Counts where a message that is judged came from. The domain of its sender.
fn note_client<'a>(activity: &Activity, finding: &Finding, envelope: &'a Envelope) -> &'a str {
    let sender = envelope.sender.as_deref().unwrap_or_default();
    let domain = sender.rsplit_once('@').map_or("", |(_, domain)| domain);
    if let (Finding::Counted(_), Some(client)) = (finding, envelope.client) {
        activity.came_from(client, domain);
    }
    domain
}

/// Why it is only marked though it is bulk or spam, if so.
const fn held(finding: &Finding) -> Option<Held> {
    match finding {
        Finding::Counted(counted) => counted.decision.held,
        Finding::Exempt(_) | Finding::Unknown(..) | Finding::Canary(_) => None,
    }
}

/// What would have been done, where that is only rehearsed.
fn would(finding: &Finding) -> Option<Action> {
    match finding {
        Finding::Counted(counted) => counted.decision.would.map(|would| would.action),
        Finding::Exempt(_) | Finding::Unknown(..) | Finding::Canary(_) => None,
    }
}

/// The same of [`held`] for the page.
const fn why(held: Held) -> &'static str {
    match held {
        Held::Sources => "few sources",
        Held::Messages => "few messages",
        Held::Correspondent => "correspondent",
        Held::Allowed => "allowed",
    }
}

/// Which count has reached its threshold: that of the same body, or of near-replicas alone.
fn kind(rules: &Rules, counted: &Counted) -> Option<&'static str> {
    let exact = rules.terms(counted.decision.by).thresholds.body.is_reached(counted.counts.body);
    if counted.decision.verdict == Verdict::Spam {
        return Some(USER_REPORTS);
    }
    counted.is_bulk.then_some(if exact { BODY } else { NEAR })
}

/// By how much users report it as spam, if they do.
fn called_spam(counts: Option<Counts>) -> Option<String> {
    counts?.spam.filter(|spam| spam.units() > 0).map(|spam| spam.to_string())
}

/// The client, for people: `mail.example.org [192.0.2.7]`.
fn client(envelope: &Envelope) -> String {
    let ip = envelope.client.map_or_else(|| "local".to_owned(), |ip| ip.to_string());
    short(&envelope.host.as_ref().map_or_else(|| format!("[{ip}]"), |host| format!("{host} [{ip}]")))
}

/// Tells for which reasons messages may be counted, so that each is there before the first of it.
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
    text.chars().take(MAX_LETTERS).collect()
}
