// SPDX-License-Identifier: GPL-3.0-or-later
//! Bodies as the first version of the protocol sent them, kept in tests/data/protocol: they are read, written the same way,
//! and count what they counted.

use bulkmark::control::Status;
use bulkmark::ledger::{Assembly, Ledger, Origin, Receipt, Role, Row, Settings, Update};
use bulkmark::signature::{FederationKey, Signature};
use bulkmark::sync::Parameters;
use bulkmark::sync::wire::{
    Frames, Reports, SNAPSHOT, SnapshotHead, UPDATES, decode_receipt, encode_receipt, frame,
};
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A second of the window in which all of it was counted.
const NOW: u64 = 1_795_371_667;

const ORIGIN: Origin = Origin(0x1cfe_616e_3ffc_eb90);

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/protocol").join(name)
}

fn body(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn signature(n: u8) -> Signature {
    Signature::from_bytes(std::array::from_fn(|i| {
        n.wrapping_mul(37).wrapping_add(u8::try_from(i).unwrap() * 11)
    }))
}

fn times(n: u8) -> u32 {
    [1, 2, 19, 300, 70_000][usize::from(n % 5)]
}

fn settings() -> Settings {
    Settings { capacity: NonZeroU32::new(1000).unwrap(), ..Settings::default() }
}

/// The frames of a stream, all of them.
fn frames(magic: &'static [u8; 5], stream: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Frames::new(magic);
    frames.push(stream);
    std::iter::from_fn(|| frames.take().unwrap()).collect()
}

/// The stream of these frames.
fn stream<'a>(magic: &[u8; 5], contents: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    contents.into_iter().fold(magic.to_vec(), |stream, content| [stream, frame(content)].concat())
}

#[test]
fn reports_and_receipt() {
    let reports = Reports {
        spool: 0x0123_4567_89AB_CDEF,
        number: 2,
        reports: (3..8).map(|n| (signature(n), times(n))).collect(),
    };
    assert_eq!(Reports::decode(&body("reports.bin")).as_ref(), Ok(&reports));
    assert_eq!(reports.encode(), body("reports.bin"));
    let receipt = Receipt { origin: ORIGIN, version: 2 };
    assert_eq!(decode_receipt(&body("receipt.bin")), Ok(receipt));
    assert_eq!(encode_receipt(receipt), body("receipt.bin"));
}

/// Streams are taken apart, all that is in them is understood, and the same is put together again.
#[test]
fn streams() {
    let contents = frames(SNAPSHOT, &body("snapshot.bin"));
    let (head, rows) = contents.split_first().unwrap();
    let head = SnapshotHead::decode(head).unwrap();
    assert_eq!((head.id, head.rows), (0xFEDC_BA98_7654_3210, rows.len() as u64));
    assert_eq!(head.vector.get(ORIGIN).version, 1);
    let rows: Vec<_> = rows.iter().map(|row| Row::decode(row).unwrap().encode()).collect();
    assert_eq!(stream(SNAPSHOT, [&head.encode()].into_iter().chain(&rows)), body("snapshot.bin"));

    let contents = frames(UPDATES, &body("updates.bin"));
    let (alive, updates) = contents.split_first().unwrap();
    assert!(alive.is_empty());
    let updates: Vec<_> = updates.iter().map(|update| Update::decode(update).unwrap()).collect();
    let versions: Vec<_> = updates.iter().map(|update| (update.origin(), update.version())).collect();
    assert_eq!(versions, [(ORIGIN, 1), (ORIGIN, 2)]);
    let updates: Vec<_> = updates.iter().map(Update::encode).collect();
    assert_eq!(stream(UPDATES, [alive].into_iter().chain(&updates)), body("updates.bin"));
}

/// A milter of today that is sent them counts what was counted then.
#[tokio::test]
async fn what_was_counted_counts() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(directory.path(), Role::Cache, &settings(), &FederationKey::public()).unwrap();
    let contents = frames(SNAPSHOT, &body("snapshot.bin"));
    let mut assembly = Assembly::new(&settings(), SnapshotHead::decode(&contents[0]).unwrap().vector);
    for row in &contents[1..] {
        assert_eq!(assembly.add(&Row::decode(row).unwrap()), Ok(true));
    }
    ledger.adopt(assembly).await.unwrap().unwrap();
    for bytes in frames(UPDATES, &body("updates.bin")).into_iter().filter(|bytes| !bytes.is_empty()) {
        let update = Update::decode(&bytes).unwrap();
        ledger.apply(update, bytes.into(), NOW).await.unwrap().unwrap();
    }
    for n in 0..9 {
        let reported = [0..5, 3..8].iter().filter(|batch| batch.contains(&n)).count();
        let expected = times(n) * u32::try_from(reported).unwrap();
        assert_eq!(ledger.count(signature(n), NOW).await, Ok(expected), "signature {n}");
    }
    ledger.close().await.unwrap();
}

#[test]
fn parameters() {
    let text = text("parameters.txt");
    let ours = Parameters::new(&settings(), &FederationKey::public());
    assert_eq!(ours.to_string(), text.trim_end());
    assert_eq!(ours.check(text.trim_end()), Ok(()));
    let (read, key) = Parameters::read(text.trim_end()).unwrap();
    assert_eq!(
        (read.capacity, read.window, key),
        (settings().capacity, settings().window, FederationKey::public().id())
    );
}

#[test]
fn status() {
    let status: Status = serde_json::from_str(&text("status.json")).unwrap();
    assert_eq!(status.versions.get("1c4886c84c22c610"), Some(&1));
    assert_eq!(status.ledger.slices[0].signatures, Some(5));
    assert_eq!(serde_json::to_string(&status).unwrap(), text("status.json"));
}
