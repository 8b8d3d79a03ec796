// SPDX-License-Identifier: GPL-3.0-or-later
//! A snapshot of a server's ledger, and a milter's ledger that continues from it.

use bulkmark_counts::{
    Assembly, Federation, Refusal, Reporter, Role, Row, Settings, Update, Vector, mark_of,
};
use bulkmark_ledger::Ledger;
use bulkmark_testing::random::element;
use bulkmark_types::{FederationKey, Signature};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NOW: u64 = 1_800_000_000;

fn settings() -> Settings {
    let federation = Federation { sync_interval: Duration::from_millis(1), ..Federation::default() };
    Settings { capacity: 200_000.try_into().unwrap(), federation, ..Settings::default() }
}

fn open(directory: &Path, role: Role) -> Ledger {
    Ledger::open(directory, role, &settings(), &FederationKey::public()).unwrap()
}

fn signature(n: u64) -> Signature {
    Signature::from_bytes(element(n).to_le_bytes())
}

/// Reports each of `numbers` once more than its last digit says, and waits until others can get the reports.
async fn report(server: &Ledger, batch: u64, numbers: std::ops::Range<u64>) {
    let reports = numbers.map(|n| (signature(n), u32::try_from(n % 10 + 1).unwrap())).collect();
    let reporter = Reporter { client: "a".to_owned(), spool: 1 };
    let receipt = server.take_batch(reporter, batch, reports, None, NOW).await.unwrap().unwrap();
    let mut moves = server.vector_changes();
    while server.vector().get(receipt.origin).version < receipt.version {
        assert!(moves.changed().await);
    }
}

/// The updates that a holder of `since` lacks.
fn updates(server: &Ledger, since: &Vector) -> Vec<Arc<[u8]>> {
    let ours = server.vector();
    server.reader().unwrap().updates(&ours, since, usize::MAX).unwrap()
}

fn assembly(server: &Ledger) -> Assembly {
    let snapshot = server.reader().unwrap().snapshot().unwrap();
    let mut assembly = Assembly::new(&settings(), snapshot.vector().clone(), NOW);
    let rows = snapshot.count_rows().unwrap();
    // As in transit: in pieces, and as bytes.
    let mut from = 0;
    while from < rows {
        for row in snapshot.rows(from, 3).unwrap() {
            assert!(assembly.add(&Row::decode(&row.encode()).unwrap()).unwrap());
            from += 1;
        }
    }
    assembly
}

async fn assert_counts(ledger: &Ledger, numbers: std::ops::Range<u64>) {
    for n in numbers {
        assert_eq!(u64::from(ledger.count(signature(n), NOW).await.unwrap()), n % 10 + 1, "number {n}");
    }
}

/// Copies the file while the ledger is open, as a crash would leave it.
fn crash(from: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(from.join("ledger.redb"), directory.path().join("ledger.redb")).unwrap();
    directory
}

#[tokio::test]
async fn a_snapshot_and_what_comes_after_it() {
    let (at_server, at_cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = open(at_server.path(), Role::Server);
    report(&server, 1, 0..3000).await;
    server.close().await.unwrap();
    let server = open(at_server.path(), Role::Server);

    let cache = open(at_cache.path(), Role::Cache);
    // Counts from before the snapshot must not remain beside it.
    let mut before = Vector::new();
    for bytes in updates(&server, &before) {
        let (origin, mark) = mark_of(&bytes).unwrap();
        before.set(origin, mark);
        cache.apply(Update::decode(&bytes).unwrap(), bytes, NOW).await.unwrap().unwrap();
    }
    cache.adopt(assembly(&server)).await.unwrap().unwrap();
    assert_counts(&cache, 0..3000).await;

    report(&server, 2, 3000..3500).await;
    // Outside the loop: the ledger cannot move a vector while it is borrowed.
    let since = cache.vector();
    for bytes in updates(&server, &since) {
        cache.apply(Update::decode(&bytes).unwrap(), bytes, NOW).await.unwrap().unwrap();
    }
    assert_counts(&cache, 0..3500).await;
    assert_eq!(cache.vector(), server.vector());

    // All counts are there again, after an orderly stop and after a crash.
    let crashed = crash(at_cache.path());
    assert_counts(&open(crashed.path(), Role::Cache), 0..3500).await;
    cache.close().await.unwrap();
    assert_counts(&open(at_cache.path(), Role::Cache), 0..3500).await;
}

/// A server's own counts are in its own filters: a snapshot that includes them would count them twice.
#[tokio::test]
async fn a_server_takes_no_snapshot_of_itself() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(directory.path(), Role::Server);
    report(&server, 1, 0..10).await;
    server.close().await.unwrap();
    let server = open(directory.path(), Role::Server);
    let refused = server.adopt(assembly(&server)).await.unwrap();
    assert!(matches!(refused, Err(Refusal::Own { .. })), "{refused:?}");
    assert_counts(&server, 0..10).await;
}
