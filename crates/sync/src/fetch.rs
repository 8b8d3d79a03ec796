// SPDX-License-Identifier: GPL-3.0-or-later
//! Fetches what a server holds.

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

/// Updates above this size are decoded on a thread of their own.
const LARGE: usize = 64 << 10;

/// How often a snapshot is asked for again before a row of it came.
const TRIES: u32 = 5;

/// How long a snapshot may take, however many rows it has: what follows an older one is soon kept by nobody.
const LONGEST: Duration = Duration::from_hours(24);

/// Why following or fetching from one server came to an end.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// It does not answer, or refuses.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The own ledger does not take it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What came does not follow what is here.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What came is not what was asked for.
    #[error("it sent {0}")]
    Nonsense(String),
}

/// All that a server counts, of whatever parameters.
///
/// # Errors
/// See [`Stopped`].
pub async fn fetch(remote: &Remote) -> Result<Image, Stopped> {
    let status = remote.status().await?;
    let text = status.get("parameters").and_then(serde_json::Value::as_str).unwrap_or_default();
    let (settings, key_id) = Parameters::read(text).map_err(|what| Stopped::Nonsense(remote_text(&what)))?;
    let (mut assembly, _) = fetch_rows(&settings, remote).await?;
    catch_up(&mut assembly, remote).await?;
    Ok(Image::of_server(assembly, key_id))
}

/// Applies to a snapshot what the server counted since.
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
    let work = move || Update::decode(&bytes).map_err(|e| Stopped::Nonsense(e.to_string()));
    if large {
        let failed = |_| Stopped::Nonsense("something that cannot be read".to_owned());
        return tokio::task::spawn_blocking(work).await.map_err(failed)?;
    }
    work()
}

/// The newest snapshot, and how many rows it has; goes on where it was cut off.
pub(super) async fn fetch_rows(
    settings: &bulkmark_counts::Settings,
    remote: &Remote,
) -> Result<(Assembly, u64), Stopped> {
    let mut stream = remote.snapshot(None, 0).await?;
    let head = head_of(&mut stream).await?;
    let mut assembly = Assembly::new(settings, head.vector.clone());
    if head.rows > 0 {
        log::info!("{}: a snapshot of {} rows is coming", remote.url(), head.rows);
    }
    let (mut rows, began) = (0, Instant::now());
    let (mut backoff, mut tries) = (Backoff::default(), TRIES);
    while rows < head.rows {
        if began.elapsed() > LONGEST {
            return Err(Stopped::Nonsense(format!(
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
                return Err(Stopped::Nonsense(format!("a snapshot with {rows} of its {} rows", head.rows)));
            }
            Err(e) if tries == 0 || matches!(e, RemoteError::Stuck) => return Err(e.into()),
            cut => {
                if let Err(e) = cut {
                    remote.link.fails(Flow::Updates, e.to_string());
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
    let cut = || Stopped::Nonsense("a snapshot without its first frame".to_owned());
    let bytes = stream.next().await?.ok_or_else(cut)?;
    SnapshotHead::decode(&bytes).ok_or_else(cut)
}

/// Adds a row on a thread of its own: it may hold 2^23 cells. Whoever stops waits for one row at most.
async fn add_row(mut assembly: Assembly, bytes: Vec<u8>) -> Result<Assembly, Stopped> {
    let nonsense = || Stopped::Nonsense("a snapshot row that does not fit".to_owned());
    let work = move || {
        let row = Row::decode(&bytes).ok_or_else(nonsense)?;
        match assembly.add(&row) {
            Ok(true) => Ok(assembly),
            Ok(false) => Err(nonsense()),
            Err(e) => Err(Stopped::Nonsense(format!("a snapshot row that is impossible: {e}"))),
        }
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| nonsense())?
}
