// SPDX-License-Identifier: GPL-3.0-or-later
//! Sends updates and snapshots, as fast as each reader takes them. Between two pieces a stream only holds its position, and the bytes that
//! wait for its reader within the budgets.

use super::access::Access;
use super::blocks::{Block, Key};
use super::readers::{Alive, Gaps, Position};
use super::snapshots::{Snapshots, deadline};
use super::streams::Place;
use crate::net::{Gone, Member, Sender};
use bulkmark_counts::{Vector, mark_of};
use bulkmark_ledger::{Behind, Ledger, Missing, Snapshot, now};
use bulkmark_sync::clock::ClockGuard;
use bulkmark_sync::wire::{self, SnapshotHead, frame};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After so long without an update, a stream sends the server's position.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Bytes of updates that are read from disk at a time.
const UPDATES_AT_ONCE: usize = 256 << 10;

/// Rows of a snapshot that are read from disk at a time.
const ROWS_AT_ONCE: usize = 8;

/// One reader's stream.
pub(super) struct Stream {
    pub(super) place: Place,
    pub(super) sink: Sender,
    /// Its connection.
    pub(super) connection: Member,
}

/// Sends a stream while its reader has access. Afterwards the reader repeats its request, and receives the reason.
///
/// # Errors
/// When it ended before all was sent.
pub(super) async fn while_allowed(
    access: Access,
    send: impl Future<Output = Result<(), Ended>>,
) -> Result<(), Ended> {
    tokio::select! {
        sent = send => sent,
        () = access.over() => Err(Ended),
    }
}

/// A stream ended. Its reader repeats the request, and receives the reason, if there is one.
pub(super) struct Ended;

impl From<Behind> for Ended {
    fn from(_: Behind) -> Self {
        Self
    }
}

impl Stream {
    /// Handles a reader that is gone. A stalled one still holds its connection and all bytes in it, so this is closed.
    fn gone(&self, gone: Gone) -> Ended {
        if gone == Gone::Stalled {
            self.place.stalled();
            self.connection.close();
        }
        Ended
    }

    pub(super) async fn send(&self, bytes: &[u8]) -> Result<(), Ended> {
        self.sink.send(bytes).await.map_err(|gone| self.gone(gone))
    }

    /// Waits until there may be more to send, with signs of life from `alive` meanwhile.
    ///
    /// # Errors
    /// When the stream's time is over, its reader is gone, or the ledger is closed.
    pub(super) async fn wait(
        &self,
        moved: impl Future<Output = bool>,
        until: Instant,
        alive: &impl Fn() -> Vec<u8>,
    ) -> Result<(), Ended> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Ended);
        }
        tokio::select! {
            open = moved => if open { Ok(()) } else { Err(Ended) },
            () = self.sink.gone() => Err(Ended),
            () = tokio::time::sleep(left.min(KEEP_ALIVE)) => self.send(&alive()).await,
        }
    }

    /// Sends a block from byte `at` to byte `end`; `read` reads it again if it is no longer cached.
    pub(super) async fn send_block(
        &self,
        key: &Key,
        (mut at, end): (usize, usize),
        read: impl Fn() -> Result<Option<Block>, Behind> + Clone + Send + 'static,
    ) -> Result<(), Ended> {
        while at < end {
            let room = self.sink.room(end - at).await.map_err(|gone| self.gone(gone))?;
            let block = self.place.block(key.clone(), read.clone()).await?.ok_or(Ended)?;
            at += room.send(block.bytes.get(at..end).ok_or(Ended)?);
        }
        Ok(())
    }
}

/// Reads the updates that a holder of `theirs` lacks, or the first of them; none if it lacks none.
pub(super) async fn next_updates(
    place: &Place,
    ledger: &Ledger,
    theirs: &Arc<Position>,
    gaps: Gaps,
) -> Result<Option<Arc<Block>>, Behind> {
    let (of, ledger, from) = (Key::Updates(gaps, theirs.name), ledger.clone(), Arc::clone(theirs));
    place.block(of, move || updates(&ledger, &ledger.vector(), &from.vector, gaps)).await
}

/// Reads the updates from `theirs` to `ours`, as a block.
fn updates(ledger: &Ledger, ours: &Vector, theirs: &Vector, gaps: Gaps) -> Result<Option<Block>, Behind> {
    let reader = ledger.reader()?;
    let Missing { past, updates } = match gaps {
        Gaps::Refuse => {
            Missing { updates: reader.updates(ours, theirs, UPDATES_AT_ONCE)?, ..Missing::default() }
        }
        Gaps::Over | Gaps::Leave => {
            reader.missing_at_server(ours, theirs, UPDATES_AT_ONCE, now(), gaps == Gaps::Leave)?
        }
    };
    if past.is_empty() && updates.is_empty() {
        return Ok(None);
    }
    let (mut block, mut after) = (Block::default(), theirs.clone());
    if !past.is_empty() {
        past.iter().for_each(|past| after.set(past.origin, past.mark));
        block.begins.push(0);
        block.bytes.extend_from_slice(&frame(&wire::encode_past(&past)));
    }
    for update in &updates {
        let Some((origin, mark)) = mark_of(update) else { continue };
        after.set(origin, mark);
        block.begins.push(block.bytes.len());
        block.bytes.extend_from_slice(&frame(update));
    }
    block.after = Position::of(after);
    Ok(Some(block).filter(|block| !block.bytes.is_empty()))
}

/// The request for a stream of updates.
pub(super) struct Wanted {
    /// The position of its reader.
    pub(super) theirs: Arc<Position>,
    pub(super) gaps: Gaps,
    pub(super) alive: Alive,
    /// The end of the stream.
    pub(super) until: Instant,
}

/// Sends updates, starting with `first`, until the time is over, the reader is gone, or an error occurs.
pub(super) async fn send_updates(
    stream: Stream,
    access: Access,
    ledger: Ledger,
    wanted: Wanted,
    first: Option<Arc<Block>>,
) {
    let _ended = while_allowed(access, updates_until(&stream, &ledger, wanted, first)).await;
}

async fn updates_until(
    stream: &Stream,
    ledger: &Ledger,
    Wanted { mut theirs, gaps, alive, until }: Wanted,
    first: Option<Arc<Block>>,
) -> Result<(), Ended> {
    let mut moved = ledger.vector_changes();
    let clock = ClockGuard::begin();
    let mut next = first;
    let sent = Mutex::new(Arc::<Vector>::default());
    let alive = || {
        let ours = ledger.vector();
        let before = std::mem::replace(&mut *sent.lock(), Arc::clone(&ours));
        frame(&match alive {
            Alive::Whole => wire::encode_alive(&ours),
            Alive::Moved if Arc::ptr_eq(&before, &ours) => wire::encode_alive(&Vector::new()),
            Alive::Moved => wire::encode_alive(&ours.moved_since(&before)),
        })
    };
    stream.send(&[&wire::UPDATES[..], &alive()].concat()).await?;
    while clock.is_steady() {
        if let Some(block) = next.take() {
            let (after, end) = (Arc::clone(&block.after), block.bytes.len());
            drop(block);
            let (key, of) = (Key::Updates(gaps, theirs.name), ledger.clone());
            let (from, to) = (Arc::clone(&theirs), Arc::clone(&after));
            // Read the same updates again, though there may be more by now.
            let read = move || updates(&of, &to.vector, &from.vector, gaps);
            stream.send_block(&key, (0, end), read).await?;
            theirs = after;
        }
        moved.mark_unchanged();
        next = next_updates(&stream.place, ledger, &theirs, gaps).await?;
        if next.is_some() {
            continue;
        }
        stream.wait(moved.changed(), until, &alive).await?;
    }
    Ok(())
}

/// Sends the rows of a snapshot from number `from` on; when its end is sent, the reader no longer needs it to be kept.
pub(super) async fn send_snapshot(
    stream: Stream,
    access: Access,
    (kept, snapshot): (Arc<Snapshots>, Arc<Snapshot>),
    head: SnapshotHead,
    from: u64,
) {
    if while_allowed(access, rows_from(&stream, &snapshot, &head, from)).await.is_ok() {
        kept.finished(head.id, stream.place.principal());
    }
}

async fn rows_from(
    stream: &Stream,
    snapshot: &Arc<Snapshot>,
    head: &SnapshotHead,
    from: u64,
) -> Result<(), Ended> {
    let (at_once, began, mut sent) = (ROWS_AT_ONCE as u64, Instant::now(), 0);
    stream.send(&[&wire::SNAPSHOT[..], &frame(&head.encode())].concat()).await?;
    // All readers use the same blocks; one that continues inside a block skips its beginning.
    let mut skip = usize::try_from(from % at_once).unwrap_or(0);
    for number in from / at_once..head.rows.div_ceil(at_once) {
        let (key, of) = (Key::Rows(head.id, number), Arc::clone(snapshot));
        let read = move || rows(&of, number * at_once);
        let block = stream.place.block(key.clone(), read.clone()).await?.ok_or(Ended)?;
        let (begin, end) = (block.begins.get(skip).copied().ok_or(Ended)?, block.bytes.len());
        drop(block);
        sent += (end - begin) as u64;
        let until = deadline(began, sent).into();
        tokio::time::timeout_at(until, stream.send_block(&key, (begin, end), read))
            .await
            .map_err(|_| Ended)??;
        skip = 0;
    }
    Ok(())
}

/// Reads the rows from number `from` on, as a block.
fn rows(snapshot: &Snapshot, from: u64) -> Result<Option<Block>, Behind> {
    let mut block = Block::default();
    for row in snapshot.rows(from, ROWS_AT_ONCE)? {
        block.begins.push(block.bytes.len());
        block.bytes.extend_from_slice(&frame(&row.encode()));
    }
    Ok(Some(block).filter(|block| !block.bytes.is_empty()))
}
