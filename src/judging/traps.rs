// SPDX-License-Identifier: GPL-3.0-or-later
//! What is sent to a trap is nominated as spam.

use super::correspondents::{Reported, Traces};
use super::report::{Refused, Taken, Word, take};
use super::service::Service;
use bulkmark_counts::Side;
use bulkmark_mail::subject;
use bulkmark_policy::{Party, Sprung};
use bulkmark_types::ReporterKind;
use bulkmark_verdict::{Content, Envelope, Rules, wanted_by};
use std::borrow::Cow;
use std::panic::catch_unwind;
use tokio::time::{Instant, timeout_at};

/// Traps of one message that nominate it. Each is a reporter; who writes to more of them at once is heard often enough.
const MOST_TRAPS: usize = 10;

/// The recipients of a message that are traps.
pub(super) fn trapped<'a>(rules: &Rules, envelope: &'a Envelope) -> Vec<&'a str> {
    if rules.traps.is_empty()
        || rules.is_outbound(envelope)
        || rules.exempt(envelope).is_some()
        || envelope.authenticated
    {
        return Vec::new();
    }
    let recipients = envelope.recipients.iter().map(|to| &**to);
    recipients.filter(|to| rules.traps.has(to, &rules.mailboxes)).collect()
}

/// Has these traps of a message nominate it, unless so much `is_said` already that their words would only take room; what came of it.
pub(super) async fn spring(
    service: &Service,
    rules: &Rules,
    (envelope, parties): (&Envelope, &[Party<'_>]),
    (content, subject_field): (&Content, Option<&[u8]>),
    (traps, is_said): (&[&str], bool),
    deadline: Instant,
) -> Sprung {
    // Whoever does not know whether it is wanted says nothing of it.
    if content.unverified.is_some() || envelope.answers.failed.is_some() {
        log::warn!(
            "{}: a trap got it, and says nothing, since it is not known whether a white list wants it",
            envelope.id()
        );
        return Sprung::Refused;
    }
    // One that cannot be read costs the list of reports a subject, and nobody a message.
    let read = |field| catch_unwind(|| subject(field)).unwrap_or_default();
    let subject = subject_field.map(read).unwrap_or_default();
    let message = Reported { content, envelope, subject: &subject, traces: &Traces::default() };
    let (mut best, now) = (Sprung::Refused, bulkmark_ledger::now());
    let mut heard: Vec<String> = Vec::new();
    for &trap in traps {
        let mailbox = rules.mailboxes.mailbox(trap);
        // All names of a trap's domain are one reporter: who knows the domain can make up as many as he likes.
        let entry = rules.traps.entry(trap, &rules.mailboxes).unwrap_or_else(|| mailbox.clone());
        if heard.contains(&entry) || heard.len() >= MOST_TRAPS {
            continue;
        }
        let party = parties.iter().find(|party| party.recipients.iter().any(|to| to == trap));
        let by = party.map(|party| party.by).unwrap_or_default();
        if let Some(entry) = wanted_by(rules, by, envelope, content, trap) {
            service.activity.trap_wanted(&mailbox, entry.to_string(), now);
            return Sprung::Whitelisted;
        }
        if is_said {
            best = best.min(Sprung::Known);
            continue;
        }
        if !rules.terms(by).thresholds.min_sources.is_off()
            && !service.trap_networks.may_speak(&content.signatures.reported(), envelope.network(), &entry)
        {
            log::info!(
                "{}: the trap {entry} says nothing, since another one was told of this mailing from the same network",
                envelope.id()
            );
            best = best.min(Sprung::Known);
            continue;
        }
        let result = nominate(service, rules, message, &entry, deadline).await;
        best = best.min(result);
        heard.push(entry);
    }
    best
}

async fn nominate(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    trap: &str,
    deadline: Instant,
) -> Sprung {
    let word = Word {
        reporter: [ReporterKind::Trap.prefix(), trap].concat().into_bytes(),
        side: Side::Spam,
        force: false,
        only_withdraws: false,
    };
    let taken = take(service, rules, message, word, Some(rules.traps.weight()));
    let why: Cow<'_, str> = match timeout_at(deadline, taken).await {
        Ok(Ok(Taken { said, .. })) if said.counted > 0 => return Sprung::Nominated,
        Ok(Ok(Taken { said, .. })) if said.known > 0 => return Sprung::Known,
        Ok(Ok(_)) => "there is no room for more of what users and traps say".into(),
        Ok(Err(Refused::Own { address, .. })) => {
            format!("{address} is of your own (user-reports.own-domains)").into()
        }
        Ok(Err(e)) => e.to_string().into(),
        Err(_) => "the ledger did not answer in time".into(),
    };
    log::info!("{}: a trap got it, and it is not nominated: {why}", message.envelope.id());
    Sprung::Refused
}
