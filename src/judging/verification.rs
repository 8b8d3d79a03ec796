// SPDX-License-Identifier: GPL-3.0-or-later
//! Verifies bulk that a white list may want.

use super::service::Service;
use crate::lookup::{Case, Evidence, Found, Verified, Verifiers};
use bulkmark_policy::{Counts, Party};
use bulkmark_verdict::{Content, Envelope, Rules, to_verify};
use log::Level;
use std::time::Duration;
use tokio::time::Instant;

/// Verifies the claimed names of a message that is bulk, as far as an entry needs them; until the deadline at most.
pub(super) async fn verify_bulk(
    service: &Service,
    rules: &Rules,
    to: (&Envelope, &[Party<'_>]),
    claims: (&mut Content, Option<&Evidence>),
    counts: Counts,
    deadline: Instant,
) {
    let left = deadline.saturating_duration_since(Instant::now());
    let Some(verified) = verify(&service.verifiers, rules, to, claims, counts, left).await else { return };
    let id = to.0.id();
    if let Some(unverified) = &verified.unverified {
        let then = if rules.despite.unverified { "treated as unverified" } else { "only marked" };
        log::warn!("{id}: bulk that a white list may want is {then}: {}", unverified.detail);
    }
    if log::log_enabled!(Level::Debug) {
        let found: Vec<_> = verified.found.iter().map(Found::to_string).collect();
        log::debug!("{id}: {}", found.join("; "));
    }
}

/// Verifies the claimed names of a message with these counts, and stores the verified ones in its content; `None` if no entry needs any.
pub(super) async fn verify(
    verifiers: &Verifiers,
    rules: &Rules,
    (envelope, parties): (&Envelope, &[Party<'_>]),
    (content, evidence): (&mut Content, Option<&Evidence>),
    counts: Counts,
    within: Duration,
) -> Option<Verified> {
    let asked = to_verify(rules, parties, envelope, content, counts);
    if asked.is_empty() {
        return None;
    }
    let name = envelope.host.clone().unwrap_or_else(|| "unknown".to_owned());
    let case = Case {
        asked,
        evidence: evidence.cloned(),
        client: envelope.client,
        helo: envelope.helo.clone().unwrap_or(name),
        sender: envelope.sender.clone().unwrap_or_default(),
        host: rules.hostname.clone().unwrap_or_else(|| "localhost".to_owned()),
    };
    let verified = verifiers.verify(&rules.authentication, case, within).await;
    content.unverified =
        verified.unverified.as_ref().map(|unverified| unverified.reason).or(content.unverified);
    content.verified.clone_from(&verified.verified);
    Some(verified)
}
