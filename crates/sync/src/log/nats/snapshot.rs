// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots: each has parts of its own, and a small message says which one is the newest, how many parts it has and their hash. So
//! nothing of a snapshot ever changes. The one before the newest is kept, for those who read it still; what is older, and what
//! writers left who died, the next writer removes.

use super::api::{self, Appended, Stored, append, last_of};
use super::connection::Connection;
use super::names::{FIRST_PARTS, NEWEST, PART, SNAPSHOT, part_of, parts_of};
use crate::log::Reader;
use crate::log::types::{LogError, Part, Place};
use async_nats::HeaderMap;
use bulkmark_ledger::random_bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Parts that are fetched, or put, at a time, and those that wait to be taken.
const AT_A_TIME: usize = 4;
const WAITING: usize = 2;

/// How long a writer may take. What is there for longer, and is neither the newest nor the one before it, was left by one who died.
const WRITING: Duration = Duration::from_secs(1800);
const LEFT: Duration = Duration::from_secs(3600);

/// Parts of a snapshot at most: 60 GB.
const MAX_PARTS: usize = 1 << 16;

/// Before a part is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Which snapshot is the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Newest {
    id: String,
    parts: usize,
    /// Of all bytes, in hexadecimal digits.
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

/// Begins to read the newest.
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

/// One part. A node may lag behind the one that told of it; a part that is nowhere was removed, since there are newer snapshots.
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

/// The number of the message that says which is the newest, whether that can be read or not.
pub(super) async fn number(connection: &Connection) -> Result<Option<u64>, LogError> {
    Ok(last_of(connection, SNAPSHOT.name, NEWEST, Duration::ZERO).await?.map(|stored| stored.place.0))
}

/// The message that says which is the newest.
async fn stored(connection: &Connection) -> Result<Option<Stored>, LogError> {
    // Its leader knows whether there is none, and the least of what must be there.
    let Some(stored) = last_of(connection, SNAPSHOT.name, NEWEST, Duration::ZERO).await? else {
        let state = api::state(connection, SNAPSHOT.name, Some(NEWEST)).await?;
        return match state.subjects.is_empty() {
            true => Ok(None),
            false => Err(LogError::Unavailable("a node of the log lags behind".to_owned())),
        };
    };
    Ok(Some(stored))
}

/// What is said to be the newest.
fn read_newest(stored: &Stored) -> Result<Newest, LogError> {
    let newest: Newest = serde_json::from_slice(&stored.payload)
        .map_err(|e| LogError::Unavailable(format!("{NEWEST} cannot be read: {e}")))?;
    let is_name = |id: &str| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    if newest.parts > MAX_PARTS || !is_name(&newest.id) || !newest.before.as_deref().is_none_or(is_name) {
        return Err(LogError::Unavailable(format!("{NEWEST} cannot be read: {newest:?}")));
    }
    Ok(newest)
}

/// Puts one; see [`Log::put_snapshot`](crate::log::Log::put_snapshot).
pub(super) async fn put(
    connection: &Connection,
    mut parts: mpsc::Receiver<Option<Part>>,
) -> Result<Option<u64>, LogError> {
    let began = Instant::now();
    let stored = stored(connection).await?;
    let place = stored.as_ref().map_or(0, |stored| stored.place.0);
    // What cannot be read is replaced, too, and names nothing that is to be kept.
    let before = stored.and_then(|stored| read_newest(&stored).ok());
    clean(connection, before.as_ref()).await?;
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
    let put = announce(connection, &newest, place).await?;
    // Nobody begins to read the one before the one before.
    if let Some(old) = before.and_then(|newest| newest.before) {
        remove(connection, &old).await?;
    }
    Ok(put)
}

/// Says that a snapshot is the newest, unless another was put since this one was begun: that is as good.
async fn announce(connection: &Connection, newest: &Newest, place: u64) -> Result<Option<u64>, LogError> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", place.to_string());
    let payload = serde_json::to_vec(newest).map_err(|e| LogError::Unavailable(e.to_string()))?;
    match append(connection, NEWEST, &headers, payload.into()).await? {
        Appended::TooLate => remove(connection, &newest.id).await.map(|()| None),
        Appended::At(place) => Ok(Some(place.0)),
    }
}

/// Two of a kind replace one another, so a part may be put again.
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

/// Removes what is neither the newest nor the one before it, unless it may still be written.
async fn clean(connection: &Connection, newest: Option<&Newest>) -> Result<(), LogError> {
    let kept: HashSet<&str> = newest
        .into_iter()
        .flat_map(|newest| [Some(&*newest.id), newest.before.as_deref()])
        .flatten()
        .collect();
    let state = api::state(connection, SNAPSHOT.name, Some(FIRST_PARTS)).await?;
    for subject in &state.subjects {
        let Some(id) = subject.split('.').nth(3).filter(|id| !kept.contains(id)) else { continue };
        let first = last_of(connection, SNAPSHOT.name, subject, Duration::ZERO).await?;
        let age = first.and_then(|first| state.now.duration_since(first.at).ok());
        if age.is_some_and(|age| age > LEFT) {
            remove(connection, id).await?;
        }
    }
    Ok(())
}

async fn remove(connection: &Connection, id: &str) -> Result<(), LogError> {
    let question = json!({ "filter": parts_of(id) });
    let _: Value = connection.api(&format!("$JS.API.STREAM.PURGE.{}", SNAPSHOT.name), &question).await??;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
