// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a ledger in step with a server.

use super::backoff::Backoff;
use super::client::{Client, ClientError, Stream};
use super::state::Links;
use super::wire::SnapshotHead;
use crate::ledger::{self, Assembly, Ledger, LedgerError, Refusal, Row, Update, now};
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How long one stream is followed.
const WAIT: Duration = Duration::from_secs(600);

/// How long a server that is not the first choice is followed before the first is tried again.
const WAIT_SECOND: Duration = Duration::from_secs(30);

/// Updates above this size are decoded on a thread of their own.
const LARGE: usize = 64 << 10;

/// Why following one server came to an end.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("it sent {0}")]
    Nonsense(String),
}

/// Follows the first of `clients` that answers, for ever: another when it fails, and the first again when that is back.
pub async fn follow(
    ledger: Ledger,
    settings: ledger::Settings,
    clients: Vec<Arc<Client>>,
    links: Arc<Links>,
) {
    let mut backoff = Backoff::default();
    loop {
        let mut any = false;
        for (i, client) in clients.iter().enumerate() {
            let wait = if i == 0 { WAIT } else { WAIT_SECOND };
            let result = follow_once(&ledger, &settings, client, wait, || links.set_active(i)).await;
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
    wait: Duration,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    let vector = ledger.vector();
    let stream = match client.updates(&vector, wait).await {
        Err(ClientError::Refused { status: StatusCode::GONE, .. }) => {
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

async fn decode(bytes: Arc<[u8]>) -> Result<Update, Stopped> {
    let large = bytes.len() > LARGE;
    let work = move || Update::decode(&bytes).map_err(|e| Stopped::Nonsense(e.to_string()));
    if large {
        let failed = |_| Stopped::Nonsense("what could not be read".to_owned());
        return tokio::task::spawn_blocking(work).await.map_err(failed)?;
    }
    work()
}

/// Fetches a snapshot, goes on where it was cut off, and takes it for the counts of others.
async fn take_snapshot(ledger: &Ledger, settings: &ledger::Settings, client: &Client) -> Result<(), Stopped> {
    log::info!("{}: fetching a snapshot", client.url());
    let mut stream = client.snapshot(None, 0).await?;
    let head = head_of(&mut stream).await?;
    let mut assembly = Assembly::new(settings, head.vector.clone());
    let mut rows = 0;
    let mut backoff = Backoff::default();
    while rows < head.rows {
        match stream.next().await {
            Ok(Some(bytes)) if bytes.is_empty() => (),
            Ok(Some(bytes)) => {
                add_row(&mut assembly, &bytes)?;
                rows += 1;
                backoff = Backoff::default();
            }
            cut => {
                if let Err(e) = cut {
                    client.link.report(Some(e.to_string()));
                }
                backoff.wait().await;
                stream = client.snapshot(Some(head.id), rows).await?;
                head_of(&mut stream).await?;
            }
        }
    }
    ledger.adopt(assembly).await??;
    log::info!("{}: a snapshot of {rows} rows is in force", client.url());
    Ok(())
}

async fn head_of(stream: &mut Stream) -> Result<SnapshotHead, Stopped> {
    let cut = || Stopped::Nonsense("a snapshot without a beginning".to_owned());
    let bytes = stream.next().await?.ok_or_else(cut)?;
    SnapshotHead::decode(&bytes).ok_or_else(cut)
}

fn add_row(assembly: &mut Assembly, bytes: &[u8]) -> Result<(), Stopped> {
    let nonsense = || Stopped::Nonsense("a row of a snapshot that does not fit".to_owned());
    let row = Row::decode(bytes).ok_or_else(nonsense)?;
    match assembly.add(&row) {
        Ok(true) => Ok(()),
        Ok(false) => Err(nonsense()),
        Err(e) => Err(Stopped::Nonsense(e.to_string())),
    }
}
