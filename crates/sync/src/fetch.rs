// SPDX-License-Identifier: GPL-3.0-or-later
//! Fetches all counts of a server.

use super::backoff::Backoff;
use super::parameters::Parameters;
use super::remote::{Remote, RemoteError, Stream};
use super::state::Flow;
use super::wire::{SnapshotHead, decode_alive};
use bulkmark_counts::{Assembly, Refusal, Row, Update};
use bulkmark_ledger::{Image, LedgerError, now};
use bulkmark_types::remote_text;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Updates above this size are decoded on a separate thread.
const LARGE: usize = 64 << 10;

/// How often a snapshot is requested again without receiving a row.
const TRIES: u32 = 5;

/// How long a snapshot may take, however many rows it has: the updates that follow an older one are soon no longer kept.
const LONGEST: Duration = Duration::from_hours(24);

/// Why following or fetching from a server ended.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The server does not answer, or refuses.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The local ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The received data does not follow the local state.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The received data is not what was asked for.
    #[error("it sent {0}")]
    Invalid(String),
}

/// Fetches all counts of a server, whatever its parameters.
///
/// # Errors
/// See [`Stopped`].
pub async fn fetch(remote: &Remote) -> Result<Image, Stopped> {
    let status = remote.status().await?;
    let text = status.get("parameters").and_then(serde_json::Value::as_str).unwrap_or_default();
    let (settings, key_id) = Parameters::read(text).map_err(|what| Stopped::Invalid(remote_text(&what)))?;
    let (mut assembly, _) = fetch_rows(&settings, remote).await?;
    catch_up(&mut assembly, remote).await?;
    Ok(Image::of_server(assembly, key_id))
}

/// Applies the updates since a snapshot to it.
pub(super) async fn catch_up(assembly: &mut Assembly, remote: &Remote) -> Result<(), Stopped> {
    let mut stream = remote.updates(assembly.vector(), Duration::ZERO).await?;
    while let Some(bytes) = stream.next().await? {
        if bytes.is_empty() || decode_alive(&bytes).is_some() {
            continue;
        }
        let update = decode(bytes.clone().into()).await?;
        let known = assembly.vector().get(update.origin()).version;
        assembly.apply(&update, &bytes, now())?;
        if update.version() > known {
            stream.progressed();
        }
    }
    Ok(())
}

pub(super) async fn decode(bytes: Arc<[u8]>) -> Result<Update, Stopped> {
    let large = bytes.len() > LARGE;
    let work = move || Update::decode(&bytes).map_err(|e| Stopped::Invalid(e.to_string()));
    if large {
        let failed = |_| Stopped::Invalid("something that cannot be read".to_owned());
        return tokio::task::spawn_blocking(work).await.map_err(failed)?;
    }
    work()
}

/// Fetches the newest snapshot, and returns it with its number of rows. Continues after an interruption.
pub(super) async fn fetch_rows(
    settings: &bulkmark_counts::Settings,
    remote: &Remote,
) -> Result<(Assembly, u64), Stopped> {
    let mut stream = remote.snapshot(None, 0).await?;
    let head = head_of(&mut stream).await?;
    let mut assembly = Assembly::new(settings, head.vector.clone(), now());
    if head.rows > 0 {
        log::info!("{}: a snapshot of {} rows is coming", remote.url(), head.rows);
    }
    let (mut rows, began) = (0, Instant::now());
    let (mut backoff, mut tries) = (Backoff::default(), TRIES);
    while rows < head.rows {
        if began.elapsed() > LONGEST {
            return Err(Stopped::Invalid(format!(
                "a snapshot that was not over after {} hours",
                LONGEST.as_secs() / 3600
            )));
        }
        match stream.next().await {
            Ok(Some(bytes)) if bytes.is_empty() => (),
            Ok(Some(bytes)) => {
                assembly = add_row(assembly, bytes).await?;
                stream.progressed();
                rows += 1;
                (backoff, tries) = (Backoff::default(), TRIES);
            }
            Ok(None) if tries == 0 => {
                return Err(Stopped::Invalid(format!("a snapshot with {rows} of its {} rows", head.rows)));
            }
            Err(e) if tries == 0 || matches!(e, RemoteError::Stuck) => return Err(e.into()),
            cut => {
                if let Err(e) = cut {
                    remote.link.set_failing(Flow::Updates, e.to_string());
                }
                tries -= 1;
                backoff.wait().await;
                stream = remote.snapshot(Some(head.id), rows).await?;
                head_of(&mut stream).await?;
            }
        }
    }
    Ok((assembly, rows))
}

pub(super) async fn head_of(stream: &mut Stream) -> Result<SnapshotHead, Stopped> {
    let cut = || Stopped::Invalid("a snapshot without its first frame".to_owned());
    let bytes = stream.next().await?.ok_or_else(cut)?;
    SnapshotHead::decode(&bytes).ok_or_else(cut)
}

/// Adds a row on a separate thread: it may have 2^23 cells. A task that stops waits for one row at most.
async fn add_row(mut assembly: Assembly, bytes: Vec<u8>) -> Result<Assembly, Stopped> {
    let unfit = || Stopped::Invalid("a snapshot row that does not fit".to_owned());
    let work = move || {
        let row = Row::decode(&bytes).ok_or_else(unfit)?;
        match assembly.add(&row) {
            Ok(true) => Ok(assembly),
            Ok(false) => Err(unfit()),
            Err(e) => Err(Stopped::Invalid(format!("a snapshot row that is impossible: {e}"))),
        }
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| unfit())?
}
