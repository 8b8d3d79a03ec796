// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots: each has its own parts, and a small message names the newest one, the number of its parts and their hash. So a snapshot never
//! changes. The one before the newest is kept for its current readers; the next writer removes older ones, and those of writers that died.

use super::api::{self, Appended, Stored, append, last_of};
use super::connection::Connection;
use super::names::{NEWEST, PART, SNAPSHOT, part_of, parts_of, purge_for_members};
use crate::log::Reader;
use crate::log::types::{LogError, Part, Place};
use async_nats::HeaderMap;
use bulkmark_ledger::random_bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Parts that are read or written at a time, and those that wait to be taken.
const AT_A_TIME: usize = 4;
const WAITING: usize = 2;

/// How long a writer may take. Older parts that belong neither to the newest snapshot nor to the one before it were left by a writer that
/// died.
const WRITING: Duration = Duration::from_secs(1800);
const LEFT: Duration = Duration::from_secs(3600);

/// Maximum of parts of a snapshot: 60 GB.
const MAX_PARTS: usize = 1 << 16;

/// Maximum of snapshots that are looked at, to be removed, by one writer.
const MOST_REMOVED: usize = 1000;

/// The pause before a part is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// The pointer to the newest snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Newest {
    id: String,
    parts: usize,
    /// The hash of all bytes, in hexadecimal digits.
    sha256: String,
    /// The one before it.
    before: Option<String>,
}

/// Reads a snapshot.
pub struct Parts {
    parts: mpsc::Receiver<Result<Option<Part>, LogError>>,
    task: JoinHandle<()>,
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reader for Parts {
    type Item = Option<Part>;

    async fn next(&mut self) -> Result<Option<Part>, LogError> {
        let ended = || Err(LogError::Unavailable("this reader of a snapshot has ended".to_owned()));
        self.parts.recv().await.unwrap_or_else(ended)
    }
}

/// Starts to read the newest one.
pub(super) async fn read(connection: &Arc<Connection>) -> Result<Parts, LogError> {
    let newest = read_newest(&stored(connection).await?.ok_or(LogError::Gone(Place(0)))?)?;
    let (sender, parts) = mpsc::channel(WAITING);
    let connection = Arc::clone(connection);
    let task = tokio::spawn(async move {
        if let Err(error) = fetch(&connection, &newest, &sender).await {
            let _ = sender.send(Err(error)).await;
        }
    });
    Ok(Parts { parts, task })
}

async fn fetch(
    connection: &Connection,
    newest: &Newest,
    parts: &mpsc::Sender<Result<Option<Part>, LogError>>,
) -> Result<(), LogError> {
    let mut hash = Sha256::new();
    let ask = |number| async move { part(connection, &part_of(&newest.id, number)).await };
    let mut next = AT_A_TIME.min(newest.parts);
    let mut asked: FuturesOrdered<_> = (0..next).map(ask).collect();
    while let Some(part) = asked.next().await {
        let part = part?;
        hash.update(&part);
        if next < newest.parts {
            asked.push_back(ask(next));
            next += 1;
        }
        if parts.send(Ok(Some(part))).await.is_err() {
            return Ok(());
        }
    }
    if hex(&hash.finalize()) != newest.sha256 {
        return Err(LogError::Unavailable("the snapshot is not what was put".to_owned()));
    }
    let _ = parts.send(Ok(None)).await;
    Ok(())
}

/// Reads a part. A node may lag behind the one that had the pointer; a part that no node has was removed, since there are newer snapshots.
async fn part(connection: &Connection, subject: &str) -> Result<Part, LogError> {
    let deadline = Instant::now() + PART;
    loop {
        if let Some(stored) = last_of(connection, SNAPSHOT.name, subject, PART).await? {
            return Ok(stored.payload.into());
        }
        if !api::state(connection, SNAPSHOT.name, Some(subject)).await?.subjects.is_empty()
            && Instant::now() < deadline
        {
            sleep(PAUSE).await;
            continue;
        }
        return Err(LogError::Gone(Place(0)));
    }
}

/// Returns the number of the pointer to the newest snapshot, whether it can be parsed or not.
pub(super) async fn number(connection: &Connection) -> Result<Option<u64>, LogError> {
    Ok(last_of(connection, SNAPSHOT.name, NEWEST, Duration::ZERO).await?.map(|stored| stored.place.0))
}

/// Returns the pointer to the newest snapshot.
async fn stored(connection: &Connection) -> Result<Option<Stored>, LogError> {
    // The leader knows whether there is none.
    let Some(stored) = last_of(connection, SNAPSHOT.name, NEWEST, Duration::ZERO).await? else {
        let state = api::state(connection, SNAPSHOT.name, Some(NEWEST)).await?;
        return match state.subjects.is_empty() {
            true => Ok(None),
            false => Err(lags_behind()),
        };
    };
    Ok(Some(stored))
}

fn lags_behind() -> LogError {
    LogError::Unavailable(format!("{}: the node that answers lags behind its leader", SNAPSHOT.name))
}

/// Parses the pointer.
fn read_newest(stored: &Stored) -> Result<Newest, LogError> {
    let newest: Newest = serde_json::from_slice(&stored.payload)
        .map_err(|e| LogError::Unavailable(format!("{NEWEST} cannot be read: {e}")))?;
    let is_name = |id: &str| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    if newest.parts > MAX_PARTS || !is_name(&newest.id) || !newest.before.as_deref().is_none_or(is_name) {
        return Err(LogError::Unavailable(format!("{NEWEST} cannot be read: {newest:?}")));
    }
    Ok(newest)
}

/// Stores a snapshot; see [`Log::put_snapshot`](crate::log::Log::put_snapshot).
pub(super) async fn put(
    connection: &Connection,
    mut parts: mpsc::Receiver<Option<Part>>,
) -> Result<Option<u64>, LogError> {
    let began = Instant::now();
    let stored = stored(connection).await?;
    let place = stored.as_ref().map_or(0, |stored| stored.place.0);
    // An unreadable pointer is replaced, too, and keeps nothing.
    let before = stored.and_then(|stored| read_newest(&stored).ok());
    let now = clean(connection, before.as_ref()).await?;
    let id: [u8; 16] = random_bytes().map_err(|e| LogError::Unavailable(e.to_string()))?;
    let id = hex(&id);
    let mut hash = Sha256::new();
    let mut count = 0;
    let mut pending = FuturesOrdered::new();
    loop {
        let Some(part) = parts.recv().await else {
            return Err(LogError::Unavailable("the snapshot ended before its end".to_owned()));
        };
        let Some(part) = part else { break };
        if began.elapsed() > WRITING || count >= MAX_PARTS {
            return Err(LogError::Unavailable("the snapshot takes too long, or is too large".to_owned()));
        }
        hash.update(&part);
        let subject = part_of(&id, count);
        pending.push_back(async move { put_part(connection, &subject, part).await });
        count += 1;
        if pending.len() >= AT_A_TIME {
            pending.next().await.unwrap_or(Ok(()))?;
        }
    }
    while let Some(put) = pending.next().await {
        put?;
    }
    let newest = Newest {
        id,
        parts: count,
        sha256: hex(&hash.finalize()),
        before: before.as_ref().map(|newest| newest.id.clone()),
    };
    let put = announce(connection, newest, place, now).await?;
    // No reader starts with the one before that.
    if let Some(old) = before.and_then(|newest| newest.before) {
        remove(connection, &old).await?;
    }
    Ok(put)
}

/// Makes a snapshot the newest, unless another one was put since this one was begun, which is as good.
///
/// `place` is the pointer's at the node that was asked. If that node lagged behind, the leader has a pointer from before `began`, which is
/// replaced.
async fn announce(
    connection: &Connection,
    mut newest: Newest,
    mut place: u64,
    began: SystemTime,
) -> Result<Option<u64>, LogError> {
    let deadline = Instant::now() + PART;
    loop {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", place.to_string());
        let payload = serde_json::to_vec(&newest).map_err(|e| LogError::Unavailable(e.to_string()))?;
        if let Appended::At(place) = append(connection, NEWEST, &headers, payload.into()).await? {
            return Ok(Some(place.0));
        }
        let Some(there) = stored(connection).await?.filter(|there| there.place.0 > place) else {
            if Instant::now() > deadline {
                return Err(lags_behind());
            }
            sleep(PAUSE).await;
            continue;
        };
        let one = read_newest(&there).ok();
        // Its own: the answer to the first copy of the request was lost.
        if one.as_ref().is_some_and(|one| one.id == newest.id) {
            return Ok(Some(there.place.0));
        }
        if there.at >= began {
            return remove(connection, &newest.id).await.map(|()| None);
        }
        place = there.place.0;
        newest.before = one.map(|one| one.id);
    }
}

/// Writes a part. A second copy replaces the first one, so it may be repeated.
async fn put_part(connection: &Connection, subject: &str, part: Part) -> Result<(), LogError> {
    let deadline = Instant::now() + PART;
    let part = bytes::Bytes::from(part);
    loop {
        match append(connection, subject, &HeaderMap::new(), part.clone()).await {
            Ok(_) => return Ok(()),
            Err(LogError::Unavailable(_)) if Instant::now() + PAUSE < deadline => sleep(PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

/// Removes everything but the newest snapshot and the one before it, unless it may still be written. Returns the log's time before that.
async fn clean(connection: &Connection, newest: Option<&Newest>) -> Result<SystemTime, LogError> {
    let kept = newest.into_iter().flat_map(|newest| [Some(&newest.id), newest.before.as_ref()]).flatten();
    let kept: HashSet<String> = kept.map(|id| parts_of(id)).collect();
    let state = api::state(connection, SNAPSHOT.name, Some(SNAPSHOT.subjects)).await?;
    // Of each snapshot one part, whichever was written; and subjects that no snapshot has.
    let others: BTreeMap<String, &String> =
        state.subjects.iter().map(|subject| (whole_of(subject), subject)).collect();
    let others = others.into_iter().filter(|(whole, _)| whole != NEWEST && !kept.contains(whole));
    for (whole, subject) in others.take(MOST_REMOVED) {
        let one = last_of(connection, SNAPSHOT.name, subject, Duration::ZERO).await?;
        let age = one.and_then(|one| state.now.duration_since(one.at).ok());
        if age.is_some_and(|age| age > LEFT) {
            purge(connection, &whole).await?;
        }
    }
    Ok(state.now)
}

/// Returns the filter for all parts of the snapshot with this part; the subject itself if it is none.
fn whole_of(subject: &str) -> String {
    match subject.split('.').collect::<Vec<_>>()[..] {
        [_, _, "part", id, _] => parts_of(id),
        _ => subject.to_owned(),
    }
}

async fn remove(connection: &Connection, id: &str) -> Result<(), LogError> {
    purge(connection, &parts_of(id)).await
}

async fn purge(connection: &Connection, filter: &str) -> Result<(), LogError> {
    let question = json!({ "filter": filter });
    let _: Value = connection.api(&purge_for_members(SNAPSHOT.name), &question).await??;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
