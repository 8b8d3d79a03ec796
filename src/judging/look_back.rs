// SPDX-License-Identifier: GPL-3.0-or-later
//! What a milter with a partial copy reports of messages that it judged by a part of the counts: from which networks they came, and strays. A full one
//! knows at once whether others saw enough of a message for that to matter; here the server is asked after the mail server was answered.

use super::later::{Judged, MOST};
use super::partial::{together, wanted};
use super::service::Service;
use bulkmark_counts::{Report, Shared};
use bulkmark_ledger::now;
use bulkmark_sync::wire::MAX_ASKED;
use bulkmark_types::Provenance;
use bulkmark_types::{FederationKey, Signature};
use bulkmark_verdict::{Inquiry, Mode, Question};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after its verdict a message is looked at: by then the server has counted it.
const AFTER: Duration = Duration::from_secs(2);

/// Messages that are looked at together: their reported signatures fit one question.
const TOGETHER: usize = MAX_ASKED / 9;

/// How long the server may take for an answer. Nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Before a server that was silent is asked again, at first and at most; and how long that goes on for a message.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
const TRIED: Duration = Duration::from_secs(3600);

/// Looks at messages that were judged by a part of the counts, for ever. While the server is silent they wait, up to 4096 of them.
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
        let done = look_at(&service, all.make_contiguous(), due).await;
        all.drain(..done);
        if done < due {
            wait_for_server(&service, &mut all).await;
        }
    }
}

/// Waits until the server answers again, and then until it has counted what was reported meanwhile. Messages that wait for too long are
/// let go.
async fn wait_for_server(service: &Service, all: &mut VecDeque<Judged>) {
    let Some(asks) = &service.asks else { return };
    log::info!("{} messages are looked at again for their networks when the server answers", all.len());
    let mut pause = FIRST;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
        while all.pop_front_if(|judged| judged.at.elapsed() > TRIED).is_some() {}
        let Some(first) = all.front() else { return };
        let deadline = Instant::now() + PATIENCE;
        if asks.counts_now(&first.signatures.reported(), deadline).await.is_some() {
            return tokio::time::sleep(AFTER).await;
        }
    }
}

/// Asks for what the first `due` of these messages reported, and about those more of which there is something to say. Returns how many of
/// them are done: fewer when the server is silent.
async fn look_at(service: &Service, all: &[Judged], due: usize) -> usize {
    let due = due.min(all.len());
    let Some(asks) = &service.asks else { return due };
    let reported: Vec<Vec<Signature>> =
        all.iter().take(due).map(|judged| judged.signatures.reported()).collect();
    let asked = reported.concat();
    let deadline = Instant::now() + PATIENCE;
    let Some(counts) = asks.counts_now(&asked[..asked.len().min(MAX_ASKED)], deadline).await else {
        return 0;
    };
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
        if report(service, judged, since, &key).await == Reported::Unasked {
            return i;
        }
    }
    due
}

/// What became of a message's report.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    /// It is over, however it went: a part of it that was counted must not be counted again.
    Over,
    /// The server was silent, and nothing was counted: it may be tried again.
    Unasked,
}

/// Reports what follows from all counts of a message; in that of its body are so many copies that came `since`.
async fn report(service: &Service, judged: &Judged, since: u32, key: &FederationKey) -> Reported {
    let Some(asks) = &service.asks else { return Reported::Over };
    let mut unsuccessful = Reported::Unasked;
    let inquiry = Inquiry::new(&judged.signatures, key, Mode::Report(judged.times)).afterwards();
    let Provenance { network, .. } = judged.provenance;
    let mut inquiry = inquiry.sent_by(judged.provenance.clone()).from_network(network, judged.range.clone());
    while let Some(question) = inquiry.ask() {
        let wanted = wanted(&question);
        let deadline = Instant::now() + PATIENCE;
        let Some(elsewhere) = asks.counts_now(&wanted[..wanted.len().min(MAX_ASKED)], deadline).await else {
            return unsuccessful;
        };
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
            unsuccessful = Reported::Over;
            if service.ledger.report(report).await.is_err() {
                return unsuccessful;
            }
        }
        inquiry.answer(&counts);
    }
    Reported::Over
}
