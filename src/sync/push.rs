// SPDX-License-Identifier: GPL-3.0-or-later
//! Sends own reports to the server that is followed, and open batches to the server that they belong to.

use super::backoff::Backoff;
use super::client::{Client, ClientError};
use super::settings::Settings;
use super::state::Links;
use super::wire::Reports;
use crate::ledger::{Ledger, LedgerError, now};
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How often it is seen whether reports waited for too long or are too many.
const TRIM: Duration = Duration::from_secs(10);

/// Sends reports for ever, in batches, to the one of `clients` that is followed.
pub async fn push(ledger: Ledger, settings: Settings, clients: Vec<Arc<Client>>, links: Arc<Links>) {
    let senders = clients.into_iter().enumerate().map(|(i, client)| {
        let (ledger, settings, links) = (ledger.clone(), settings.clone(), Arc::clone(&links));
        tokio::spawn(async move { push_to(&ledger, &settings, i, &client, &links).await })
    });
    let senders: Vec<_> = senders.collect();
    loop {
        tokio::time::sleep(TRIM).await;
        // By a clock that may be wrong nothing is too old.
        let now = if links.clock_is_doubtful() { 0 } else { now() };
        match ledger.trim_spool(now).await {
            Ok(0) => (),
            Ok(lost) => {
                links.dropped(lost);
                log::error!(
                    "{lost} reports were dropped: no server took them in time, or there were too many"
                );
            }
            Err(LedgerError::Closed) => {
                senders.iter().for_each(tokio::task::JoinHandle::abort);
                return;
            }
            Err(e) => log::warn!("{e}"),
        }
    }
}

async fn push_to(ledger: &Ledger, settings: &Settings, i: usize, client: &Client, links: &Links) {
    let mut backoff = Backoff::default();
    loop {
        // Only the followed server gets new batches; the others get what was sent to them before and has no answer.
        let new = links.active() == Some(i);
        match send_one(ledger, client, links, new).await {
            Ok(sent) => {
                if sent {
                    backoff = Backoff::default();
                }
                // What came meanwhile waits for company.
                tokio::time::sleep(settings.interval).await;
            }
            Err(Unsent::Closed) => return,
            Err(Unsent::Later(e)) => {
                client.link.report(Some(e));
                backoff.wait().await;
            }
        }
    }
}

enum Unsent {
    Later(String),
    Closed,
}

impl From<LedgerError> for Unsent {
    fn from(error: LedgerError) -> Self {
        if error == LedgerError::Closed { Self::Closed } else { Self::Later(error.to_string()) }
    }
}

/// True when a batch was sent and acknowledged.
async fn send_one(ledger: &Ledger, client: &Client, links: &Links, new: bool) -> Result<bool, Unsent> {
    let Some((spool, batch)) = ledger.next_batch(client.url().to_owned(), new).await? else {
        return Ok(false);
    };
    let held = batch.reports.len() as u64;
    let reports = Reports { spool, number: batch.number, reports: batch.reports };
    match client.report(&reports).await {
        Ok(receipt) => {
            ledger.acknowledge(client.url().to_owned(), batch.number, receipt).await?;
            Ok(true)
        }
        Err(ClientError::Refused { status: StatusCode::CONFLICT, reason })
            if reason.starts_with("batch ") =>
        {
            log::error!(
                "{}: {reason}; this spool was restored from an old copy, and its reports were counted already",
                client.url()
            );
            ledger.renew_spool(client.url().to_owned(), spool).await?;
            Ok(true)
        }
        Err(ClientError::Refused { status, reason })
            if matches!(status, StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) =>
        {
            log::error!("{}: {status}: {reason}; the batch is dropped", client.url());
            ledger.drop_batch(client.url().to_owned(), batch.number).await?;
            links.dropped(held);
            Ok(true)
        }
        Err(e) => Err(Unsent::Later(e.to_string())),
    }
}
