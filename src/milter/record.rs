// SPDX-License-Identifier: GPL-3.0-or-later
//! What metrics and status page keep of a message.

use super::judgement::Judgement;
use crate::activity::{Activity, Judged, Recent, Seen};
use crate::ledger::now;
use crate::mail::subject;
use crate::verdict::{Envelope, Finding};
use std::panic::catch_unwind;
use std::time::Duration;

/// Letters of a subject or name from outside that are kept.
const MAX_LETTERS: usize = 120;

/// Records a judgement that took so long. `subject_field` is the value of the Subject field, where it is wanted.
pub(super) fn record(
    activity: &Activity,
    envelope: &Envelope,
    subject_field: Option<&[u8]>,
    judgement: &Judgement,
    time: Duration,
) {
    let now = now();
    let Judgement { finding, outcome, content, reported } = judgement;
    let (verdict, action) = (outcome.verdict, outcome.action);
    let held = matches!(finding, Finding::Counted(counted) if counted.decision.held);
    let (reason, counts, signature, bulk) = match finding {
        // It is a test of the mail system, and no mail: it stands in the log alone.
        Finding::Canary(_) => return activity.canary(),
        Finding::Exempt(reason) => (Some(reason.as_str()), None, None, None),
        Finding::Unknown(reason, _) => (Some(reason.as_str()), None, None, None),
        Finding::Counted(counted) => {
            let bulk = content.as_ref().filter(|_| counted.is_bulk);
            let bulk = bulk.map(|content| (&content.signatures, counted.counts));
            (held.then_some("few sources"), Some(counted.counts), counted.signature, bulk)
        }
    };
    activity.judged(&Judged { verdict, action, held, signatures: *reported, time, now });
    if !activity.is_recording() {
        return;
    }
    let sender = envelope.sender.as_deref().unwrap_or_default();
    let domain = sender.rsplit_once('@').map_or("", |(_, domain)| domain);
    let recent = Recent {
        at: now,
        id: short(envelope.id()),
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
    let subject = bulk.and(subject_field).map(|value| {
        // A subject that cannot be read costs the page a subject, and nobody a message.
        short(&catch_unwind(|| subject(value)).unwrap_or_default())
    });
    let seen = bulk.map(|(signatures, counts)| Seen { signatures, counts, subject: subject.as_deref() });
    activity.record(recent, seen.as_ref());
}

fn short(text: &str) -> String {
    text.chars().take(MAX_LETTERS).collect()
}
