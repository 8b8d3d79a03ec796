// SPDX-License-Identifier: GPL-3.0-or-later
//! What metrics and status page are told of a message.

use super::judge::{Finding, Outcome};
use super::session::Message;
use crate::activity::{Activity, Judged, Recent, Seen};
use crate::ledger::now;
use crate::mail::subject;
use std::panic::catch_unwind;
use std::time::Duration;

/// Letters of a subject or name from outside that are kept.
const MAX_LETTERS: usize = 120;

pub(super) fn tell(
    activity: &Activity,
    message: &Message,
    finding: &Finding,
    outcome: &Outcome,
    id: &str,
    time: Duration,
) {
    let now = now();
    let (verdict, action) = (outcome.verdict, outcome.action);
    let signatures = if let Finding::Counted { reported, .. } = finding { *reported } else { 0 };
    activity.judged(&Judged { verdict, action, signatures, time, now });
    if !activity.is_recording() {
        return;
    }
    let (reason, counts, signature, bulk) = match finding {
        Finding::Exempt(reason) | Finding::Unknown(reason, _) => (Some(*reason), None, None, None),
        Finding::Canary(signature) => (Some("canary"), None, *signature, None),
        Finding::Counted { counts, signatures, bulk, .. } => {
            (None, Some(counts), signatures.body.ok(), bulk.then_some((signatures, *counts)))
        }
    };
    let domain = message.sender.rsplit_once('@').map_or("", |(_, domain)| domain);
    let recent = Recent {
        at: now,
        id: short(id),
        verdict: verdict.to_string(),
        action: action.to_string(),
        reason,
        body: counts.and_then(|counts| counts.body),
        near: counts.and_then(|counts| counts.near),
        signature: signature.map(|signature| signature.to_string()),
        mailing: None,
        domain: short(&domain.to_lowercase()),
        ms: (time.as_secs_f64() * 10_000.0).round() / 10.0,
    };
    let subject = bulk.and(message.subject.as_deref()).map(|value| {
        // A subject that cannot be read costs the page a subject, and nobody a message.
        short(&catch_unwind(|| subject(value)).unwrap_or_default())
    });
    let seen = bulk.map(|(signatures, counts)| Seen { signatures, counts, subject: subject.as_deref() });
    activity.record(recent, seen.as_ref());
}

fn short(text: &str) -> String {
    text.chars().take(MAX_LETTERS).collect()
}
