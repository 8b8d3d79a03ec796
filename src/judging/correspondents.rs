// SPDX-License-Identifier: GPL-3.0-or-later
//! Correspondents: remembers the recipients of own users' mail, and finds messages from somebody to whom a recipient wrote.

use super::message::Message;
use super::service::Service;
use crate::lookup::{Case, Evidence};
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_mail::{RawMessage, values};
use bulkmark_policy::{Action, Authenticate, Correspondence, Facts, VerifiedNames};
use bulkmark_verdict::{Content, Envelope, Finding, Outcome, Rules, is_held_for_correspondent};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The most recipients of a message that count as correspondents: a message to more is a newsletter.
const MAX_RECIPIENTS: usize = 20;

/// Remembers the recipients of this message if an own user wrote it and it is delivered; they are on disk when this returns, or at the
/// deadline.
pub(super) async fn remember(
    service: &Service,
    message: &Message,
    (finding, outcome): (&Finding, &Outcome),
    deadline: Instant,
) {
    let (rules, envelope) = (&message.rules, &message.envelope);
    let is_own = envelope.authenticated || rules.is_outbound(envelope);
    let is_over = outcome.account.is_some_and(|standing| standing.is_over);
    let is_letter =
        !outcome.verdict.is_unwanted() && !message.is_automatic && !matches!(finding, Finding::Canary(_));
    let recipients = &envelope.recipients;
    let is_sent = outcome.action == Action::Mark && (1..=MAX_RECIPIENTS).contains(&recipients.len());
    if !(is_own && is_letter && is_sent && !is_over && rules.spares_correspondents()) {
        return;
    }
    let Some(sender) = envelope.sender.as_deref().filter(|sender| sender.contains('@')) else { return };
    let user = rules.mailboxes.mailbox(sender);
    let others: Vec<String> = recipients.iter().map(|to| rules.mailboxes.mailbox(to)).collect();
    let is_new = service.correspondents.record(&user, others.iter().map(|to| &**to), bulkmark_ledger::now());
    if is_new {
        let correspondents = Arc::clone(&service.correspondents);
        let keep = tokio::task::spawn_blocking(move || correspondents.flush());
        if timeout_at(deadline, keep).await.is_err() {
            log::warn!(
                "{}: its recipients are not stored as correspondents yet: the disk does not answer",
                envelope.id()
            );
        }
    }
}

/// The evidence of a stored message about its sender.
#[derive(Debug, Default)]
pub(super) struct SenderEvidence {
    /// The evidence for its signatures, if the milter verifies them.
    signatures: Option<Evidence>,
    /// Whether the milter verified it on arrival, and only marked it for that reason.
    is_held: bool,
}

impl SenderEvidence {
    /// Reads the evidence from a whole message and its bytes.
    pub(super) fn of(message: &RawMessage, raw: &[u8], rules: &Rules) -> Self {
        // Forged fields of this name were removed on arrival. If not, there are at least two of them.
        let mut marks = values(raw, rules.header.as_str());
        let is_held = marks.next().is_some_and(is_held_for_correspondent) && marks.next().is_none();
        Self { signatures: rules.verifies().then(|| Evidence::of(message)).flatten(), is_held }
    }
}

/// A reported message.
#[derive(Clone, Copy)]
pub(super) struct Reported<'a> {
    pub(super) content: &'a Content,
    pub(super) envelope: &'a Envelope,
    pub(super) subject: &'a str,
    pub(super) evidence: &'a SenderEvidence,
}

/// The pairs whose correspondence a spam report ends: the reporter must be a recipient, and the message must be verified. Forging an address
/// ends no correspondence with it.
///
/// # Errors
/// The address to which another recipient than the reporter wrote: it is that recipient's correspondent.
pub(super) async fn ended_correspondences(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    reporter: &str,
) -> Result<Vec<u64>, String> {
    let is_reporter = |recipient: &str| {
        let (mailbox, name) = (rules.mailboxes.mailbox(recipient), rules.mailboxes.mailbox(reporter));
        mailbox == name || mailbox.rsplit_once('@').is_some_and(|(user, _)| user == name)
    };
    let Reported { content, evidence, .. } = message;
    let mut envelope = message.envelope.clone();
    if reporter.contains('@') && !envelope.recipients.iter().any(|recipient| is_reporter(recipient)) {
        envelope.recipients.push(reporter.to_owned());
    }
    let mut all = correspondences(&service.correspondents, rules, &envelope, content);
    let authenticate = rules.authentication.authenticate;
    // The header still has the verifier's field.
    if authenticate == Authenticate::Header {
        let facts = content.facts(&envelope, rules);
        all.retain(|of| evidence.is_held || of.is_verified(&facts, false));
    }
    if let Some(of) = all.iter().find(|of| !is_reporter(&of.recipient)) {
        return Err(of.address.clone());
    }
    let found = all.len();
    if !evidence.is_held {
        match authenticate {
            Authenticate::Header => (),
            // The client's name is not in the message.
            Authenticate::No => all.clear(),
            Authenticate::Here => {
                verify(service, rules, Reported { envelope: &envelope, ..message }, &mut all).await
            }
        }
    }
    if all.len() < found {
        log::info!(
            "a user calls spam what comes in the name of somebody to whom they wrote: that correspondence goes on, since it is not \
             proven that it is from there"
        );
    }
    Ok(rules.correspondences(&all))
}

/// Keeps the correspondences that the message's signatures verify. Its client is no longer known.
async fn verify(
    service: &Service,
    rules: &Rules,
    Reported { content, envelope, evidence, .. }: Reported<'_>,
    all: &mut Vec<Correspondence>,
) {
    let mut asked = VerifiedNames::default();
    all.iter().for_each(|of| asked.extend(of.claims(&content.claimed)));
    if asked.is_empty() {
        return all.clear();
    }
    let case = Case {
        asked,
        evidence: evidence.signatures.clone(),
        client: None,
        helo: "unknown".to_owned(),
        sender: envelope.sender.clone().unwrap_or_default(),
        host: rules.hostname.clone().unwrap_or_else(|| "localhost".to_owned()),
    };
    let settings = &rules.authentication;
    let verified = service.verifiers.verify(settings, case, settings.timeout).await;
    let facts = Facts { verified: Some(&verified.verified), ..content.facts(envelope, rules) };
    all.retain(|of| of.is_verified(&facts, false));
}

/// Forgets these pairs.
pub(super) async fn forget(service: &Service, pairs: &[u64]) {
    if service.correspondents.forget(pairs) {
        let correspondents = Arc::clone(&service.correspondents);
        // A panic is already logged.
        let _ = tokio::task::spawn_blocking(move || correspondents.flush()).await;
    }
}

/// The recipients who wrote to an address that the message claims as its sender. The claim is not verified yet.
pub(super) fn correspondences(
    correspondents: &Correspondents,
    rules: &Rules,
    envelope: &Envelope,
    content: &Content,
) -> Vec<Correspondence> {
    if correspondents.is_empty() || rules.is_outbound(envelope) || !rules.spares_correspondents() {
        return Vec::new();
    }
    let all = content.possible_correspondences(envelope);
    let known = correspondents.contains(&rules.correspondences(&all), bulkmark_ledger::now());
    rules.known_of(all, &known)
}
