// SPDX-License-Identifier: GPL-3.0-or-later
//! Ledgers from earlier programs can be read. Those in `tests/data/ledger` were copied from open ledgers of capacity 20, so that their
//! journals are not empty: `limited.redb` of format 4, the others of format 3.

use bulkmark_counts::{Limits, Origin, Receipt, Reporter, Role, Settings};
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_ledger::{FILE_NAME, Image, Ledger};
use bulkmark_testing::counts::{NOW, key, report, signature};
use bulkmark_testing::{Site, program};
use bulkmark_types::{FederationKey, correspondence};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

const ONE: Origin = Origin(0x72e8_d23e_eb31_928f);
const TWO: Origin = Origin(0xba51_b226_82c0_a6fe);
const SPOOL: u64 = 13_134_476_650_461_644_284;
const VECTOR: &str =
    "72e8d23eeb31928f:2:926b7e5c33c801b03814cba22f56f66b,ba51b22682c0a6fe:1:c0f189f15914c8e769871badf1f0a689";

/// Opens a copy of the ledger with this name.
fn open(name: &str, role: Role) -> (tempfile::TempDir, Ledger) {
    let directory = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ledger").join(name);
    std::fs::copy(from, directory.path().join(FILE_NAME)).unwrap();
    let settings = Settings { capacity: 20.try_into().unwrap(), ..Settings::default() };
    let ledger = Ledger::open(directory.path(), role, &settings, &FederationKey::public()).unwrap();
    (directory, ledger)
}

async fn assert_counts(ledger: &Ledger, expected: &[u32]) {
    for (n, &expected) in (0..).zip(expected) {
        assert_eq!(ledger.count(signature(n), NOW).await, Ok(expected), "signature {n}");
    }
}

/// Cells, journal and refused messages of a site.
#[tokio::test]
async fn a_site_of_format_3() {
    let (directory, ledger) = open("site.redb", Role::Site);
    let counts = [1, 11, 21, 33, 43, 2, 2, 2, 0];
    assert_counts(&ledger, &counts).await;
    assert!(ledger.remembers_refused());
    let again = bulkmark_counts::Report { keys: vec![key(1)], ..report(8, 1, NOW) };
    assert_eq!(ledger.report(again).await, Ok(vec![0]));
    ledger.close().await.unwrap();
    let (image, _) = Image::open(directory.path(), 20).unwrap();
    assert_eq!(image.role(), Role::Site);
}

/// Cells, journal, updates and receipts of a server that has a peer.
#[tokio::test]
async fn a_server_of_format_3() {
    let (_directory, ledger) = open("server.redb", Role::Server);
    assert_eq!(ledger.vector().to_string(), VECTOR);
    assert_counts(&ledger, &[4, 45, 6, 9, 0]).await;
    let updates = ledger.reader().unwrap().updates(&ledger.vector(), &VECTOR_OF_NOTHING, usize::MAX).unwrap();
    assert_eq!(updates.len(), 3);
    let reporter = Reporter { client: "mx1".to_owned(), spool: 7 };
    let batch = |number| ledger.take_batch(reporter.clone(), number, vec![(signature(0), 1)], None, NOW);
    assert_eq!(batch(2).await.unwrap(), Ok(Receipt { origin: ONE, version: 2 }));
    assert!(batch(1).await.unwrap().is_err());
    assert_counts(&ledger, &[4]).await;
    assert_eq!(batch(3).await.unwrap(), Ok(Receipt { origin: ONE, version: 3 }));
    assert_counts(&ledger, &[5]).await;
}

/// Merged cells and spool of a milter: a counted batch, a sent one, and a waiting report.
#[tokio::test]
async fn a_cache_of_format_3() {
    let (_directory, ledger) = open("cache.redb", Role::Cache);
    assert_eq!(ledger.vector().to_string(), VECTOR);
    assert_counts(&ledger, &[6, 45, 6, 9, 7, 1, 0]).await;
    let two = || "http://two".to_owned();
    let (spool, batch) = ledger.next_batch(two(), false).await.unwrap().unwrap();
    assert_eq!((spool, batch.number, batch.reports), (SPOOL, 2, vec![(signature(4), 7)]));
    ledger.acknowledge(two(), 2, Receipt { origin: TWO, version: 1 }).await.unwrap();
    let (spool, batch) = ledger.next_batch(two(), true).await.unwrap().unwrap();
    assert_eq!((spool, batch.number, batch.reports), (SPOOL, 3, vec![(signature(5), 1)]));
    assert_counts(&ledger, &[6, 45, 6, 9, 0, 1, 0]).await;
}

/// The reports of a limited client: in cells, in an update, and in the journal.
#[tokio::test]
async fn a_server_with_a_limited_client_of_format_4() {
    let (_directory, ledger) = open("limited.redb", Role::Server);
    assert_counts(&ledger, &[5, 5, 3, 2]).await;
    let reporter = Reporter { client: "partner".to_owned(), spool: 7 };
    let limits = Limits { influence: 5, quota: 1_000_000 };
    let batch = vec![(signature(0), 9), (signature(3), 1)];
    assert!(ledger.take_batch(reporter, 4, batch, Some(limits), NOW).await.unwrap().is_ok());
    assert_counts(&ledger, &[5, 5, 3, 3]).await;
    assert_eq!(ledger.withdraw("partner".to_owned(), NOW).await, Ok(true));
    assert_counts(&ledger, &[0, 1, 0, 0]).await;
}

/// The correspondents of 0.1.0, from `tests/data/0.1.0/correspondents`. `WRITE_FIXTURES=1` makes them again, which is right only until 0.1.0
/// is released.
#[test]
fn the_correspondents_of_0_1_0_are_known() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/0.1.0/correspondents");
    let open = |directory: &Path| Correspondents::open(directory, &FederationKey::public(), NOW);
    if std::env::var_os("WRITE_FIXTURES").is_some() {
        std::fs::create_dir_all(&fixture).unwrap();
        let store = open(&fixture);
        store.record("anna@box.test", ["ben@else.test", "carl@else.test"].into_iter(), NOW);
        store.flush();
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(fixture.join("correspondents.redb"), directory.path().join("correspondents.redb")).unwrap();
    let pairs = [
        ("anna@box.test", "ben@else.test"),
        ("anna@box.test", "carl@else.test"),
        ("ben@else.test", "anna@box.test"),
    ]
    .map(|(user, other)| correspondence(&FederationKey::public(), user, other));
    assert_eq!(open(directory.path()).contains(&pairs, NOW), [true, true, false]);
}

/// The old daemon holds the ledger while a package is upgraded, so the new program asks it for the format. Here the answer names another one.
#[test]
fn a_running_daemon_tells_the_format_that_the_next_start_finds() {
    let site = Site::new("");
    let _daemon = site.start();
    let (real, between) = (site.path("control.sock"), site.path("between.sock"));
    let config = site.path("next.toml");
    let text = std::fs::read_to_string(site.config()).unwrap().replace("control.sock", "between.sock");
    std::fs::write(&config, text).unwrap();
    let listener = UnixListener::bind(&between).unwrap();
    let changes =
        [("", ""), ("bulkmark ledger 4", "bulkmark ledger 9"), ("refined, 2 blocks", "coarse, 2 blocks")];
    std::thread::spawn(move || {
        for ((from, to), client) in changes.into_iter().zip(listener.incoming()) {
            let (mut question, mut answer) = (String::new(), String::new());
            let (mut client, mut daemon) = (client.unwrap(), UnixStream::connect(&real).unwrap());
            BufReader::new(&client).read_line(&mut question).unwrap();
            daemon.write_all(question.as_bytes()).unwrap();
            BufReader::new(&daemon).read_line(&mut answer).unwrap();
            client.write_all(answer.replace(from, to).as_bytes()).unwrap();
        }
    });
    for expected in [None, Some("has format bulkmark ledger 9, "), Some("has layout coarse, 2 blocks")] {
        let output = Command::new(program()).args(["config", "check"]).arg(&config).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(expected.map_or(0, |_| 78)), "{told}");
        let told_why = expected.is_none_or(|text| {
            told.contains("the daemon will not start: the ledger ") && told.contains(text)
        });
        assert!(told_why, "{told}");
    }
}

const VECTOR_OF_NOTHING: bulkmark_counts::Vector = bulkmark_counts::Vector::new();
