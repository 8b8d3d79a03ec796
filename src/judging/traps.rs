// SPDX-License-Identifier: GPL-3.0-or-later
//! Nominates mail to traps as spam.

use super::correspondents::{Reported, SenderEvidence};
use super::report::{Refused, Taken, UserReport, take};
use super::service::Service;
use bulkmark_counts::Side;
use bulkmark_mail::subject;
use bulkmark_policy::{Party, TrapResult};
use bulkmark_types::ReporterKind;
use bulkmark_verdict::{Content, Envelope, Rules, wanted_by};
use std::borrow::Cow;
use std::panic::catch_unwind;
use tokio::time::{Instant, timeout_at};

/// The most traps of one message that nominate it. Each is a reporter; a message to more of them has reports enough.
const MOST_TRAPS: usize = 10;

/// The recipients of a message that are traps.
pub(super) fn trap_recipients<'a>(rules: &Rules, envelope: &'a Envelope) -> Vec<&'a str> {
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

/// Nominates a message for these traps, unless it has so many reports that more would only take room; returns the result.
pub(super) async fn nominate_for_traps(
    service: &Service,
    rules: &Rules,
    (envelope, parties): (&Envelope, &[Party<'_>]),
    (content, subject_field): (&Content, Option<&[u8]>),
    (traps, has_enough): (&[&str], bool),
    deadline: Instant,
) -> TrapResult {
    // Without knowing whether it is wanted, no trap nominates it.
    if content.unverified.is_some() || envelope.answers.failed.is_some() {
        log::warn!(
            "{}: a trap got it, and says nothing, since it is not known whether a white list wants it",
            envelope.id()
        );
        return TrapResult::Refused;
    }
    // An unreadable subject is missing in the list of reports; the message is not affected.
    let read = |field| catch_unwind(|| subject(field)).unwrap_or_default();
    let subject = subject_field.map(read).unwrap_or_default();
    let message = Reported { content, envelope, subject: &subject, evidence: &SenderEvidence::default() };
    let (mut best, now) = (TrapResult::Refused, bulkmark_ledger::now());
    let mut nominated_by: Vec<String> = Vec::new();
    for &trap in traps {
        let mailbox = rules.mailboxes.mailbox(trap);
        // All names of a trap's domain are one reporter: a sender who knows the domain can make up any number.
        let entry = rules.traps.entry(trap, &rules.mailboxes).unwrap_or_else(|| mailbox.clone());
        if nominated_by.contains(&entry) || nominated_by.len() >= MOST_TRAPS {
            continue;
        }
        let party = parties.iter().find(|party| party.recipients.iter().any(|to| to == trap));
        let by = party.map(|party| party.by).unwrap_or_default();
        if let Some(entry) = wanted_by(rules, by, envelope, content, trap) {
            service.activity.trap_wanted(&mailbox, entry.to_string(), now);
            return TrapResult::Whitelisted;
        }
        if has_enough {
            best = best.min(TrapResult::Known);
            continue;
        }
        if !rules.terms(by).thresholds.min_sources.is_off()
            && !service.trap_networks.may_nominate(&content.signatures.reported(), envelope.network(), &entry)
        {
            log::info!(
                "{}: the trap {entry} says nothing, since another one was told of this mailing from the same network",
                envelope.id()
            );
            best = best.min(TrapResult::Known);
            continue;
        }
        let result = nominate(service, rules, message, &entry, deadline).await;
        best = best.min(result);
        nominated_by.push(entry);
    }
    best
}

async fn nominate(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    trap: &str,
    deadline: Instant,
) -> TrapResult {
    let report = UserReport {
        reporter: [ReporterKind::Trap.prefix(), trap].concat().into_bytes(),
        side: Side::Spam,
        force: false,
        only_withdraws: false,
    };
    let taken = take(service, rules, message, report, Some(rules.traps.weight()));
    let why: Cow<'_, str> = match timeout_at(deadline, taken).await {
        Ok(Ok(Taken { tally, .. })) if tally.counted > 0 => return TrapResult::Nominated,
        Ok(Ok(Taken { tally, .. })) if tally.known > 0 => return TrapResult::Known,
        Ok(Ok(_)) => "there is no room for more of what users and traps say".into(),
        Ok(Err(Refused::Own { address, .. })) => {
            format!("{address} is of your own (user-reports.own-domains)").into()
        }
        Ok(Err(e)) => e.to_string().into(),
        Err(_) => "the ledger did not answer in time".into(),
    };
    log::info!("{}: a trap got it, and it is not nominated: {why}", message.envelope.id());
    TrapResult::Refused
}
