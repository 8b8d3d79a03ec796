// SPDX-License-Identifier: GPL-3.0-or-later
//! The clients that reported, as an aggregator reads them in the log.

use crate::log::{Batch, MAX_BYTES, Place};
use bulkmark_ledger::now;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Maximum of clients that are counted. A log has as many as its file of members.
const MOST: usize = 10_000;

/// Maximum size of a report in a batch, and the overhead of a batch. PostgreSQL's functions, which limit rates themselves, use the same
/// numbers.
const REPORT_BYTES: u64 = 18;
const BATCH_BYTES: u64 = 200;

/// How long a client's unused rate is saved up, in seconds.
const SAVED: u64 = 60;

/// How long it is shown that a client sent too much, in seconds.
const SHOWN_FOR: u64 = 600;

/// The reports of a client since this aggregator was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReporterStatus {
    /// Its name, as the log authenticated it.
    pub name: String,
    /// The number of its batches.
    pub batches: u64,
    /// When the last of them came, by the log's clock, in seconds since 1970.
    pub last_at: u64,
    /// Whether it sent more than its rate in the last ten minutes, to a log that does not limit it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_fast: bool,
}

#[derive(Debug, Default)]
struct Reporter {
    batches: u64,
    at: u64,
    /// The place of the last one.
    place: Place,
    /// Bytes that it sent, minus those that its rate has allowed since.
    level: u64,
    /// When it exceeded its rate, by the log's clock.
    too_fast: Option<u64>,
}

impl Reporter {
    /// Counts a new batch; true if it exceeds the rate, for the first time in a while.
    fn meter(&mut self, batch: &Batch, rate: NonZeroU32) -> bool {
        let allowed = u64::from(rate.get()) * REPORT_BYTES;
        self.level = self.level.saturating_sub(batch.at.saturating_sub(self.at).saturating_mul(allowed));
        self.level += batch.bytes.len() as u64 + BATCH_BYTES;
        if self.level <= allowed * SAVED + MAX_BYTES as u64 + BATCH_BYTES {
            return false;
        }
        // An excess of days counts no more than that.
        self.level = allowed * SAVED + MAX_BYTES as u64 + BATCH_BYTES;
        !is_recent(self.too_fast.replace(batch.at), batch.at)
    }
}

fn is_recent(too_fast: Option<u64>, at: u64) -> bool {
    too_fast.is_some_and(|since| since + SHOWN_FOR > at)
}

/// All clients by name.
#[derive(Debug, Default)]
pub(super) struct Reporters(Mutex<BTreeMap<String, Reporter>>);

impl Reporters {
    /// Records that a batch was read, perhaps again. True if it should be logged that its client exceeds its rate.
    pub(super) fn read(&self, batch: &Batch, rate: Option<NonZeroU32>) -> bool {
        let mut all = self.0.lock();
        if all.len() >= MOST && !all.contains_key(&batch.client) {
            return false;
        }
        let reporter = all.entry(batch.client.clone()).or_default();
        let mut is_news = false;
        // A log that was created again has other places; its batches are newer.
        if batch.place > reporter.place || batch.at > reporter.at {
            reporter.batches += 1;
            is_news = rate.is_some_and(|rate| reporter.meter(batch, rate));
        }
        reporter.at = reporter.at.max(batch.at);
        reporter.place = batch.place;
        is_news
    }

    pub(super) fn status(&self) -> Vec<ReporterStatus> {
        let (all, now) = (self.0.lock(), now());
        let status = |(name, reporter): (&String, &Reporter)| ReporterStatus {
            name: name.clone(),
            batches: reporter.batches,
            last_at: reporter.at,
            too_fast: is_recent(reporter.too_fast, now),
        };
        all.iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Within its rate, a client may send a whole batch at any time; an excess is logged once. An own client has no limit.
    #[test]
    fn a_client_that_exceeds_its_rate_is_shown() {
        let (reporters, begin) = (Reporters::default(), now());
        let read = |place, client: &str, at, bytes, rate| {
            let batch = Batch { place: Place(place), client: client.to_owned(), at, bytes: vec![0; bytes] };
            reporters.read(&batch, NonZeroU32::new(rate))
        };
        let is_shown = |client: &str| {
            reporters.status().iter().any(|reporter| reporter.name == client && reporter.too_fast)
        };
        for second in 0..100 {
            // 1,000 signatures of 17 bytes.
            assert!(!read(second + 1, "isp", begin - 200 + second, 17_000, 1000));
        }
        assert!(!read(101, "isp", begin - 100, MAX_BYTES, 1000));
        assert!(!is_shown("isp"));
        let logged: Vec<_> = (0..20).filter(|n| read(102 + n, "isp", begin - 100, MAX_BYTES, 1000)).collect();
        assert_eq!(logged.len(), 1, "{logged:?}");
        assert!(!(0..20).any(|n| read(202 + n, "own", begin, MAX_BYTES, 0)));
        assert!(is_shown("isp") && !is_shown("own"));
        // Reading the same batch again changes nothing.
        let other = Reporters::default();
        let batch = Batch { place: Place(1), client: "isp".to_owned(), at: begin, bytes: vec![0; MAX_BYTES] };
        assert!(!(0..20).any(|_| other.read(&batch, NonZeroU32::new(1))));
    }
}
