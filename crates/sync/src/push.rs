// SPDX-License-Identifier: GPL-3.0-or-later
//! Sends the milter's own reports to the followed server, and open batches to the server that they were first sent to. Drops reports that
//! no server takes.

use super::backoff::Backoff;
use super::code::Code;
use super::remote::{Remote, RemoteError};
use super::settings::Settings;
use super::state::{Flow, Links};
use super::wire::Reports;
use bulkmark_ledger::{Ledger, LedgerError, now};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How often reports are checked for age and number.
const TRIM: Duration = Duration::from_secs(10);

/// How long updates wait for the answer to a report, so that a missing answer holds no counts back.
const ANSWER: Duration = Duration::from_secs(2);

/// Drops reports that waited too long or are too many, as long as the ledger is open.
pub async fn trim(ledger: Ledger, links: Arc<Links>) {
    let mut doubted = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep(TRIM) => (),
            () = links.clocks_compared() => (),
        }
        let doubtful = links.clock_is_doubtful();
        match trim_once(&ledger, &links).await {
            Ok(()) => (),
            Err(LedgerError::Closed) => return,
            Err(e) => log::warn!("{e}"),
        }
        if doubtful && !doubted {
            log::warn!(
                "this machine's clock may be wrong: no report is dropped for its age until a server's agrees"
            );
        }
        doubted = doubtful;
    }
}

async fn trim_once(ledger: &Ledger, links: &Links) -> Result<(), LedgerError> {
    // By a doubtful clock, nothing is too old.
    let now = if links.clock_is_doubtful() { 0 } else { now() };
    let lost = ledger.trim_spool(now).await?;
    if lost > 0 {
        links.dropped(lost);
        log::error!("{lost} reports were dropped: no server took them in time, or there were too many");
    }
    Ok(())
}

/// Sends reports to `remote` in batches, as long as the ledger is open: new ones while link number `i` is followed, otherwise only those
/// that were sent to it before and have no answer.
pub async fn push(ledger: Ledger, settings: Settings, i: usize, remote: Arc<Remote>, links: Arc<Links>) {
    let mut backoff = Backoff::default();
    loop {
        let new = links.active() == Some(i);
        match send_one(&ledger, &remote, &links, new).await {
            Ok(sent) => {
                remote.link.set_working(Flow::Reports);
                if sent {
                    backoff = Backoff::default();
                }
                // Later reports wait for more, so that they share a batch.
                tokio::time::sleep(settings.interval).await;
            }
            Err(Unsent::Closed) => return,
            Err(Unsent::Later(e)) => {
                remote.link.set_failing(Flow::Reports, e);
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

/// Sends a batch. True if it was acknowledged.
async fn send_one(ledger: &Ledger, remote: &Remote, links: &Links, new: bool) -> Result<bool, Unsent> {
    let Some((spool, batch)) = ledger.next_batch(remote.url().to_owned(), new).await? else {
        return Ok(false);
    };
    let held = batch.reports.len() as u64;
    let reports = Reports { spool, number: batch.number, reports: batch.reports };
    let Some(refused) = report(ledger, remote, links, &reports).await? else { return Ok(true) };
    match refused.code() {
        Some(Code::BatchNumber) => {
            let Some(lost) = ledger.renew_spool(remote.url().to_owned(), spool).await? else {
                log::info!("{}: {refused}; the earlier fleet had counted it", remote.url());
                return Ok(true);
            };
            log::error!(
                "{}: {refused}; this spool was restored from an old copy, and {lost} of its reports are dropped, since \
                 they were counted already",
                remote.url()
            );
            links.dropped(lost);
            Ok(true)
        }
        Some(Code::Body | Code::BodyTooLong) => {
            log::error!("{}: {refused}; the batch is dropped", remote.url());
            ledger.drop_batch(remote.url().to_owned(), batch.number).await?;
            links.dropped(held);
            Ok(true)
        }
        _ => Err(Unsent::Later(refused.to_string())),
    }
}

/// Sends a batch and stores its receipt. No counts are taken over meanwhile, as they may include it already. Returns the refusal, if any.
async fn report(
    ledger: &Ledger,
    remote: &Remote,
    links: &Links,
    reports: &Reports,
) -> Result<Option<RemoteError>, LedgerError> {
    let reporting = async {
        match remote.report(reports).await {
            Ok(receipt) => {
                ledger.acknowledge(remote.url().to_owned(), reports.number, receipt).await?;
                Ok(None)
            }
            Err(e) => Ok(Some(e)),
        }
    };
    let first = links.answers().read().await;
    let mut reporting = pin!(reporting);
    let done = tokio::time::timeout(ANSWER, &mut reporting).await;
    drop(first);
    match done {
        Ok(done) => done,
        Err(_) => reporting.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Upstream;
    use bulkmark_counts::{Report, Role};
    use bulkmark_types::{FederationKey, Signature};

    /// Reports of two days ago are too old, unless the clock is doubtful.
    #[tokio::test]
    async fn by_a_doubtful_clock_nothing_is_too_old() {
        let directory = tempfile::tempdir().unwrap();
        let settings = bulkmark_counts::Settings::default();
        let ledger =
            Ledger::open(directory.path(), Role::Cache, &settings, &FederationKey::public()).unwrap();
        let signatures = vec![Signature::from_bytes([7; 16])];
        let then = now() - 2 * bulkmark_counts::SPOOL_AGE.as_secs();
        let report = Report { signatures, times: 3, now: then, ..Report::default() };
        ledger.report(report).await.unwrap();
        let links = Links::new(&["a", "b"], false);
        links.get(0).unwrap().set_clocks_agree(false);
        trim_once(&ledger, &links).await.unwrap();
        assert_eq!(links.reports_dropped(), 0);
        links.get(1).unwrap().set_clocks_agree(true);
        trim_once(&ledger, &links).await.unwrap();
        assert_eq!(links.reports_dropped(), 1);
        ledger.close().await.unwrap();
    }

    /// An update can arrive sooner than the answer to a report in it. Nothing is taken over before that answer.
    #[tokio::test]
    async fn counts_wait_for_the_answer() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let settings = bulkmark_counts::Settings::default();
        let ledger =
            Ledger::open(directory.path(), Role::Cache, &settings, &FederationKey::public()).unwrap();
        let signatures = vec![Signature::from_bytes([7; 16])];
        ledger.report(Report { signatures, times: 3, now: now(), ..Report::default() }).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let links = Arc::new(Links::new(&[&url], false));
        let upstream = Upstream { url, token_file: None, ca_file: None, plain_http_anywhere: false };
        let remote = Remote::new(&upstream, None, links.get(0).unwrap()).unwrap();
        let sending = tokio::spawn({
            let (ledger, links) = (ledger.clone(), Arc::clone(&links));
            async move { send_one(&ledger, &remote, &links, true).await.is_ok() }
        });
        let (server, _) = listener.accept().await.unwrap();
        server.readable().await.unwrap();
        assert!(links.answers().try_write().is_err(), "the answer is on its way");
        drop((server, listener));
        assert!(!sending.await.unwrap(), "there was no answer");
        assert!(links.answers().try_write().is_ok(), "none is on its way");
        ledger.close().await.unwrap();
    }
}
