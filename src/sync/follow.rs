// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a ledger in step with a server.

use super::backoff::Backoff;
use super::client::{Client, ClientError, Stream};
use super::fetch::{Stopped, decode, fetch_rows};
use super::state::Links;
use crate::ledger::{self, Ledger, now};
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How long one stream is followed.
const WAIT: Duration = Duration::from_secs(600);

/// How long a server that is not the first choice is followed before the first is tried again.
const WAIT_SECOND: Duration = Duration::from_secs(30);

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
            let wait = if i == 0 { WAIT } else { WAIT_SECOND };
            let result = follow_once(&ledger, &settings, client, heals, wait, || links.set_active(i)).await;
            match result {
                Ok(()) => {
                    any = true;
                    break;
                }
                Err(e) => client.link.report(Some(e.to_string())),
            }
        }
        if any {
            backoff = Backoff::default();
        } else {
            backoff.wait().await;
        }
    }
}

async fn follow_once(
    ledger: &Ledger,
    settings: &ledger::Settings,
    client: &Client,
    heals: bool,
    wait: Duration,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    if ledger.vector().iter().all(|(_, mark)| mark.version == 0) {
        // Whoever knows nothing yet is sooner up to date by what all updates together made than by each of them.
        take_snapshot(ledger, settings, client).await?;
    }
    let vector = ledger.vector();
    let stream = match client.updates(&vector, wait).await {
        Err(ClientError::Refused { status, reason })
            if status == StatusCode::GONE
                || heals && status == StatusCode::CONFLICT && reason.contains(ANOTHER_HISTORY) =>
        {
            take_snapshot(ledger, settings, client).await?;
            let vector = ledger.vector();
            client.updates(&vector, wait).await
        }
        other => other,
    }?;
    answered();
    client.link.heard();
    client.link.report(None);
    apply_all(ledger, stream).await
}

async fn apply_all(ledger: &Ledger, mut stream: Stream) -> Result<(), Stopped> {
    while let Some(bytes) = stream.next().await? {
        if bytes.is_empty() {
            continue;
        }
        let bytes: Arc<[u8]> = bytes.into();
        let update = decode(Arc::clone(&bytes)).await?;
        ledger.apply(update, bytes, now()).await??;
    }
    Ok(())
}

/// Fetches a snapshot and takes it for the counts of others.
async fn take_snapshot(ledger: &Ledger, settings: &ledger::Settings, client: &Client) -> Result<(), Stopped> {
    let (assembly, rows) = fetch_rows(settings, client).await?;
    if rows == 0 {
        return Ok(());
    }
    ledger.adopt(assembly).await??;
    log::info!("{}: a snapshot of {rows} rows is in force", client.url());
    Ok(())
}
