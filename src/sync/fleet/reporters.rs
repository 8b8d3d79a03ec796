// SPDX-License-Identifier: GPL-3.0-or-later
//! Who reported, as an aggregator reads it in the log.

use crate::sync::log::{Batch, Place};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Clients that are told apart. A log has as many as its file of members.
const MOST: usize = 10_000;

/// What a client reported since this aggregator was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReporterStatus {
    /// Its name, as the log proves it.
    pub name: String,
    /// Batches.
    pub batches: u64,
    /// When the last of them came, by the log's clock, in seconds since 1970.
    pub last_at: u64,
}

#[derive(Debug, Default)]
struct Reporter {
    batches: u64,
    at: u64,
    /// Of the last one.
    place: Place,
}

/// All clients by name.
#[derive(Debug, Default)]
pub(super) struct Reporters(Mutex<BTreeMap<String, Reporter>>);

impl Reporters {
    /// A batch was read, perhaps once more.
    pub(super) fn read(&self, batch: &Batch) {
        let mut all = self.0.lock();
        if all.len() >= MOST && !all.contains_key(&batch.client) {
            return;
        }
        let reporter = all.entry(batch.client.clone()).or_default();
        // A log that was made anew begins with other places; its batches are newer.
        if batch.place > reporter.place || batch.at > reporter.at {
            reporter.batches += 1;
        }
        reporter.at = reporter.at.max(batch.at);
        reporter.place = batch.place;
    }

    pub(super) fn status(&self) -> Vec<ReporterStatus> {
        let all = self.0.lock();
        let status = |(name, reporter): (&String, &Reporter)| ReporterStatus {
            name: name.clone(),
            batches: reporter.batches,
            last_at: reporter.at,
        };
        all.iter().map(status).collect()
    }
}
