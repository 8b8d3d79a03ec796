// SPDX-License-Identifier: GPL-3.0-or-later
//! Explains a message as `bulkmark explain` would, before it is counted: from the daemon's own ledger, and with the same code.

use super::super::message::Message;
use super::super::service::Service;
use super::explanation::Explanation;
use super::judged::find;
use super::old_key::old_key_counts;
use super::source::{Case, Source};

use crate::lookup::{Evidence, Tables, Verifiers};
use crate::orders::Orders;
use bulkmark_counts::Shares;
use bulkmark_ledger::{LedgerError, now};
use bulkmark_sync::shares;
use bulkmark_types::Signature;
use bulkmark_verdict::{Content, Envelope, OldKeyCounts, Rules};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The daemon as a source.
struct Daemon<'a> {
    service: &'a Service,
    deadline: Instant,
}

impl Source for Daemon<'_> {
    type Error = LedgerError;

    async fn shares(&self, signatures: &[Signature], may_ask: bool) -> Result<Vec<Shares>, LedgerError> {
        let asks = self.service.asks.as_deref().filter(|_| may_ask);
        shares(&self.service.ledger, asks, signatures.to_vec(), self.deadline.into_std()).await
    }

    async fn know(&self, pairs: &[u64]) -> Vec<bool> {
        self.service.correspondents.contains(pairs, now())
    }

    fn is_partial(&self) -> bool {
        self.service.asks.is_some()
    }

    fn orders(&self) -> &Orders {
        &self.service.orders
    }

    fn tables(&self) -> &Tables {
        &self.service.tables
    }

    fn verifiers(&self) -> &Verifiers {
        &self.service.verifiers
    }
}

/// Explains a message without counting it; the message must be prepared by [`Message::explain`]. `None` if it is too long, if there is too
/// much to read, or if the ledger does not answer before the deadline of verdicts.
pub async fn explain(message: &Message, service: &Service) -> Option<Explanation> {
    let daemon = Daemon { service, deadline: Instant::now() + message.rules.deadline };
    timeout_at(daemon.deadline, explained(message, &daemon)).await.ok().flatten()
}

async fn explained(message: &Message, daemon: &Daemon<'_>) -> Option<Explanation> {
    let Message { rules, envelope, raw, reservation, unjudged, .. } = message;
    if unjudged.is_some() {
        return None;
    }
    let mut reservation = reservation.new_empty();
    let held = reservation.take(raw.len()).then(|| Arc::new((raw.clone(), reservation)))?;
    let (of, under, sender) = (Arc::clone(&held), Arc::clone(rules), envelope.sender.clone());
    let read = move || {
        let (raw, reservation) = &*of;
        let content = Content::claiming(raw, &under, sender.as_deref());
        let evidence = under.verifies().then(|| Evidence::of(raw)).flatten();
        let mut more = reservation.new_empty();
        (content, evidence.and_then(|evidence| more.take(evidence.size()).then_some((evidence, more))))
    };
    let readers = &daemon.service.readers;
    let (content, evidence) = readers.read(envelope.client, read).await.ok()?;
    let case = Case { rules, envelope, evidence: evidence.as_ref().map(|(evidence, _)| evidence) };
    let failed = |e: LedgerError| log::warn!("{}: it is not explained: {e}", envelope.id());
    let judged = find(daemon, case, &content).await.map_err(failed).ok()?;
    for trouble in &judged.troubles {
        log::warn!("{}: {trouble}", envelope.id());
    }
    let signatures = judged.signatures(rules, envelope);
    let shares = daemon.shares(&signatures, judged.may_ask).await.map_err(failed).ok()?;
    let (under, to) = (Arc::clone(rules), envelope.clone());
    let explain = move || Explanation::new((&under, &to), &held.0, &judged, shares);
    readers.read(envelope.client, explain).await.ok()
}

/// The counts of a message under the old key, as the daemon that judges it has them. If no answer comes before the deadline, only counts under
/// the new key are used.
pub(crate) async fn counts_under_old_key(
    service: &Service,
    (rules, envelope): (&Rules, &Envelope),
    content: &Content,
    (may_ask, deadline): (bool, Instant),
) -> OldKeyCounts {
    let (daemon, case) = (Daemon { service, deadline }, Case { rules, envelope, evidence: None });
    match timeout_at(deadline, old_key_counts(&daemon, case, content, may_ask)).await {
        Ok(Ok(counts)) => counts,
        Ok(Err(e)) => {
            log::warn!("{}: counts under the old federation key are missing: {e}", envelope.id());
            OldKeyCounts::default()
        }
        // The next questions get no answer in time, either, and that is logged.
        Err(_) => OldKeyCounts::default(),
    }
}
