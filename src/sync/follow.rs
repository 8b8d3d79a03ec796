// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a ledger in step with a server.

use super::backoff::Backoff;
use super::client::{Client, ClientError, Stream};
use super::clock::Steady;
use super::fetch::{Stopped, catch_up, decode, fetch_rows};
use super::state::Links;
use crate::ledger::{self, Ledger, now};
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one stream is followed.
const WAIT: Duration = Duration::from_secs(600);

/// How often it is seen whether a server that comes before the one that is followed answers again.
const LOOK_BACK: Duration = Duration::from_secs(30);

/// A stream that ends sooner is no better than none.
const SHORT: Duration = Duration::from_secs(1);

/// What a server says whose history is another than the one that is known here (a part of `Refusal::Fork`).
const ANOTHER_HISTORY: &str = "continues another history";

/// Follows the first of `clients` that answers, for ever: another when it fails, and the first again when that is back. Who
/// `heals` takes a snapshot of a server that was restored from an old copy: a milter, whose counts are all from there.
pub async fn follow(
    ledger: Ledger,
    settings: ledger::Settings,
    clients: Vec<Arc<Client>>,
    links: Arc<Links>,
    heals: bool,
) {
    let mut backoff = Backoff::default();
    loop {
        let mut any = false;
        for (i, client) in clients.iter().enumerate() {
            let began = Instant::now();
            let following = follow_once(&ledger, &settings, client, heals, || links.set_active(Some(i)));
            let result = tokio::select! {
                result = following => result,
                () = one_answers(&ledger, &clients[..i]) => Ok(()),
            };
            let problem = match result {
                Ok(()) if began.elapsed() >= SHORT => {
                    any = true;
                    break;
                }
                Ok(()) => "its updates ended at once".to_owned(),
                Err(e) => e.to_string(),
            };
            links.set_active(None);
            client.link.report(Some(problem));
        }
        if any {
            backoff = Backoff::default();
        } else {
            backoff.wait().await;
        }
    }
}

/// Is done when one of these servers answers as it should.
async fn one_answers(ledger: &Ledger, clients: &[Arc<Client>]) {
    loop {
        tokio::time::sleep(LOOK_BACK).await;
        for client in clients {
            match client.updates(&ledger.vector(), Duration::ZERO).await {
                Ok(_) => return,
                Err(e) => client.link.report(Some(e.to_string())),
            }
        }
    }
}

async fn follow_once(
    ledger: &Ledger,
    settings: &ledger::Settings,
    client: &Client,
    heals: bool,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    if ledger.vector().iter().all(|(_, mark)| mark.version == 0) {
        // Whoever knows nothing yet is sooner up to date by what all updates together made than by each of them.
        take_snapshot(ledger, settings, client, false).await?;
    }
    let vector = ledger.vector();
    let stream = match client.updates(&vector, WAIT).await {
        Err(ClientError::Refused { status, reason })
            if status == StatusCode::GONE
                || heals && status == StatusCode::CONFLICT && reason.contains(ANOTHER_HISTORY) =>
        {
            take_snapshot(ledger, settings, client, status == StatusCode::CONFLICT).await?;
            let vector = ledger.vector();
            client.updates(&vector, WAIT).await
        }
        other => other,
    }?;
    let answers = || {
        answered();
        client.link.report(None);
    };
    apply_all(ledger, stream, answers).await
}

/// Applies what comes; `answers` is told that something did. That is so at once, since a stream begins with an empty frame.
async fn apply_all(ledger: &Ledger, mut stream: Stream, answers: impl Fn()) -> Result<(), Stopped> {
    let (clock, mut first) = (Steady::begin(), true);
    while let Some(bytes) = stream.next().await? {
        if std::mem::take(&mut first) {
            answers();
        }
        if !clock.is_steady() {
            return Err(
                ClientError::Clock("the clock of this machine was set; asking anew".to_owned()).into()
            );
        }
        if bytes.is_empty() {
            continue;
        }
        let bytes: Arc<[u8]> = bytes.into();
        let update = decode(Arc::clone(&bytes)).await?;
        ledger.apply(update, bytes, now()).await??;
    }
    Ok(())
}

/// Fetches a snapshot and takes it for the counts of others: as it is when the server's history forked from the one that is
/// known here, and else only if it is no step back.
async fn take_snapshot(
    ledger: &Ledger,
    settings: &ledger::Settings,
    client: &Client,
    forked: bool,
) -> Result<(), Stopped> {
    let (mut assembly, rows) = fetch_rows(settings, client).await?;
    if rows == 0 && !forked {
        return Ok(());
    }
    if !assembly.vector().covers(&ledger.vector()) {
        // A snapshot is as old as the server's last checkpoint; what came since may be known here.
        catch_up(&mut assembly, client).await?;
    }
    if forked {
        ledger.adopt_fork(assembly).await??;
    } else {
        ledger.adopt(assembly).await??;
    }
    log::info!("{}: a snapshot of {rows} rows is in force", client.url());
    Ok(())
}
