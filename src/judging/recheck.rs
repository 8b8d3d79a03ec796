// SPDX-License-Identifier: GPL-3.0-or-later
//! Later reports of a milter with a partial copy, for messages that it judged by a part of the counts: their networks, and strays. A full
//! copy shows at once whether others saw enough of a message for that to matter; here the server is asked after the mail server has its
//! answer.

use super::partial::{merged, wanted};
use super::recheck_queue::{MAX_WAITING, PartlyJudged};
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

/// The delay after a verdict: by then the server has counted the message.
const DELAY: Duration = Duration::from_secs(2);

/// The number of messages that are checked together: their reported signatures fit one question.
const BATCH: usize = MAX_ASKED / 9;

/// The time for the server's answer. No message waits for it.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The first and the longest pause before a silent server is asked again, and the total time for one message.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const GIVE_UP_AFTER: Duration = Duration::from_secs(3600);

/// Checks messages that were judged by a part of the counts, forever. While the server is silent, up to 4096 of them wait.
pub async fn recheck(service: Arc<Service>) {
    let mut waiting = service.recheck_queue.waiting.lock().await;
    let mut all = VecDeque::new();
    loop {
        if all.is_empty() {
            let Some(first) = waiting.recv().await else { return };
            all.push_back(first);
        }
        if let Some(first) = all.front() {
            tokio::time::sleep((first.at + DELAY).saturating_duration_since(Instant::now())).await;
        }
        // Newer messages are not due yet, but their copies are already counted.
        while all.len() < MAX_WAITING
            && let Ok(more) = waiting.try_recv()
        {
            all.push_back(more);
        }
        let due = all.iter().take(BATCH).take_while(|judged| judged.at.elapsed() >= DELAY).count().max(1);
        let done = check(&service, all.make_contiguous(), due).await;
        all.drain(..done);
        if done < due {
            wait_for_server(&service, &mut all).await;
        }
    }
}

/// Waits until the server answers again, and then until it has counted the reports of the meantime. Drops messages that have waited for too
/// long.
async fn wait_for_server(service: &Service, all: &mut VecDeque<PartlyJudged>) {
    let Some(asks) = &service.asks else { return };
    log::info!("{} messages are looked at again for their networks when the server answers", all.len());
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        while all.pop_front_if(|judged| judged.at.elapsed() > GIVE_UP_AFTER).is_some() {}
        let Some(first) = all.front() else { return };
        let deadline = Instant::now() + ANSWER_TIME;
        if asks.counts_now(&first.signatures.reported(), deadline).await.is_some() {
            return tokio::time::sleep(DELAY).await;
        }
    }
}

/// Asks for the reported signatures of the first `due` messages, and checks those with enough copies further. Returns the number of finished
/// messages, which is lower if the server is silent.
async fn check(service: &Service, all: &[PartlyJudged], due: usize) -> usize {
    let due = due.min(all.len());
    let Some(asks) = &service.asks else { return due };
    let reported: Vec<Vec<Signature>> =
        all.iter().take(due).map(|judged| judged.signatures.reported()).collect();
    let asked = reported.concat();
    let deadline = Instant::now() + ANSWER_TIME;
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
        if report(service, judged, since, &key).await == Rechecked::Silent {
            return i;
        }
    }
    due
}

/// The result for one message.
#[derive(Debug, PartialEq, Eq)]
enum Rechecked {
    /// It is finished, successful or not: a part that was counted must not be counted again.
    Done,
    /// The server was silent, and nothing was counted: it can be tried again.
    Silent,
}

/// Reports the signatures that derive from all counts of a message; `since` newer copies are in its body's count.
async fn report(service: &Service, judged: &PartlyJudged, since: u32, key: &FederationKey) -> Rechecked {
    let Some(asks) = &service.asks else { return Rechecked::Done };
    let mut unsuccessful = Rechecked::Silent;
    let inquiry = Inquiry::new(&judged.signatures, key, Mode::Report(judged.times)).already_reported();
    let Provenance { network, .. } = judged.provenance;
    let mut inquiry = inquiry.sent_by(judged.provenance.clone()).from_network(network, judged.range.clone());
    while let Some(question) = inquiry.ask() {
        let wanted = wanted(&question);
        let deadline = Instant::now() + ANSWER_TIME;
        let Some(server_counts) = asks.counts_now(&wanted[..wanted.len().min(MAX_ASKED)], deadline).await
        else {
            return unsuccessful;
        };
        let server_counts = server_counts.into_iter().map(Some).collect();
        let mut counts = merged(&question, &vec![0; wanted.len()], &server_counts);
        let body = counts.first_mut().filter(|_| inquiry.is_first() && judged.signatures.body.is_ok());
        if let Some(body) = body {
            *body = body.saturating_sub(since).max(judged.times);
        }
        let Question { once, also, also_exact, times, .. } = question;
        if !once.is_empty() || !also.is_empty() {
            let shared = Shared::All;
            let report = Report { once, also, also_exact, times, shared, now: now(), ..Report::default() };
            unsuccessful = Rechecked::Done;
            if service.ledger.report(report).await.is_err() {
                return unsuccessful;
            }
        }
        inquiry.answer(&counts);
    }
    Rechecked::Done
}
