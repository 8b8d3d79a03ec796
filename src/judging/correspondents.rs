// SPDX-License-Identifier: GPL-3.0-or-later
//! Whom one's own users write to, as their mail passes; and whether somebody to whom a recipient wrote may have sent a message.

use super::message::Message;
use super::service::Service;
use crate::lookup::{Case, Evidence};
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_mail::{RawMessage, values};
use bulkmark_policy::{Action, Authenticate, Correspondence, Facts, Proven};
use bulkmark_verdict::{Content, Envelope, Finding, Outcome, Rules, is_held_for_correspondent};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Recipients of a message to whom its sender is said to write. Who writes to more at once writes a newsletter.
const MOST_WRITTEN: usize = 20;

/// Remembers to whom an own user wrote this message, if it is such mail and goes on; on disk when this returns, or at the deadline.
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
    let is_sent = outcome.action == Action::Mark && (1..=MOST_WRITTEN).contains(&recipients.len());
    if !(is_own && is_letter && is_sent && !is_over && rules.spares_correspondents()) {
        return;
    }
    let Some(sender) = envelope.sender.as_deref().filter(|sender| sender.contains('@')) else { return };
    let user = rules.mailboxes.mailbox(sender);
    let others: Vec<String> = recipients.iter().map(|to| rules.mailboxes.mailbox(to)).collect();
    let is_new = service.correspondents.write(&user, others.iter().map(|to| &**to), bulkmark_ledger::now());
    if is_new {
        let correspondents = Arc::clone(&service.correspondents);
        let keep = tokio::task::spawn_blocking(move || correspondents.keep());
        if timeout_at(deadline, keep).await.is_err() {
            log::warn!("{}: to whom it was written is not on disk yet, which does not answer", envelope.id());
        }
    }
}

/// What a stored message has by which it may be proven from whom it is.
#[derive(Debug, Default)]
pub(super) struct Traces {
    /// By what its signatures can be verified, where that is done here.
    evidence: Option<Evidence>,
    /// Whether the milter found that as it came, and only marked it therefore.
    is_held: bool,
}

impl Traces {
    /// Takes them of a whole message as it was read, and its bytes.
    pub(super) fn of(message: &RawMessage, raw: &[u8], rules: &Rules) -> Self {
        // All that others wrote of that name was taken out as it came. Where it was not there are two of them, at least.
        let mut marks = values(raw, rules.header.as_str());
        let is_held = marks.next().is_some_and(is_held_for_correspondent) && marks.next().is_none();
        Self { evidence: rules.verifies().then(|| Evidence::of(message)).flatten(), is_held }
    }
}

/// A message that is reported.
#[derive(Clone, Copy)]
pub(super) struct Reported<'a> {
    pub(super) content: &'a Content,
    pub(super) envelope: &'a Envelope,
    pub(super) subject: &'a str,
    pub(super) traces: &'a Traces,
}

/// Of a message of which somebody says that it is spam: the pairs by which that ends a correspondence, since a recipient says so, and it is
/// proven that the message is from there: who forges somebody's address ends nobody's correspondence with them.
///
/// # Errors
/// The address to which a recipient wrote, if somebody else says it: that is somebody's correspondent, as far as it can be told.
pub(super) async fn ended(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    reporter: &str,
) -> Result<Vec<u64>, String> {
    let is_reporter = |recipient: &str| {
        let (mailbox, name) = (rules.mailboxes.mailbox(recipient), rules.mailboxes.mailbox(reporter));
        mailbox == name || mailbox.rsplit_once('@').is_some_and(|(user, _)| user == name)
    };
    let Reported { content, traces, .. } = message;
    let mut envelope = message.envelope.clone();
    if reporter.contains('@') && !envelope.recipients.iter().any(|recipient| is_reporter(recipient)) {
        envelope.recipients.push(reporter.to_owned());
    }
    let mut all = correspondences(&service.correspondents, rules, &envelope, content);
    let authenticate = rules.authentication.authenticate;
    // What a verifier wrote into the header is still there.
    if authenticate == Authenticate::Header {
        let facts = content.facts(&envelope, rules);
        all.retain(|of| traces.is_held || of.is_proven(&facts, false));
    }
    if let Some(of) = all.iter().find(|of| !is_reporter(&of.recipient)) {
        return Err(of.address.clone());
    }
    let found = all.len();
    if !traces.is_held {
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

/// Keeps those of which the message's signatures prove that it is from there. Its client is not known any more.
async fn verify(
    service: &Service,
    rules: &Rules,
    Reported { content, envelope, traces, .. }: Reported<'_>,
    all: &mut Vec<Correspondence>,
) {
    let mut asked = Proven::default();
    all.iter().for_each(|of| asked.extend(of.claims(&content.claimed)));
    if asked.is_empty() {
        return all.clear();
    }
    let case = Case {
        asked,
        evidence: traces.evidence.clone(),
        client: None,
        helo: "unknown".to_owned(),
        sender: envelope.sender.clone().unwrap_or_default(),
        host: rules.hostname.clone().unwrap_or_else(|| "localhost".to_owned()),
    };
    let settings = &rules.authentication;
    let verified = service.verifiers.verify(settings, case, settings.timeout).await;
    let facts = Facts { proven: Some(&verified.proven), ..content.facts(envelope, rules) };
    all.retain(|of| of.is_proven(&facts, false));
}

/// Forgets these pairs.
pub(super) async fn forget(service: &Service, pairs: &[u64]) {
    if service.correspondents.forget(pairs) {
        let correspondents = Arc::clone(&service.correspondents);
        // A panic there has told of itself.
        let _ = tokio::task::spawn_blocking(move || correspondents.keep()).await;
    }
}

/// By which of a message's addresses a recipient wrote to it. Whether it really comes from there is not known yet.
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
    let known = correspondents.know(&rules.correspondences(&all), bulkmark_ledger::now());
    rules.known_of(all, &known)
}
