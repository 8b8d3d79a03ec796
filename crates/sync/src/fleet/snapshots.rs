// SPDX-License-Identifier: GPL-3.0-or-later
//! Maintains the snapshots of a log, for an aggregator: puts one when it is time, and checks those of others. A snapshot that cannot be
//! read, or is not of the chain, is replaced: no new member could start from it.

use super::cursor::own;
use super::snapshot::skim;
use super::state::Stopped;
use crate::log::Log;
use bulkmark_counts::{Chain, FleetMark, Settings};
use bulkmark_ledger::Ledger;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often a snapshot is put while there are steps, and after how many bytes of steps at the latest: a member that was away reads fewer
/// bytes than that, and the log need not keep more. If the snapshot itself is larger, half of its size, so that the log is not filled with
/// snapshots. The log keeps a gigabyte of steps.
const EVERY: Duration = Duration::from_mins(10);
const MUCH: usize = 64 << 20;
const MOST: usize = 512 << 20;

/// The log's snapshot is recent if it is at most so many steps old.
const NEW: u64 = 600;

/// How long an aggregator that made no step waits for another one to put the log's first snapshot. Without any, no new member could start,
/// nor a milter that is ahead of a restored log; and a log without reports would get none.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a snapshot may be ahead of the ledger: an aggregator that is in step soon catches up.
const AHEAD: Duration = Duration::from_secs(20);

/// How often an incomplete snapshot is read before it is replaced.
const ATTEMPTS: u32 = 3;

/// Parts on their way to the log.
const PARTS: usize = 4;

/// A good snapshot.
#[derive(Clone, Copy)]
struct Newest {
    /// Its number in the log; none if that is not known.
    number: Option<u64>,
    /// Its step.
    version: u64,
    /// When it was put or found; none if it was old when found, and must be replaced.
    since: Option<Instant>,
    /// Its bytes.
    size: usize,
}

impl Newest {
    /// Whether it should be replaced: there were steps since, and it is old, or they have many bytes.
    fn is_outdated(&self, mark: FleetMark, bytes: usize) -> bool {
        let old = self.since.is_none_or(|since| since.elapsed() >= EVERY);
        self.version < mark.version && (old || bytes >= much(self.size))
    }
}

/// The running task.
enum Task {
    /// Reads the snapshot of this number.
    Reads(u64, JoinHandle<Result<Newest, Stopped>>),
    /// Puts one.
    Puts(JoinHandle<Result<Newest, Stopped>>),
}

/// The state of the log's snapshots, at an aggregator.
pub(super) struct Snapshots<L> {
    ledger: Ledger,
    settings: Settings,
    log: Arc<L>,
    task: Option<Task>,
    newest: Option<Newest>,
    /// The number of an unusable one, and how often it was read in vain.
    unfit: Option<(u64, u32)>,
    /// Since when there are steps without a known good snapshot.
    unknown: Option<Instant>,
    /// Bytes of steps since.
    bytes: usize,
}

impl<L: Log> Snapshots<L> {
    pub(super) const fn new(ledger: Ledger, settings: Settings, log: Arc<L>) -> Self {
        Self { ledger, settings, log, task: None, newest: None, unfit: None, unknown: None, bytes: 0 }
    }

    /// Records that a step of this many bytes was made here.
    pub(super) const fn made(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Reads the newest snapshot if another aggregator put it, and puts one when it is time and this aggregator's task: it made the last
    /// step, or there is no good snapshot.
    pub(super) async fn tend(&mut self, mark: FleetMark, is_last: bool) {
        self.finish_task().await;
        // Tasks that need the log report why it does not answer.
        let Ok(number) = self.log.newest_snapshot().await else { return };
        if mark.version == 0 || self.task.is_some() {
            return;
        }
        let is_known = self.newest.is_some_and(|newest| newest.number == number);
        let is_unfit = |number| self.unfit.is_some_and(|(of, times)| of == number && times >= ATTEMPTS);
        match number {
            Some(_) if is_known => (),
            Some(number) if is_unfit(number) => self.newest = None,
            Some(number) => {
                let (ledger, settings, log) =
                    (self.ledger.clone(), self.settings.clone(), Arc::clone(&self.log));
                let reading = async move { examine(&ledger, &settings, &*log, number).await };
                self.task = Some(Task::Reads(number, tokio::spawn(reading)));
                return;
            }
            None => self.newest = None,
        }
        if self.newest.is_none_or(|newest| newest.is_outdated(mark, self.bytes)) && self.is_for_us(is_last) {
            self.bytes = 0;
            let (ledger, log) = (self.ledger.clone(), Arc::clone(&self.log));
            self.task = Some(Task::Puts(tokio::spawn(async move { put(&ledger, &*log).await })));
        }
    }

    /// Whether putting the next one is this aggregator's task.
    fn is_for_us(&mut self, is_last: bool) -> bool {
        let waited =
            self.newest.is_none() && self.unknown.get_or_insert_with(Instant::now).elapsed() >= PATIENCE;
        is_last || waited
    }

    /// Handles the result of a finished task.
    async fn finish_task(&mut self) {
        match self.task.take() {
            Some(Task::Reads(number, task)) if task.is_finished() => match task.await {
                Ok(Ok(newest)) => self.set_newest(newest),
                Ok(Err(Stopped::Unfit(why) | Stopped::Unlike(why))) => {
                    log::warn!("{why}; a snapshot of what is counted here takes its place");
                    self.unfit = Some((number, ATTEMPTS));
                }
                // The connection may be lost, or the snapshot replaced meanwhile.
                Ok(Err(why)) => self.fails(number, &why),
                // The panic itself is in the log already.
                Err(_) => (),
            },
            Some(Task::Puts(task)) if task.is_finished() => match task.await {
                Ok(Ok(newest)) => self.set_newest(newest),
                Ok(Err(e)) => {
                    log::warn!("the snapshot of the fleet's counts could not be put into the log: {e}")
                }
                Err(_) => (),
            },
            goes_on => self.task = goes_on,
        }
    }

    const fn set_newest(&mut self, newest: Newest) {
        (self.newest, self.unfit, self.unknown) = (Some(newest), None, None);
    }

    fn fails(&mut self, number: u64, why: &Stopped) {
        let before = self.unfit.filter(|(of, _)| *of == number).map_or(0, |(_, times)| times);
        log::warn!("the newest snapshot in the log cannot be read: {why}");
        self.unfit = Some((number, before + 1));
    }

    /// Puts a snapshot now.
    pub(super) async fn put_now(&mut self) -> Result<(), Stopped> {
        let newest = put(&self.ledger, &*self.log).await?;
        self.set_newest(newest);
        self.bytes = 0;
        Ok(())
    }
}

/// Reads the snapshot of this number, and compares it with the ledger.
async fn examine<L: Log>(
    ledger: &Ledger,
    settings: &Settings,
    log: &L,
    number: u64,
) -> Result<Newest, Stopped> {
    let (mark, size) = skim(ledger, settings, log).await?;
    let began = Instant::now();
    while ledger.fleet().version < mark.version && began.elapsed() < AHEAD {
        tokio::time::sleep(AHEAD / 20).await;
    }
    let here = ledger.fleet();
    if own(mark) != own(here) && !knows(ledger, mark)? {
        let why =
            format!("the log's snapshot is of step {}, which is not, or no longer, known here", mark.version);
        return Err(Stopped::Unfit(why));
    }
    let is_new = mark.version.saturating_add(NEW) > here.version;
    Ok(Newest { number: Some(number), version: mark.version, since: is_new.then(Instant::now), size })
}

/// Whether a step is among those kept here.
fn knows(ledger: &Ledger, mark: FleetMark) -> Result<bool, Stopped> {
    let Some(before) = mark.version.checked_sub(1) else { return Ok(false) };
    let kept = ledger.steps_since(before, 1)?;
    Ok(kept.first().is_some_and(|(_, bytes)| Chain::of(bytes) == mark.chain))
}

/// Returns the bytes of steps after which a snapshot of this size is replaced.
fn much(size: usize) -> usize {
    (size / 2).clamp(MUCH, MOST)
}

/// Puts a snapshot of the ledger.
async fn put<L: Log>(ledger: &Ledger, log: &L) -> Result<Newest, Stopped> {
    let began = Instant::now();
    ledger.checkpoint().await?;
    let Some(snapshot) = ledger.fleet_snapshot()? else {
        return Ok(Newest { number: None, version: 0, since: Some(Instant::now()), size: 0 });
    };
    let version = snapshot.mark().version;
    let (sender, parts) = mpsc::channel(PARTS);
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = 0;
        for part in snapshot {
            // Without its end, nothing is kept.
            let part = part?;
            bytes += part.len();
            if sender.blocking_send(Some(part)).is_err() {
                return Ok(bytes);
            }
        }
        let _ = sender.blocking_send(None);
        Ok::<_, bulkmark_ledger::LedgerError>(bytes)
    });
    let number = log.put_snapshot(parts).await?;
    let failed = |_| Stopped::Unfit("the snapshot could not be read".to_owned());
    let bytes = reading.await.map_err(failed)??;
    log::info!(
        "a snapshot of step {version} ({bytes} bytes) was put into the log in {} ms",
        began.elapsed().as_millis()
    );
    Ok(Newest { number, version, since: Some(Instant::now()), size: bytes })
}
