// SPDX-License-Identifier: GPL-3.0-or-later
//! An aggregator whose reader of steps moves at inconvenient moments.

use super::*;
use crate::log::{Batch, BatchId, Client, LogError, Part, StateReport, Step};
use crate::state::{Link, Links};
use bulkmark_counts::{Applied, Role};
use bulkmark_types::FederationKey;
use std::marker::PhantomData;
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

/// A log without batches, which gets another step, and the ledger too, whenever it is asked for its first batch.
struct BusyLog {
    ledger: Ledger,
    fleet: Arc<Fleet>,
    link: Arc<Link>,
    /// Signals that it was asked for its clients.
    asked: Notify,
}

impl BusyLog {
    /// A log with one step, and its ledger.
    async fn with_step() -> (TempDir, Arc<Self>) {
        let (directory, settings) = (tempfile::tempdir().unwrap(), Settings::default());
        let ledger =
            Ledger::open(directory.path(), Role::Cache, &settings, &FederationKey::public()).unwrap();
        let fleet = Arc::new(Fleet::new("log", Arc::new(Links::new(&["log"], false))));
        let log = Self { ledger, fleet, link: Arc::new(Link::new("log")), asked: Notify::new() };
        log.step().await;
        (directory, Arc::new(log))
    }

    fn aggregator(self: &Arc<Self>) -> Aggregator<Self> {
        let (ledger, fleet) = (self.ledger.clone(), Arc::clone(&self.fleet));
        Aggregator::new(ledger, &Settings::default(), Arc::clone(self), fleet)
    }

    /// Another aggregator makes a step, which comes to the ledger.
    async fn step(&self) {
        let place = self.ledger.fleet().version + 1;
        let terms = Terms { epoch: 1, made: 5, gone: place, most_bytes: MAX_BYTES, ..Terms::default() };
        let drafted = self.ledger.draft_step(Vec::new(), terms).await.unwrap().unwrap();
        let applied = self.ledger.apply_step(drafted.bytes.into(), place, 1_800_000_000).await.unwrap();
        assert_eq!(applied, Ok(Applied::New));
        self.fleet.set_cursor(Cursor::new(Place(place), Some(own(self.ledger.fleet())), Place(0)));
    }
}

/// A reader to whom nothing comes.
struct Silent<T>(PhantomData<T>);

impl<T: Send> crate::log::Reader for Silent<T> {
    type Item = T;

    async fn next(&mut self) -> Result<T, LogError> {
        std::future::pending().await
    }
}

const SILENT: LogError = LogError::Gone(Place(0));

impl Log for BusyLog {
    type Batches = Silent<Batch>;
    type Steps = Silent<Step>;
    type Snapshot = Silent<Option<Part>>;

    fn link(&self) -> &Arc<Link> {
        &self.link
    }

    async fn ends(&self) -> Result<Ends, LogError> {
        let last = Place(self.ledger.fleet().version);
        Ok(Ends { made: 5, batches: last, steps: last, first_step: Place(1) })
    }

    async fn first_batch(&self) -> Result<Place, LogError> {
        self.step().await;
        Ok(Place(1))
    }

    async fn append(&self, _: BatchId, _: Vec<u8>) -> Result<Place, LogError> {
        Err(SILENT)
    }

    async fn batches(&self, _: Place) -> Result<Self::Batches, LogError> {
        Ok(Silent(PhantomData))
    }

    async fn steps(&self, _: Place) -> Result<Self::Steps, LogError> {
        Ok(Silent(PhantomData))
    }

    async fn append_step(&self, _: Place, _: Vec<u8>) -> Result<Option<Place>, LogError> {
        Ok(None)
    }

    async fn snapshot(&self) -> Result<Self::Snapshot, LogError> {
        Err(SILENT)
    }

    async fn newest_snapshot(&self) -> Result<Option<u64>, LogError> {
        Ok(None)
    }

    async fn put_snapshot(&self, _: mpsc::Receiver<Option<Part>>) -> Result<Option<u64>, LogError> {
        Ok(None)
    }

    async fn clients(&self) -> Result<Vec<Client>, LogError> {
        self.asked.notify_one();
        Ok(Vec::new())
    }

    async fn aggregators(&self) -> Result<Vec<String>, LogError> {
        Ok(Vec::new())
    }

    async fn publish_state(&self, _: Vec<u8>) -> Result<(), LogError> {
        Ok(())
    }

    async fn state_reports(&self) -> Result<Vec<StateReport>, LogError> {
        Ok(Vec::new())
    }
}

/// Another aggregator makes a step while this one asks a slow log. It follows that step, and begins no epoch, at which the other one would
/// start over in turn.
#[tokio::test]
async fn a_step_that_comes_at_the_start_begins_no_epoch() {
    let (_directory, log) = BusyLog::with_step().await;
    let mut reached = log.fleet.reached();
    let (mark, basis) = log.aggregator().begin(&mut reached).await.unwrap();
    let now = log.ledger.fleet();
    assert_eq!((mark.version, now.version), (1, 2), "a step came at the start");
    assert_eq!((basis.epoch, basis.ahead), (1, false));
    assert!(basis.holds(now) && !basis.is_news(now));
}

/// The reader of steps finds that the log lost its end, and reads it from its beginning, while the aggregator does something else: it starts
/// over too, to append the lost steps.
#[tokio::test]
async fn a_reader_of_steps_that_starts_over_is_noticed() {
    let (_directory, log) = BusyLog::with_step().await;
    let (mut reached, mut aggregator) = (log.fleet.reached(), log.aggregator());
    let mut running = std::pin::pin!(aggregator.run(&mut reached));
    tokio::select! {
        ended = &mut running => panic!("it ended: {ended:?}"),
        () = log.asked.notified() => (),
    }
    log.fleet.stopped();
    log.fleet.set_cursor(Cursor::new(Place(0), None, Place(0)));
    timeout(Duration::from_mins(1), running).await.expect("it goes on as before").unwrap();
}
