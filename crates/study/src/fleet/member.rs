// SPDX-License-Identifier: GPL-3.0-or-later
//! One ledger that is both aggregator and holder: the size of a step, and the cost of making and applying it.

use bulkmark_counts::{Durability, Federation, LoggedBatch, Role, Settings, SpoolBatch, Terms};
use bulkmark_ledger::{FILE_NAME, Ledger, LedgerError, OpenError, now};
use bulkmark_types::{FederationKey, Signature};
use std::num::NonZeroU32;
use std::time::Duration;
use tempfile::TempDir;

/// The most bytes of a step.
pub(super) use bulkmark_sync::log::MAX_BYTES;

/// The most reports of a batch.
pub use bulkmark_counts::MAX_BATCH;

/// A ledger of the study failed.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The directory cannot be made.
    #[error("cannot make a directory: {0}")]
    Io(#[from] std::io::Error),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The ledger rejects a batch or step that was made for it.
    #[error("the ledger refuses what it is given: {0}")]
    Refused(String),
}

/// Reports of one spool.
pub(super) struct Spooled<'a> {
    /// The milter's number.
    pub(super) milter: usize,
    /// Its reports.
    pub(super) reports: &'a [(Signature, u32)],
}

/// The result of one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Stepped {
    /// Bytes of the step.
    pub(super) step: usize,
    /// Bytes of its batches.
    pub(super) batches: usize,
    /// CPU seconds to make it, and to apply it.
    pub(super) made: f64,
    /// See `made`.
    pub(super) applied: f64,
}

/// The ledger.
pub(super) struct Member {
    directory: TempDir,
    ledger: Ledger,
    /// The number of the next batch of each milter.
    next: Vec<u64>,
    place: u64,
    key_id: u64,
    /// The time of all batches, so that they are in one window.
    at: u64,
}

/// The settings of a ledger for so many signatures.
pub(super) fn settings(capacity: u32, federation: Federation) -> Settings {
    let capacity = NonZeroU32::new(capacity).unwrap_or(NonZeroU32::MIN);
    Settings { capacity, durability: Durability::Relaxed, federation, ..Settings::default() }
}

/// CPU seconds of this program so far, without other programs on the machine. 0 where there is no /proc.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The name of a milter, in the form of the step's marks.
fn name(milter: usize) -> String {
    format!("mx{milter}")
}

impl Member {
    /// Makes an empty ledger.
    ///
    /// # Errors
    /// When the ledger cannot be made.
    pub(super) fn new(capacity: u32, milters: usize) -> Result<Self, SampleError> {
        let (directory, key) = (tempfile::tempdir()?, FederationKey::public());
        let settings = settings(capacity, Federation::default());
        let ledger = Ledger::open(directory.path(), Role::Cache, &settings, &key)?;
        Ok(Self { directory, ledger, next: vec![1; milters], place: 0, key_id: key.id(), at: now() })
    }

    /// Makes one step of these batches, or several if they do not fit, and applies them. Returns their sum.
    ///
    /// # Errors
    /// When the ledger fails.
    pub(super) async fn step(&mut self, spooled: &[Spooled<'_>]) -> Result<Stepped, SampleError> {
        let mut stepped = Stepped::default();
        let mut batched = Vec::new();
        for Spooled { milter, reports } in spooled {
            let number = self.next[*milter];
            self.next[*milter] += 1;
            let spool = *milter as u64 + 1;
            let carried = SpoolBatch {
                key_id: self.key_id,
                spool,
                number,
                lowest: number,
                bulk_from: 0,
                reports: reports.to_vec(),
            };
            let bytes = carried.encode();
            stepped.batches += bytes.len();
            self.place += 1;
            let (client, limits, withdrawn) = (name(*milter), None, 0);
            batched.push(LoggedBatch { place: self.place, at: self.at, client, limits, withdrawn, bytes });
        }
        while !batched.is_empty() {
            let terms = Terms { epoch: 1, made: 1, gone: 0, withdrawn: Vec::new(), most_bytes: MAX_BYTES };
            let began = processor();
            let drafted = self.ledger.draft_step(batched.clone(), terms).await?;
            let drafted =
                drafted.ok_or_else(|| SampleError::Refused("batches that make no step".to_owned()))?;
            stepped.made += processor() - began;
            stepped.step += drafted.bytes.len();
            batched.drain(..drafted.batches);
            let began = processor();
            let applied = self.ledger.apply_step(drafted.bytes.into(), drafted.version, self.at).await?;
            applied.map_err(|refusal| SampleError::Refused(refusal.to_string()))?;
            stepped.applied += processor() - began;
        }
        Ok(stepped)
    }

    /// Counts all of these, in as many steps as necessary. Returns their sum.
    ///
    /// # Errors
    /// When the ledger fails.
    pub(super) async fn fill(&mut self, reports: &[(Signature, u32)]) -> Result<Stepped, SampleError> {
        let mut all = Stepped::default();
        for part in reports.chunks(10 * MAX_BATCH) {
            let spooled: Vec<_> =
                part.chunks(MAX_BATCH).map(|reports| Spooled { milter: 0, reports }).collect();
            let stepped = self.step(&spooled).await?;
            all.step += stepped.step;
            all.batches += stepped.batches;
            all.made += stepped.made;
            all.applied += stepped.applied;
        }
        Ok(all)
    }

    /// Bytes of its cells in memory, of its file after a checkpoint, and of a snapshot.
    ///
    /// # Errors
    /// When the ledger fails.
    pub(super) async fn sizes(&self) -> Result<[u64; 3], SampleError> {
        let memory: usize = self.ledger.status(None).await?.slices.iter().map(|slice| slice.memory).sum();
        // Data that nobody waits for reaches the disk a little later.
        while self.ledger.fleet_snapshot()?.is_none() {
            self.ledger.checkpoint().await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let file = std::fs::metadata(self.directory.path().join(FILE_NAME))?.len();
        let mut snapshot = 0;
        for part in self.ledger.fleet_snapshot()?.into_iter().flatten() {
            snapshot += part?.len() as u64;
        }
        Ok([memory as u64, file, snapshot])
    }
}
