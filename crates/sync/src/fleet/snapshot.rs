// SPDX-License-Identifier: GPL-3.0-or-later
//! All that a fleet counted, at once: taken from the log by whoever lacks steps, and put there by aggregators.

use super::state::Stopped;
use crate::log::{Log, LogError, Reader as _};
use bulkmark_counts::{Applied, FleetMark, Settings, StepRefusal};
use bulkmark_ledger::Ledger;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often a snapshot is put when there were steps, and after how many bytes of them at the latest: whoever was away reads less
/// of steps than that, and the log need not keep more. Where a snapshot itself is larger, half of it: else nothing but snapshots would
/// be written. The log keeps a gigabyte of steps.
const EVERY: Duration = Duration::from_mins(10);
const MUCH: usize = 64 << 20;
const MOST: usize = 512 << 20;

/// The log's snapshot does when it is no more than so many steps old.
const NEW: u64 = 600;

/// How long whoever made no step waits for another one to put the log's first snapshot. Without any, nobody new could begin, nor a
/// milter that is ahead of a log that was put back; and a log with no reports would get none.
const PATIENCE: Duration = Duration::from_secs(20);

/// Parts on their way to the log.
const PARTS: usize = 4;

/// Where the chain stands in the newest snapshot; none where there is none.
pub(super) async fn mark<L: Log>(
    ledger: &Ledger,
    settings: &Settings,
    log: &L,
) -> Result<Option<FleetMark>, Stopped> {
    let mut parts = match log.snapshot().await {
        Err(LogError::Gone(_)) => return Ok(None),
        parts => parts?,
    };
    let mut assembly = ledger.fleet_assembly(settings);
    while let Some(part) = parts.next().await? {
        assembly.push(&part).map_err(|refusal| unfit(&refusal))?;
        if let Some(mark) = assembly.mark() {
            return Ok(Some(mark));
        }
    }
    Err(Stopped::Unfit("the log's snapshot does not say where it stands".to_owned()))
}

/// Takes the newest snapshot over if it is ahead of what is counted here, or, with `forked`, as it is. False when there is none like
/// that.
pub(super) async fn take<L: Log>(
    ledger: &Ledger,
    settings: &Settings,
    log: &L,
    forked: bool,
) -> Result<bool, Stopped> {
    let mut parts = match log.snapshot().await {
        Err(LogError::Gone(_)) => return Ok(false),
        parts => parts?,
    };
    let mut assembly = ledger.fleet_assembly(settings);
    while let Some(part) = parts.next().await? {
        assembly.push(&part).map_err(|refusal| unfit(&refusal))?;
        let older = assembly.mark().is_some_and(|mark| mark.version <= ledger.fleet().version);
        if older && !forked {
            return Ok(false);
        }
        if assembly.is_complete() {
            // Who keeps no cells leaves the rest of it.
            break;
        }
    }
    let applied = ledger.adopt_fleet(assembly, forked).await?.map_err(|refusal| unfit(&refusal))?;
    Ok(applied == Applied::New)
}

fn unfit(refusal: &StepRefusal) -> Stopped {
    let told = refusal.to_string();
    match refusal {
        StepRefusal::Unlike { .. } => Stopped::Unlike(told),
        _ => Stopped::Unfit(told),
    }
}

/// The newest snapshot that is known of.
#[derive(Clone, Copy)]
struct Newest {
    /// The step that it is of.
    version: u64,
    /// When it was put or found; none if it was old when it was found, and wants a newer one.
    since: Option<Instant>,
    /// Its bytes, if it was put here.
    size: usize,
}

impl Newest {
    /// Whether another one should take its place: there was a step since, and it is old, or so many bytes of steps are many.
    fn is_outdated(&self, mark: FleetMark, bytes: usize) -> bool {
        let old = self.since.is_none_or(|since| since.elapsed() >= EVERY);
        self.version < mark.version && (old || bytes >= much(self.size))
    }
}

/// What an aggregator knows of the snapshots in the log.
pub(super) struct Snapshots<L> {
    ledger: Ledger,
    settings: Settings,
    log: Arc<L>,
    /// The one that is being put.
    task: Option<JoinHandle<Result<Newest, Stopped>>>,
    newest: Option<Newest>,
    /// Since when there are steps, and none is known of.
    unknown: Option<Instant>,
    /// Bytes of steps since.
    bytes: usize,
}

impl<L: Log> Snapshots<L> {
    pub(super) const fn new(ledger: Ledger, settings: Settings, log: Arc<L>) -> Self {
        Self { ledger, settings, log, task: None, newest: None, unknown: None, bytes: 0 }
    }

    /// A step of this many bytes was made here.
    pub(super) const fn made(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Puts a snapshot when it is time, where it is for this aggregator to do so: it made the last step, or there is none.
    pub(super) async fn tend(&mut self, mark: FleetMark, is_last: bool) {
        if let Some(task) = self.task.take_if(|task| task.is_finished()) {
            match task.await {
                Ok(Ok(newest)) => self.newest = Some(newest),
                Ok(Err(e)) => {
                    log::warn!("the snapshot of the fleet's counts could not be put into the log: {e}")
                }
                // The panic itself is in the log already.
                Err(_) => (),
            }
        }
        let due = self.newest.is_none_or(|newest| newest.is_outdated(mark, self.bytes));
        if mark.version == 0 || self.task.is_some() || !due {
            return;
        }
        let is_first = self.newest.is_none();
        let waited = is_first && self.unknown.get_or_insert_with(Instant::now).elapsed() >= PATIENCE;
        if !is_last && !waited {
            return;
        }
        self.bytes = 0;
        let (ledger, settings, log) = (self.ledger.clone(), self.settings.clone(), Arc::clone(&self.log));
        self.task = Some(tokio::spawn(async move {
            if is_first {
                match self::mark(&ledger, &settings, &*log).await {
                    Ok(Some(there)) => {
                        let is_new = there.version.saturating_add(NEW) > mark.version;
                        if is_new || !is_last {
                            let since = is_new.then(Instant::now);
                            return Ok(Newest { version: there.version, since, size: 0 });
                        }
                    }
                    // Whoever is new could not begin with it.
                    Err(e @ (Stopped::Unfit(_) | Stopped::Unlike(_))) => {
                        log::warn!("{e}; a snapshot of what is counted here takes its place");
                    }
                    there => drop(there?),
                }
            }
            put(&ledger, &*log).await
        }));
    }

    /// Puts one now.
    pub(super) async fn put_now(&mut self) -> Result<(), Stopped> {
        self.newest = Some(put(&self.ledger, &*self.log).await?);
        self.bytes = 0;
        Ok(())
    }
}

/// After how many bytes of steps a snapshot is put that takes the place of one of this size.
fn much(size: usize) -> usize {
    (size / 2).clamp(MUCH, MOST)
}

/// Puts a snapshot of what is counted here.
async fn put<L: Log>(ledger: &Ledger, log: &L) -> Result<Newest, Stopped> {
    let began = Instant::now();
    ledger.checkpoint().await?;
    let Some(snapshot) = ledger.fleet_snapshot()? else {
        return Ok(Newest { version: 0, since: Some(Instant::now()), size: 0 });
    };
    let version = snapshot.mark().version;
    let (sender, parts) = mpsc::channel(PARTS);
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = 0;
        for part in snapshot {
            // Where it ends without its end, nothing is kept.
            let part = part?;
            bytes += part.len();
            if sender.blocking_send(Some(part)).is_err() {
                return Ok(bytes);
            }
        }
        let _ = sender.blocking_send(None);
        Ok::<_, bulkmark_ledger::LedgerError>(bytes)
    });
    log.put_snapshot(parts).await?;
    let failed = |_| Stopped::Unfit("the snapshot could not be read".to_owned());
    let bytes = reading.await.map_err(failed)??;
    log::info!(
        "a snapshot of step {version} ({bytes} bytes) was put into the log in {} ms",
        began.elapsed().as_millis()
    );
    Ok(Newest { version, since: Some(Instant::now()), size: bytes })
}
