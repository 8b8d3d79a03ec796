// SPDX-License-Identifier: GPL-3.0-or-later
//! At the end of a message: signature, count, decision, and all that is said of them.

use super::counting::report;
use super::header::HeaderValue;
use super::rules::{OnFailure, Rules};
use super::serve::Service;
use super::session::Message;
use super::told::tell;
use crate::ledger::{Ledger, RetryKey};
use crate::mail::RawMessage;
use crate::policy::{Action, Counts, Decision, Facts, Per, ReplyFields, Verdict, decide};
use crate::signature::{Signature, Signatures, signatures};
use crate::sync::Links;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// Messages above this size are hashed on a thread of their own, so that small ones do not wait behind them.
const LARGE: usize = 256 << 10;

/// Recipients that are named in a log line.
const LOGGED_RECIPIENTS: usize = 5;

/// What is to be done with a message, and said about it.
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) action: Action,
    /// The value of the header.
    pub(super) header: String,
    /// The SMTP answer of a refusal: code, status, text.
    pub(super) reply: Option<(String, String, String)>,
}

/// What was found out of a message's content.
struct Content {
    from: Vec<String>,
    list_id: Option<String>,
    message_id: Option<String>,
    signatures: Signatures,
}

/// How far the judging came.
pub(super) enum Finding {
    /// Not looked at, and why.
    Exempt(&'static str),
    /// Not judged, and why; the second text is for the log alone.
    Unknown(&'static str, String),
    /// The test message, which is bulk and never counted.
    Canary(Option<Signature>),
    Counted {
        counts: Counts,
        signatures: Signatures,
        decision: Decision,
        /// Seconds since an upstream was heard, where that is too long ago.
        stale: Option<u64>,
        /// Signatures that were reported.
        reported: usize,
        /// Whether a count has reached its threshold, whether that is wanted or not.
        bulk: bool,
    },
}

/// Judges a complete message. `id` is the MTA's queue id and `mta` its host name.
pub(super) async fn judge(message: Message, service: &Service, id: &str, mta: Option<&str>) -> Outcome {
    let began = Instant::now();
    let rules = Arc::clone(&message.rules);
    let host = rules.hostname.as_deref().or(mta).unwrap_or("localhost");
    let mut message = message;
    let finding = find(&mut message, &service.ledger, &service.links).await;
    let outcome = conclude(&rules, &finding, id, host);
    tell(&service.activity, &message, &finding, &outcome, id, began.elapsed());
    log_message(&message, &finding, &outcome, id, &rules);
    outcome
}

async fn find(message: &mut Message, ledger: &Ledger, links: &Links) -> Finding {
    if let Some(reason) = message.exempt {
        return Finding::Exempt(reason);
    }
    if let Some(over) = message.raw.over() {
        return Finding::Unknown("too-large", over.to_string());
    }
    if let Some(reason) = message.unjudged {
        return Finding::Unknown(reason, String::new());
    }
    let raw = std::mem::take(&mut message.raw);
    let Some(content) = content(raw, &message.rules).await else {
        return Finding::Unknown("internal-error", "the message could not be read".to_owned());
    };
    if content.signatures.canary {
        return Finding::Canary(content.signatures.body.ok());
    }
    if content.signatures.is_empty() {
        return Finding::Exempt("low-information");
    }
    let stale = links.staleness().filter(|&age| age > message.rules.max_staleness);
    count(message, content, stale, ledger).await
}

/// None when reading it panicked, which costs this message its verdict and nothing else.
async fn content(raw: RawMessage, rules: &Arc<Rules>) -> Option<Content> {
    let rules = Arc::clone(rules);
    let large = raw.len() > LARGE;
    let read = move || {
        let fields = raw.fields();
        let signatures = signatures(&raw, &rules.key, &rules.signature);
        Content { from: fields.from, list_id: fields.list_id, message_id: fields.message_id, signatures }
    };
    if large {
        tokio::task::spawn_blocking(read).await.ok()
    } else {
        catch_unwind(AssertUnwindSafe(read)).ok()
    }
}

async fn count(message: &Message, content: Content, stale: Option<u64>, ledger: &Ledger) -> Finding {
    let rules = &message.rules;
    let now = crate::ledger::now();
    // Keys cost a hash for each recipient; they are needed only where something is ever refused for the moment.
    let tempfails = rules.actions.has_tempfail() || ledger.remembers_refused();
    let keys = if tempfails { retry_keys(message, &content) } else { Vec::new() };
    let times = match rules.per {
        Per::Recipient => u32::try_from(distinct(&message.recipients).len()).unwrap_or(u32::MAX).max(1),
        Per::Message => 1,
    };
    let (counts, reported) = match report(&content.signatures, times, &keys, now, &rules.key, ledger).await {
        Ok(counts) => counts,
        Err(e) => return Finding::Unknown("ledger-unavailable", e.to_string()),
    };
    let facts = Facts {
        client_ip: message.client.ip,
        client_host: message.client.host.as_deref(),
        sender: Some(&message.sender),
        recipients: &message.recipients,
        from: &content.from,
        list_id: content.list_id.as_deref(),
        signature: content.signatures.body.ok(),
    };
    let marking = rules.actions.marking();
    let actions = if stale.is_some() && !rules.act_when_stale { &marking } else { &rules.actions };
    let decision = decide(counts, &rules.thresholds, actions, &rules.whitelist, &facts);
    if decision.action == Action::Tempfail
        && let Err(e) = ledger.refused(keys, now).await
    {
        log::warn!("a message is refused for the moment and may be counted again when it returns: {e}");
    }
    let bulk = rules.thresholds.body.is_reached(counts.body) || rules.thresholds.near.is_reached(counts.near);
    Finding::Counted { counts, signatures: content.signatures, decision, stale, reported, bulk }
}

/// The different recipients: who is named twice still gets one copy.
fn distinct(recipients: &[String]) -> HashSet<&str> {
    recipients.iter().map(String::as_str).collect()
}

/// One key for each recipient, or one for the message where it counts once.
fn retry_keys(message: &Message, content: &Content) -> Vec<RetryKey> {
    let first = content.signatures.reported().first().map_or([0; 16], |signature| signature.to_bytes());
    let ip = message.client.ip.map(|ip| ip.to_string()).unwrap_or_default();
    let id = content.message_id.as_deref().unwrap_or_default();
    let key = |recipient: &str| {
        RetryKey::new(&[
            id.as_bytes(),
            message.sender.as_bytes(),
            ip.as_bytes(),
            &first,
            recipient.as_bytes(),
        ])
    };
    match message.rules.per {
        Per::Recipient => distinct(&message.recipients).into_iter().map(key).collect(),
        Per::Message => vec![key("")],
    }
}

fn conclude(rules: &Rules, finding: &Finding, id: &str, host: &str) -> Outcome {
    let plain = |verdict, reason: &str, action| Outcome {
        verdict,
        action,
        header: HeaderValue::new(verdict).field("reason", reason).field("host", host).into_string(),
        reply: None,
    };
    match finding {
        Finding::Exempt(reason) => plain(Verdict::Exempt, reason, Action::Mark),
        Finding::Unknown(reason, _) => match rules.on_failure {
            OnFailure::Accept => plain(Verdict::Unknown, reason, Action::Mark),
            OnFailure::Tempfail => plain(Verdict::Unknown, reason, Action::Tempfail),
        },
        Finding::Canary(signature) => {
            let action = rules.actions.bulk;
            // A refusal reads as that of a message that has just become bulk.
            let threshold = rules.thresholds.body.get();
            let signature = signature.map(|signature| signature.to_string()).unwrap_or_default();
            let fields = ReplyFields { count: threshold, threshold, id, host, signature: &signature };
            Outcome { reply: reply(rules, action, &fields), ..plain(Verdict::Bulk, "canary", action) }
        }
        Finding::Counted { counts, signatures, decision, stale, .. } => {
            let (body, near) = (rules.thresholds.body.get(), rules.thresholds.near.get());
            let mut header = HeaderValue::new(decision.verdict);
            for (name, count) in [("body", counts.body), ("near", counts.near)] {
                if let Some(count) = count {
                    header = header.field(name, count);
                }
            }
            header = header.field("threshold", body);
            if near != body {
                header = header.field("near-threshold", near);
            }
            header = header.field("host", host);
            if let Some(age) = stale {
                header = header.field("stale", age);
            }
            if let Some(entry) = &decision.whitelist {
                header = header.field("whitelist", entry);
            }
            // The kind by which it is bulk, for who is refused.
            let (count, threshold) = match (counts.body, counts.near) {
                (body_count, Some(count)) if body_count.is_none_or(|seen| seen < body) => (count, near),
                (body_count, _) => (body_count.unwrap_or(0), body),
            };
            let signature = signatures.body.ok().map(|signature| signature.to_string()).unwrap_or_default();
            let fields = ReplyFields { count, threshold, id, host, signature: &signature };
            Outcome {
                verdict: decision.verdict,
                action: decision.action,
                header: header.into_string(),
                reply: reply(rules, decision.action, &fields),
            }
        }
    }
}

fn reply(rules: &Rules, action: Action, fields: &ReplyFields<'_>) -> Option<(String, String, String)> {
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
    Some((code.to_owned(), status.to_owned(), text.fill(fields)))
}

/// The one line of a message. Addresses come from outside; the logger takes control characters out of them.
fn log_message(message: &Message, finding: &Finding, outcome: &Outcome, id: &str, rules: &Rules) {
    let mut line = format!("{id}: client={}[", message.client.host.as_deref().unwrap_or("unknown"));
    // Writing to a String does not fail.
    let _ = match message.client.ip {
        Some(ip) => write!(line, "{ip}]"),
        None => write!(line, "local]"),
    };
    let _ = write!(line, " from=<{}> to=", message.sender);
    for (i, recipient) in message.recipients.iter().take(LOGGED_RECIPIENTS).enumerate() {
        let _ = write!(line, "{}<{recipient}>", if i > 0 { "," } else { "" });
    }
    let _ = write!(line, " nrcpt={} verdict={}", message.recipients.len(), outcome.verdict);
    match finding {
        Finding::Exempt(reason) => drop(write!(line, " reason={reason}")),
        Finding::Canary(_) => line.push_str(" reason=canary"),
        Finding::Unknown(reason, detail) if detail.is_empty() => drop(write!(line, " reason={reason}")),
        Finding::Unknown(reason, detail) => drop(write!(line, " reason={reason} ({detail})")),
        Finding::Counted { counts, signatures, decision, .. } => {
            for (name, count) in [("body", counts.body), ("near", counts.near)] {
                let _ = count.map(|count| write!(line, " {name}={count}"));
            }
            let _ = write!(line, " threshold={}", rules.thresholds.body.get());
            let _ = signatures.body.ok().map(|signature| write!(line, " signature={signature}"));
            if let Some(entry) = &decision.whitelist {
                let _ = write!(line, " whitelist={entry}");
            }
        }
    }
    let elapsed = message.started.elapsed().as_secs_f64() * 1000.0;
    let _ = write!(line, " action={} ms={elapsed:.1}", outcome.action);
    match finding {
        Finding::Unknown(..) => log::warn!("{line}"),
        _ => log::info!("{line}"),
    }
}
