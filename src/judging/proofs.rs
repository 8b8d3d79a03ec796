// SPDX-License-Identifier: GPL-3.0-or-later
//! Has bulk verified that a white list may want.

use super::service::Service;
use crate::lookup::{Case, Evidence, Found};
use bulkmark_policy::{Counts, Party};
use bulkmark_verdict::{Content, Envelope, Rules, to_verify};
use log::Level;
use tokio::time::Instant;

/// Verifies what a message claims, as far as an entry asks for it and the message is bulk; until the deadline at most.
pub(super) async fn prove(
    service: &Service,
    rules: &Rules,
    (envelope, parties): (&Envelope, &[Party<'_>]),
    (content, evidence): (&mut Content, Option<&Evidence>),
    counts: Counts,
    deadline: Instant,
) {
    let asked = to_verify(rules, parties, envelope, content, counts);
    if asked.is_empty() {
        return;
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
    let left = deadline.saturating_duration_since(Instant::now());
    let verified = service.verifiers.verify(&rules.authentication, case, left).await;
    let id = envelope.id();
    if let Some(unverified) = &verified.unverified {
        let then =
            if rules.authentication.act_when_unverified { "treated as unverified" } else { "only marked" };
        log::warn!("{id}: bulk that a white list may want is {then}: {}", unverified.detail);
        content.unverified = Some(unverified.reason);
    }
    if log::log_enabled!(Level::Debug) {
        let found: Vec<_> = verified.found.iter().map(Found::to_string).collect();
        log::debug!("{id}: {}", found.join("; "));
    }
    content.proven = verified.proven;
}
