// SPDX-License-Identifier: GPL-3.0-or-later
//! The start of an aggregator while others make steps.

use super::*;
use crate::log::{Batch, BatchId, Client, LogError, Part, StateReport, Step};
use crate::state::{Link, Links};
use bulkmark_counts::{Applied, Role};
use bulkmark_types::FederationKey;
use std::marker::PhantomData;
use tokio::sync::mpsc;

/// A log without batches, which gets another step, and the ledger too, whenever it is asked for its first batch.
struct BusyLog {
    ledger: Ledger,
    fleet: Arc<Fleet>,
    link: Arc<Link>,
}

impl BusyLog {
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
    let (directory, settings) = (tempfile::tempdir().unwrap(), Settings::default());
    let ledger = Ledger::open(directory.path(), Role::Cache, &settings, &FederationKey::public()).unwrap();
    let fleet = Arc::new(Fleet::new("log", Arc::new(Links::new(&["log"], false))));
    let link = Arc::new(Link::new("log"));
    let log = Arc::new(BusyLog { ledger: ledger.clone(), fleet: Arc::clone(&fleet), link });
    log.step().await;
    let mut reached = fleet.reached();
    let mut aggregator = Aggregator::new(ledger.clone(), &settings, log, fleet);
    let (mark, basis) = aggregator.begin(&mut reached).await.unwrap();
    let now = ledger.fleet();
    assert_eq!((mark.version, now.version), (1, 2), "a step came at the start");
    assert_eq!((basis.epoch, basis.ahead), (1, false));
    assert!(basis.holds(now) && !basis.is_news(now));
}
