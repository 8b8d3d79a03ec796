// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows 10, 23 and 24: clients that constantly report new signatures, aimed ones, or nothing at all.

use super::client::{self, BATCH, Http};
use super::{Outcome, Scale};
use bulkmark_testing::Daemon;
use bulkmark_testing::process::kilobytes;
use bulkmark_testing::random::element;
use bulkmark_testing::server::{Server, milter};
use bulkmark_types::Signature;
use std::path::Path;
use std::time::{Duration, Instant};

/// The duration of an attack.
const TIME: Duration = Duration::from_secs(30);

/// The most memory that a partner may cost a server for a million signatures, in bytes: a sixteenth of its capacity, with room for the
/// sums.
const MOST_MEMORY: u64 = 32 << 20;
const MOST_DISK: u64 = 128 << 20;

/// The resident bytes of a process, current or peak.
pub(crate) fn memory(daemon: &Daemon, line: &str) -> u64 {
    1024 * kilobytes(daemon.pid(), line)
}

/// The bytes of the files in a directory.
fn disk(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

/// Formats bytes in millions.
pub(crate) fn mb(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

pub(crate) fn distinct(_: Scale) -> Outcome {
    let mut server = Server::new("");
    "interval = \"1s\"".clone_into(&mut server.sync);
    let file = server.site.path("token");
    std::fs::write(&file, client::own(&server, "member")).unwrap();
    let entry = format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), file.display());
    let site = milter(&[entry]);
    let token = client::partner(&server, "partner", &[]);
    let daemons = [server.start(), site.start()];
    let resident = || daemons.each_ref().map(|daemon| memory(daemon, "VmRSS"));
    let state = server.site.path("state");
    let (before, disk_before) = (resident(), disk(&state));
    let (mut partner, began, mut taken, mut refused) = (Http::new(server.port, &token), Instant::now(), 0, 0);
    let mut first = String::new();
    while began.elapsed() < TIME {
        let batch: Vec<_> = (taken..taken + BATCH as u64).map(element).collect();
        let answer = partner.report(&batch, 1);
        if answer.status == 200 {
            taken += BATCH as u64;
        } else {
            refused += 1;
            first = format!(", then {} {}", answer.status, answer.error);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    // Accepted reports are still on their way to the follower.
    std::thread::sleep(Duration::from_secs(3));
    let (after, disk_after) = (resident(), disk(&state));
    let grown = [0, 1].map(|i| after[i].saturating_sub(before[i]));
    let on_disk = disk_after.saturating_sub(disk_before);
    Outcome::new(
        format!("a limited client reports new signatures for {} s: {taken} are taken{first}", TIME.as_secs()),
        format!(
            "server +{} and {} on disk, a follower +{}; {refused} batches refused",
            mb(grown[0]),
            mb(on_disk),
            mb(grown[1])
        ),
        grown.iter().all(|&grown| grown <= MOST_MEMORY) && on_disk <= MOST_DISK,
    )
}

/// The most batches of aimed signatures that may be accepted before the third sample, and the number that is sent.
const MOST_AIMED: usize = 3;
const AIMED: usize = 6;

/// Signatures of user reports, with a valid tag, that all fall on one block in 512.
pub(crate) fn aimed_user_reports(_: Scale) -> Outcome {
    let server = Server::new("");
    let token = client::own(&server, "mx");
    let _daemon = server.start();
    let mut http = Http::new(server.port, &token);
    let aimed = |n: u64| {
        let first = element(n) & (u128::MAX >> 9);
        u128::from_be_bytes(Signature::from_bytes(first.to_be_bytes()).tagged().to_bytes())
    };
    let batches = (0..AIMED as u64).map(|n| n * BATCH as u64);
    let answers =
        batches.map(|first| http.report(&(first..first + BATCH as u64).map(aimed).collect::<Vec<_>>(), 1));
    let answers: Vec<_> = answers.collect();
    let taken = answers.iter().filter(|answer| answer.status == 200).count();
    let last = answers.last().map(|answer| format!("{} {}", answer.status, answer.error)).unwrap_or_default();
    Outcome::new(
        format!(
            "a client reports {AIMED} batches with signatures of user reports that are aimed at few cells"
        ),
        format!("{taken} are taken; the last answer is {last}"),
        taken <= MOST_AIMED,
    )
}

/// The number of batches without reports, and the number that a rate of one a second admits: one whole batch at once, and some for
/// the time that sending takes.
const EMPTY: usize = 20_000;
const MOST_EMPTY: usize = 10_000;

pub(crate) fn empty_batches(_: Scale) -> Outcome {
    let server = Server::new("");
    let token = client::partner(&server, "partner", &["--rate", "1"]);
    let _daemon = server.start();
    let mut http = Http::new(server.port, &token);
    let body = |n: u64| {
        let mut bytes = [&b"BMRP\x01"[..], &n.to_le_bytes(), &1u64.to_le_bytes()].concat();
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    };
    let taken =
        (0..EMPTY as u64).filter(|&n| http.ask("POST /v1/reports", "", &body(n)).status == 200).count();
    Outcome::new(
        format!(
            "a client whose rate is one report a second sends {EMPTY} batches without reports, each of another spool"
        ),
        format!("{taken} are taken"),
        taken <= MOST_EMPTY,
    )
}
