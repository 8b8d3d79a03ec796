// SPDX-License-Identifier: GPL-3.0-or-later
//! Helpers for tests of the ledger.

use bulkmark_counts::{Report, RetryKey, Role, Settings};
use bulkmark_ledger::Ledger;
use bulkmark_types::{FederationKey, Signature};
use std::num::NonZeroU32;
use std::path::Path;

/// Seconds of a day.
pub const DAY: u64 = 86_400;
/// Some noon.
pub const NOW: u64 = 20_000 * DAY + DAY / 2;

/// Returns settings of this capacity.
pub fn settings(capacity: u32) -> Settings {
    Settings { capacity: NonZeroU32::new(capacity).unwrap(), ..Settings::default() }
}

/// Opens the ledger in a directory.
pub fn open(directory: &Path, settings: &Settings) -> Ledger {
    Ledger::open(directory, Role::Site, settings, &FederationKey::public()).unwrap()
}

/// The signature with this number, spread over the filter as real ones are.
pub fn signature(number: u64) -> Signature {
    Signature::from_bytes(super::random::element(number).to_be_bytes())
}

/// The key of the retry with this number.
pub fn key(number: u64) -> RetryKey {
    RetryKey::new(&[b"key", &number.to_be_bytes()])
}

/// A report of the signature with this number.
pub fn report(number: u64, times: u32, now: u64) -> Report {
    Report { signatures: vec![signature(number)], times, now, ..Report::default() }
}

/// Sends all reports at once, so that they share commits.
pub async fn report_all(ledger: &Ledger, reports: impl IntoIterator<Item = Report>) {
    let mut tasks = tokio::task::JoinSet::new();
    for report in reports {
        let ledger = ledger.clone();
        tasks.spawn(async move { ledger.report(report).await.unwrap() });
    }
    tasks.join_all().await;
}

/// Waits for a future.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
