// SPDX-License-Identifier: GPL-3.0-or-later
//! Explains a message as `bulkmark explain` would, before it is counted: from the ledger at hand, and by the same code.

use super::super::message::Message;
use super::super::service::Service;
use super::earlier::earlier;
use super::explanation::Explanation;
use super::judged::find;
use super::source::{Case, Source};

use crate::lookup::{Evidence, Tables, Verifiers};
use crate::orders::Orders;
use bulkmark_counts::Shares;
use bulkmark_ledger::{LedgerError, now};
use bulkmark_sync::shares;
use bulkmark_types::Signature;
use bulkmark_verdict::{Content, Earlier, Envelope, Rules};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// What the daemon knows itself.
struct Here<'a> {
    service: &'a Service,
    deadline: Instant,
}

impl Source for Here<'_> {
    type Error = LedgerError;

    async fn shares(&self, signatures: &[Signature], may_ask: bool) -> Result<Vec<Shares>, LedgerError> {
        let asks = self.service.asks.as_deref().filter(|_| may_ask);
        shares(&self.service.ledger, asks, signatures.to_vec(), self.deadline.into_std()).await
    }

    async fn know(&self, pairs: &[u64]) -> Vec<bool> {
        self.service.correspondents.know(pairs, now())
    }

    fn is_thin(&self) -> bool {
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

/// Why a message is what it is, without counting it; it must be one that is to be [explained](Message::explain). None where it was too long to be
/// read, where too much is being read, or where the ledger does not answer within the time that a verdict may take.
pub async fn explain(message: &Message, service: &Service) -> Option<Explanation> {
    let here = Here { service, deadline: Instant::now() + message.rules.deadline };
    timeout_at(here.deadline, explained(message, &here)).await.ok().flatten()
}

async fn explained(message: &Message, here: &Here<'_>) -> Option<Explanation> {
    let Message { rules, envelope, raw, account, unjudged, .. } = message;
    if unjudged.is_some() || raw.over().is_some() {
        return None;
    }
    let mut account = account.of_same();
    let held = account.take(raw.len()).then(|| Arc::new((raw.clone(), account)))?;
    let (of, under, sender) = (Arc::clone(&held), Arc::clone(rules), envelope.sender.clone());
    let read = move || {
        let (raw, account) = &*of;
        let content = Content::claiming(raw, &under, sender.as_deref());
        let evidence = under.verifies().then(|| Evidence::of(raw)).flatten();
        let mut more = account.of_same();
        (content, evidence.and_then(|evidence| more.take(evidence.size()).then_some((evidence, more))))
    };
    let readers = &here.service.readers;
    let (content, evidence) = readers.read(envelope.client, read).await.ok()?;
    let case = Case { rules, envelope, evidence: evidence.as_ref().map(|(evidence, _)| evidence) };
    let untold = |e: LedgerError| log::warn!("{}: it is not explained: {e}", envelope.id());
    let judged = find(here, case, &content).await.map_err(untold).ok()?;
    for trouble in &judged.troubles {
        log::warn!("{}: {trouble}", envelope.id());
    }
    let signatures = judged.signatures(rules, envelope);
    let shares = here.shares(&signatures, judged.may_ask).await.map_err(untold).ok()?;
    let (under, to) = (Arc::clone(rules), envelope.clone());
    let tell = move || Explanation::new((&under, &to), &held.0, &judged, shares);
    readers.read(envelope.client, tell).await.ok()
}

/// The counts of a message under the key before at the daemon that judges it, for as long as a verdict may take. Without an answer only counts under the new key count.
pub async fn earlier_here(
    service: &Service,
    (rules, envelope): (&Rules, &Envelope),
    content: &Content,
    (may_ask, deadline): (bool, Instant),
) -> Earlier {
    let (here, case) = (Here { service, deadline }, Case { rules, envelope, evidence: None });
    match timeout_at(deadline, earlier(&here, case, content, may_ask)).await {
        Ok(Ok(earlier)) => earlier,
        Ok(Err(e)) => {
            log::warn!("{}: counts under the old federation key are missing: {e}", envelope.id());
            Earlier::default()
        }
        // The questions that follow have no answer in time, either, and the log names that.
        Err(_) => Earlier::default(),
    }
}
