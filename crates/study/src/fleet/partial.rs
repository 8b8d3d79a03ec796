// SPDX-License-Identifier: GPL-3.0-or-later
//! The memory and the notes of a partial copy: by a real server, and a real holder that applies its notes.

use super::law::Law;
use super::member::{MAX_BATCH, SampleError, settings};
use super::sample::capacity_of;
use super::traffic::{Traffic, signature};
use bulkmark_counts::{BulkAssembly, BulkMark, Federation, LocalCopy, Note, Reporter, Role};
use bulkmark_ledger::{Ledger, now};
use bulkmark_types::{FederationKey, Signature};
use std::collections::HashMap;
use std::time::Duration;
use tempfile::TempDir;

/// The count from which bulk is sent: half of the usual threshold.
pub const BOUND: u32 = 10;

/// Bytes of a frame without its note.
const FRAME: usize = 9;

/// The cost of bulk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Partial {
    /// Bytes of memory of a window for each of its signatures, bulk or not; and of a window in which nothing is bulk.
    pub memory: f64,
    /// See `memory`.
    pub empty: f64,
    /// Bytes of notes for each report, and of a note without a rise.
    pub note: f64,
}

struct Pair {
    server: Ledger,
    holder: Ledger,
    known: BulkMark,
    batch: u64,
    told: usize,
    _directories: [TempDir; 2],
}

impl Pair {
    async fn new(signatures: u32) -> Result<Self, SampleError> {
        let directories = [tempfile::tempdir()?, tempfile::tempdir()?];
        let with = |copy| {
            let federation =
                Federation { sync_interval: Duration::from_millis(1), copy, ..Federation::default() };
            settings(capacity_of(signatures), federation)
        };
        let (of_server, of_holder, key) =
            (with(LocalCopy::Full), with(LocalCopy::Partial), FederationKey::public());
        let server = Ledger::open(directories[0].path(), Role::Server, &of_server, &key)?;
        let holder = Ledger::open(directories[1].path(), Role::Cache, &of_holder, &key)?;
        let known = server.list_bulk(BOUND).await?;
        holder.adopt_bulk(BulkAssembly::new(&of_holder, known, Vec::new())).await?;
        Ok(Self { server, holder, known, batch: 0, told: 0, _directories: directories })
    }

    async fn report(&mut self, reports: &[(Signature, u32)]) -> Result<(), SampleError> {
        for part in reports.chunks(MAX_BATCH) {
            self.batch += 1;
            let reporter = Reporter { client: "study".to_owned(), spool: 1 };
            let taken = self.server.take_batch(reporter, self.batch, part.to_vec(), None, now()).await?;
            taken.map_err(|refusal| SampleError::Refused(refusal.to_string()))?;
        }
        // One note for all reports.
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.server.status(None).await?;
        self.follow().await
    }

    async fn follow(&mut self) -> Result<(), SampleError> {
        loop {
            let ours = self.server.bulk();
            let notes = self.server.reader()?.notes(ours, self.known, 1 << 20)?;
            let notes = notes.ok_or_else(|| SampleError::Refused("a gap in the notes".to_owned()))?;
            if notes.is_empty() {
                return Ok(());
            }
            for (number, bytes) in notes {
                self.told += bytes.len() + FRAME;
                self.known = self.known.after(number, &bytes);
                let note = Note::decode(&bytes);
                let note = note.ok_or_else(|| SampleError::Refused("its own note".to_owned()))?;
                let taken = self.holder.take_note(self.known.list, note, bytes, now()).await?;
                taken.map_err(|gap| SampleError::Refused(format!("{gap:?}")))?;
            }
        }
    }

    async fn memory(&mut self) -> Result<f64, SampleError> {
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.server.status(None).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.follow().await?;
        let bulk = self.holder.status(None).await?.bulk;
        Ok(bulk.map_or(0.0, |bulk| bulk.memory as f64))
    }
}

/// Samples a day of this law and of so many signatures, of which each note has the `notes`-th part.
///
/// # Errors
/// When a ledger fails.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from one to a million")]
pub async fn partial(law: Law, signatures: u32, notes: f64) -> Result<Partial, SampleError> {
    let mut traffic = Traffic::new(law, signatures, 2);
    let all = |copies: &[u32]| -> Vec<(Signature, u32)> {
        let some = copies.iter().enumerate().filter(|(_, copies)| **copies > 0);
        some.map(|(mailing, &copies)| (signature(mailing, 0), copies)).collect()
    };
    let mut pair = Pair::new(signatures).await?;
    // Both kinds of bulk, so that a window has all its parts.
    pair.report(&[(signature(0, 1), BOUND)]).await?;
    let empty = pair.memory().await?;
    let morning = traffic.morning();
    pair.report(&all(&morning)).await?;
    pair.memory().await?;
    let each = (traffic.all() as f64 / notes).round().clamp(1.0, 90_000.0);
    let rounds = (60_000.0 / each).clamp(30.0, 300.0).round() as usize;
    pair.told = 0;
    for _ in 0..rounds {
        let mut some: HashMap<usize, u32> = HashMap::new();
        (0..each as usize).for_each(|_| *some.entry(traffic.draw()).or_default() += 1);
        let reports: Vec<_> =
            some.into_iter().map(|(mailing, times)| (signature(mailing, 0), times)).collect();
        pair.report(&reports).await?;
    }
    pair.memory().await?;
    let note = pair.told as f64 / (each * rounds as f64);
    let mut evening = Pair::new(signatures).await?;
    evening.report(&all(traffic.copies())).await?;
    let memory = (evening.memory().await? - empty) / f64::from(signatures);
    Ok(Partial { memory, empty, note })
}
