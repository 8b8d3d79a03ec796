// SPDX-License-Identifier: GPL-3.0-or-later
//! All that a fleet counted, at once: taken from the log by whoever lacks steps, and put there by aggregators.

use super::state::Stopped;
use crate::ledger::{Applied, FleetAssembly, FleetMark, Ledger, Settings};
use crate::sync::log::{Log, LogError, Reader as _};
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

/// Parts on their way to the log.
const PARTS: usize = 4;

/// Where the chain stands in the newest snapshot; none where there is none.
pub(super) async fn mark<L: Log>(settings: &Settings, log: &L) -> Result<Option<FleetMark>, Stopped> {
    let mut parts = match log.snapshot().await {
        Err(LogError::Gone(_)) => return Ok(None),
        parts => parts?,
    };
    let mut assembly = FleetAssembly::new(settings);
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
    let mut assembly = FleetAssembly::new(settings);
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

fn unfit(refusal: &crate::ledger::StepRefusal) -> Stopped {
    Stopped::Unfit(refusal.to_string())
}

/// What an aggregator knows of the snapshots that it put.
pub(super) struct Snapshots<L> {
    ledger: Ledger,
    settings: Settings,
    log: Arc<L>,
    /// The one that is being put.
    task: Option<JoinHandle<Result<(u64, usize), Stopped>>>,
    /// The step of the last one that is known of, and when that was put or found.
    last: Option<(u64, Instant)>,
    /// Its bytes, if it was put here.
    size: usize,
    /// Bytes of steps since.
    bytes: usize,
}

impl<L: Log> Snapshots<L> {
    pub(super) const fn new(ledger: Ledger, settings: Settings, log: Arc<L>) -> Self {
        Self { ledger, settings, log, task: None, last: None, size: 0, bytes: 0 }
    }

    /// A step of this many bytes was made here.
    pub(super) const fn made(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Puts a snapshot when it is time, where it is for this aggregator to do so: it made the last step.
    pub(super) async fn tend(&mut self, mark: FleetMark, is_last: bool) {
        if let Some(task) = self.task.take_if(|task| task.is_finished()) {
            match task.await {
                Ok(Ok((version, size))) => (self.last, self.size) = (Some((version, Instant::now())), size),
                Ok(Err(e)) => {
                    log::warn!("the snapshot of the fleet's counts could not be put into the log: {e}")
                }
                // The panic itself is in the log already.
                Err(_) => (),
            }
        }
        let due = match self.last {
            None => true,
            Some((version, at)) => {
                version < mark.version && (at.elapsed() >= EVERY || self.bytes >= much(self.size))
            }
        };
        if !is_last || mark.version == 0 || self.task.is_some() || !due {
            return;
        }
        self.bytes = 0;
        let (ledger, settings, log) = (self.ledger.clone(), self.settings.clone(), Arc::clone(&self.log));
        let is_first = self.last.is_none();
        self.task = Some(tokio::spawn(async move {
            if is_first {
                match self::mark(&settings, &*log).await {
                    Ok(Some(there)) if there.version.saturating_add(NEW) > mark.version => {
                        return Ok((there.version, 0));
                    }
                    // Whoever is new could not begin with it.
                    Err(e @ Stopped::Unfit(_)) => {
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
        let (version, size) = put(&self.ledger, &*self.log).await?;
        (self.last, self.size, self.bytes) = (Some((version, Instant::now())), size, 0);
        Ok(())
    }
}

/// After how many bytes of steps a snapshot is put that takes the place of one of this size.
fn much(size: usize) -> usize {
    (size / 2).clamp(MUCH, MOST)
}

/// Puts a snapshot of what is counted here. The step that it is of, and its bytes.
async fn put<L: Log>(ledger: &Ledger, log: &L) -> Result<(u64, usize), Stopped> {
    let began = Instant::now();
    ledger.checkpoint().await?;
    let Some(snapshot) = ledger.fleet_snapshot()? else { return Ok((0, 0)) };
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
        Ok::<_, crate::ledger::LedgerError>(bytes)
    });
    log.put_snapshot(parts).await?;
    let failed = |_| Stopped::Unfit("the snapshot could not be read".to_owned());
    let bytes = reading.await.map_err(failed)??;
    log::info!(
        "a snapshot of step {version} ({bytes} bytes) was put into the log in {} ms",
        began.elapsed().as_millis()
    );
    Ok((version, bytes))
}
