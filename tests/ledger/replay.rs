// SPDX-License-Identifier: GPL-3.0-or-later
//! After a crash: a half-written state is recognised, and the start of the replay is known (dablooms uses sequence numbers for this).

use bulkmark_counts::Role;
use bulkmark_ledger::{FILE_NAME, Ledger};
use bulkmark_testing::Site;
use bulkmark_testing::counts::*;
use bulkmark_testing::milter::{Client, Mail};
use bulkmark_testing::random::Random;
use bulkmark_types::FederationKey;
use redb::{Database, ReadableTable, TableDefinition};
use std::path::Path;
use std::time::Instant;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const JOURNAL: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("journal");

/// The bytes of one report in the journal, and of a checksum.
const ENTRY: usize = 36;
const CHECKSUM: usize = 4;

/// A ledger after a crash, with 5 reports in its cells and 12 in its journal, each in a separate batch.
async fn crashed(directory: &Path) {
    let origin = tempfile::tempdir().unwrap();
    let ledger = open(origin.path(), &settings(1000));
    for number in 0..5 {
        ledger.report(report(number, 1, NOW)).await.unwrap();
    }
    ledger.close().await.unwrap();
    let ledger = open(origin.path(), &settings(1000));
    for number in 0..12 {
        ledger.report(report(number % 6, 1, NOW)).await.unwrap();
    }
    std::fs::copy(origin.path().join(FILE_NAME), directory.join(FILE_NAME)).unwrap();
    ledger.close().await.unwrap();
}

/// `checkpoint`, and the key and number of reports of each batch in the journal.
fn positions(file: &Path) -> (u64, Vec<(u64, usize)>) {
    let db = Database::open(file).unwrap();
    let txn = db.begin_write().unwrap();
    let meta = txn.open_table(META).unwrap();
    let checkpoint =
        u64::from_le_bytes(*meta.get("checkpoint").unwrap().unwrap().value().first_chunk().unwrap());
    let journal = txn.open_table(JOURNAL).unwrap();
    let rows = journal.iter().unwrap().map(Result::unwrap);
    (checkpoint, rows.map(|(key, batch)| (key.value(), (batch.value().len() - CHECKSUM) / ENTRY)).collect())
}

/// Each report is in the cells or in the journal, which begins where the cells end, and counts once.
#[tokio::test]
async fn the_journal_begins_where_the_cells_end() {
    let directory = tempfile::tempdir().unwrap();
    crashed(directory.path()).await;
    let file = directory.path().join(FILE_NAME);
    assert_eq!(positions(&file), (5, (5..17).map(|key| (key, 1)).collect()));
    for _ in 0..2 {
        let ledger = open(directory.path(), &settings(1000));
        for number in 0..6 {
            assert_eq!(ledger.count(signature(number), NOW).await, Ok(2 + u32::from(number < 5)));
        }
        ledger.close().await.unwrap();
        assert_eq!(positions(&file), (17, Vec::new()), "an orderly end is a checkpoint");
    }
}

/// Cells and journal that do not belong together are refused, and so is a journal with a gap.
#[tokio::test]
async fn a_gap_is_refused() {
    let place = |checkpoint: u64| {
        let value = checkpoint.to_le_bytes();
        let mut hash = crc32fast::Hasher::new();
        [&b"meta"[..], b"checkpoint", &value].iter().for_each(|part| hash.update(part));
        [&value[..], &hash.finalize().to_le_bytes()].concat()
    };
    for (removed, checkpoint, told) in [
        (Some(5), 5, "report 6 instead of 5"),
        (Some(9), 5, "report 10 instead of 9"),
        (None, 4, "report 5 instead of 4"),
        (None, 6, "report 5 instead of 6"),
        (None, 17, "report 5 instead of 17"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        crashed(directory.path()).await;
        let db = Database::open(directory.path().join(FILE_NAME)).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(META).unwrap().insert("checkpoint", &*place(checkpoint)).unwrap();
        if let Some(key) = removed {
            txn.open_table(JOURNAL).unwrap().remove(key).unwrap();
        }
        txn.commit().unwrap();
        drop(db);
        let error = Ledger::open(directory.path(), Role::Site, &settings(1000), &FederationKey::public())
            .err()
            .unwrap();
        let expected = format!("is damaged (the journal continues at {told})");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

/// An orderly stop writes the cells and empties the journal; if the daemon is killed meanwhile, at any moment, every answered report is
/// counted once.
#[test]
fn a_kill_within_a_checkpoint_loses_nothing() {
    const ROUNDS: u32 = 15;
    let site = Site::new("[ledger]\ncapacity = 500000\n");
    let mails: Vec<_> = (0..40).map(|i| Mail::text(&format!("mail {i}"))).collect();
    let send = |round: u32| {
        let daemon = site.start();
        let mut client = Client::connect(&daemon);
        client.client("client.example.org", "192.0.2.7");
        for mail in &mails {
            assert_eq!(client.message(mail).count(), Some(round));
        }
        daemon
    };
    let daemon = send(1);
    let start = Instant::now();
    assert!(daemon.terminate().success());
    let mut orderly = start.elapsed();

    let (mut random, mut killed) = (Random::new(6), 0);
    for round in 2..=ROUNDS {
        let mut daemon = send(round);
        daemon.signal("TERM");
        std::thread::sleep(orderly * u32::try_from(random.below(100)).unwrap() / 100);
        daemon.child.kill().unwrap();
        if daemon.child.wait().unwrap().success() {
            // The stop was faster than expected, so the next kill comes earlier.
            orderly = orderly * 3 / 4;
        } else {
            killed += 1;
        }
    }
    println!("{killed} of {} were cut off", ROUNDS - 1);
    assert!(killed > 0);
    assert!(send(ROUNDS + 1).terminate().success());
}
