// SPDX-License-Identifier: GPL-3.0-or-later
//! What a thin milter reports of messages that it judged by a part of the counts: from which networks they came, and strays. A full one
//! knows at once whether others saw enough of a message for that to matter; here the server is asked after the mail server was answered.

use super::later::{Judged, MOST};
use super::service::Service;
use super::thin::{together, wanted};
use crate::ledger::{Report, Shared, now};
use crate::signature::{FederationKey, Signature};
use crate::sync::wire::MAX_ASKED;
use crate::verdict::{Inquiry, Mode, Question};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after its verdict a message is looked at: by then the server has counted it.
const AFTER: Duration = Duration::from_secs(2);

/// Messages that are looked at together: their reported signatures fit one question.
const TOGETHER: usize = MAX_ASKED / 9;

/// How long the server may take for an answer. Nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at messages that were judged by a part of the counts, for ever.
pub async fn look_back(service: Arc<Service>) {
    let mut waiting = service.later.waiting.lock().await;
    let mut all = VecDeque::new();
    loop {
        if all.is_empty() {
            let Some(first) = waiting.recv().await else { return };
            all.push_back(first);
        }
        if let Some(first) = all.front() {
            tokio::time::sleep((first.at + AFTER).saturating_duration_since(Instant::now())).await;
        }
        // Those that came since are not due, but their copies are counted already.
        while all.len() < MOST
            && let Ok(more) = waiting.try_recv()
        {
            all.push_back(more);
        }
        let due = all.iter().take(TOGETHER).take_while(|judged| judged.at.elapsed() >= AFTER).count().max(1);
        look_at(&service, all.make_contiguous(), due).await;
        all.drain(..due.min(all.len()));
    }
}

/// Asks for what the first `due` of these messages reported, and about those more of which there is something to say.
async fn look_at(service: &Service, all: &[Judged], due: usize) {
    let Some(asks) = &service.asks else { return };
    let reported: Vec<Vec<Signature>> =
        all.iter().take(due).map(|judged| judged.signatures.reported()).collect();
    let asked = reported.concat();
    let deadline = Instant::now() + PATIENCE;
    let Some(counts) = asks.counts_now(&asked[..asked.len().min(MAX_ASKED)], deadline).await else { return };
    let mut counts = &counts[..];
    let key = service.rules.load().key.clone();
    for (i, (judged, reported)) in all.iter().zip(reported).enumerate() {
        let (its, rest) = counts.split_at(reported.len().min(counts.len()));
        counts = rest;
        if its.iter().all(|&count| count < judged.quarter()) {
            continue;
        }
        let same = all[i + 1..].iter().filter(|other| other.signatures.body == judged.signatures.body);
        let since = same.fold(0, |sum: u32, other| sum.saturating_add(other.times));
        if report(service, judged, since, &key).await.is_none() {
            return;
        }
    }
}

/// Reports what follows from all counts of a message; in that of its body are so many copies that came `since`. None when these are not
/// known.
async fn report(service: &Service, judged: &Judged, since: u32, key: &FederationKey) -> Option<()> {
    let asks = service.asks.as_ref()?;
    let inquiry = Inquiry::new(&judged.signatures, key, Mode::Report(judged.times)).afterwards();
    let mut inquiry = inquiry.from_network(judged.network, judged.range.clone());
    while let Some(question) = inquiry.ask() {
        let wanted = wanted(&question);
        let elsewhere =
            asks.counts_now(&wanted[..wanted.len().min(MAX_ASKED)], Instant::now() + PATIENCE).await?;
        let elsewhere = elsewhere.into_iter().map(Some).collect();
        let mut counts = together(&question, &vec![0; wanted.len()], &elsewhere);
        let body = counts.first_mut().filter(|_| inquiry.is_first() && judged.signatures.body.is_ok());
        if let Some(body) = body {
            *body = body.saturating_sub(since).max(judged.times);
        }
        let Question { once, also, also_exact, times, .. } = question;
        if !once.is_empty() || !also.is_empty() {
            let shared = Shared::All;
            let report = Report { once, also, also_exact, times, shared, now: now(), ..Report::default() };
            service.ledger.report(report).await.ok()?;
        }
        inquiry.answer(&counts);
    }
    Some(())
}
