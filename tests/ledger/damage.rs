// SPDX-License-Identifier: GPL-3.0-or-later
//! A damaged ledger is refused, or its counts are right; they are never wrong without an error.

use bulkmark_counts::{Role, Settings};
use bulkmark_ledger::{FILE_NAME, Ledger, OpenError};
use bulkmark_testing::counts::*;
use bulkmark_testing::random::Random;
use bulkmark_types::FederationKey;
use std::path::Path;

const PAGE: usize = 4096;
const NUMBERS: u64 = 3000;
/// The number of signatures that the test looks up; the first ones were reported last.
const ASKED: u64 = 250;

fn truth(number: u64) -> u32 {
    let early = 1 + (number % 5) as u32;
    early + u32::from(number < ASKED / 2)
}

fn small() -> Settings {
    // Two chunks of cells in each window.
    settings(14_000)
}

/// A ledger of two windows with checkpointed cells, a journal and refused keys. Returns its file before an orderly stop (`crashed`) and
/// after it.
async fn write() -> (Vec<u8>, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(FILE_NAME);
    let ledger = open(directory.path(), &small());
    report_all(
        &ledger,
        (0..NUMBERS).map(|i| report(i, truth(i) - u32::from(i < ASKED / 2), NOW + i % 2 * DAY)),
    )
    .await;
    ledger.close().await.unwrap();
    let ledger = open(directory.path(), &small());
    ledger.record_refused((0..50).map(key).collect(), NOW).await.unwrap();
    for i in 0..ASKED / 2 {
        ledger.report(report(i, 1, NOW + DAY)).await.unwrap();
    }
    let crashed = std::fs::read(&file).unwrap();
    ledger.close().await.unwrap();
    (crashed, std::fs::read(&file).unwrap())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    crash: bool,
    refused: usize,
    right: usize,
}

/// Opens the damaged bytes. Wrong counts are the failure that the test looks for.
async fn judge(directory: &Path, bytes: &[u8], what: &str, tally: &mut Tally, wrong: &mut Vec<String>) {
    let file = directory.join(FILE_NAME);
    std::fs::write(&file, bytes).unwrap();
    match Ledger::open(directory, Role::Site, &small(), &FederationKey::public()) {
        Err(e) => {
            assert!(e.to_string().contains(&file.display().to_string()), "{e}");
            assert!(matches!(e, OpenError::Damaged { .. } | OpenError::Other { .. }), "{what}: {e}");
            // It must stay refused: the first attempt must not have changed it into a valid file.
            let again = Ledger::open(directory, Role::Site, &small(), &FederationKey::public());
            match again {
                Err(_) => tally.refused += 1,
                Ok(ledger) => {
                    ledger.close().await.unwrap();
                    wrong.push(format!("{what}: refused ({e}), and then taken"));
                }
            }
        }
        Ok(ledger) => {
            let mut off = Vec::new();
            for number in 0..ASKED {
                let count = ledger.count(signature(number), NOW + DAY).await.unwrap();
                if count != truth(number) {
                    off.push((number, count, truth(number)));
                }
            }
            // After a crash, damage to the newest commit looks like the crash itself, so the database drops that commit.
            let newest = ASKED / 2 - 1;
            if off.is_empty() || tally.crash && off == [(newest, truth(newest) - 1, truth(newest))] {
                tally.right += 1;
            } else {
                wrong.push(format!(
                    "{what}: {} wrong counts, such as (number, count, truth) {:?}",
                    off.len(),
                    off[0]
                ));
            }
            if let Err(e) = ledger.close().await {
                wrong.push(format!("{what}: opened, and then {e}"));
            }
        }
    }
}

async fn damage(original: &[u8], seed: u64, crash: bool) {
    let directory = tempfile::tempdir().unwrap();
    let (mut tally, mut wrong) = (Tally { crash, ..Tally::default() }, Vec::new());
    judge(directory.path(), original, "no damage", &mut tally, &mut wrong).await;
    assert_eq!(tally, Tally { crash, refused: 0, right: 1 }, "{wrong:?}");
    let mut random = Random::new(seed);
    let pages = original.len() / PAGE;
    let used: Vec<usize> =
        (0..pages).filter(|p| original[p * PAGE..][..PAGE].iter().any(|&b| b != 0)).collect();

    // The header of the file is small and crucial.
    for _ in 0..120 {
        let (byte, bit) = (random.below(320), random.below(8));
        let mut bytes = original.to_vec();
        bytes[byte] ^= 1 << bit;
        judge(directory.path(), &bytes, &format!("bit {bit} of byte {byte}"), &mut tally, &mut wrong).await;
    }
    for _ in 0..100 {
        let (byte, bit) = (used[random.below(used.len())] * PAGE + random.below(PAGE), random.below(8));
        let mut bytes = original.to_vec();
        bytes[byte] ^= 1 << bit;
        judge(directory.path(), &bytes, &format!("bit {bit} of byte {byte}"), &mut tally, &mut wrong).await;
    }
    for _ in 0..40 {
        let page = used[random.below(used.len())];
        let mut bytes = original.to_vec();
        bytes[page * PAGE..][..PAGE].fill(0);
        judge(directory.path(), &bytes, &format!("zeroed page {page}"), &mut tally, &mut wrong).await;
    }
    for _ in 0..20 {
        let length = random.below(original.len());
        judge(directory.path(), &original[..length], &format!("cut to {length}"), &mut tally, &mut wrong)
            .await;
    }
    for length in [0, 1, PAGE, original.len() - 1, original.len() - PAGE] {
        judge(directory.path(), &original[..length], &format!("cut to {length}"), &mut tally, &mut wrong)
            .await;
    }
    println!("{} bytes, {} pages in use: {tally:?}", original.len(), used.len());
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tally.refused > 60, "{tally:?}");
}

#[tokio::test]
async fn damage_after_an_orderly_end() {
    let (_, ended) = write().await;
    damage(&ended, 4, false).await;
}

#[tokio::test]
async fn damage_after_a_crash() {
    let (crashed, _) = write().await;
    damage(&crashed, 5, true).await;
}
