// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 10: a limited client that reports new signatures all the time.

use super::client::{self, BATCH, Http};
use super::{Outcome, Scale};
use bulkmark_testing::Daemon;
use bulkmark_testing::process::kilobytes;
use bulkmark_testing::random::element;
use bulkmark_testing::server::{Server, milter};
use std::path::Path;
use std::time::{Duration, Instant};

/// For how long.
const TIME: Duration = Duration::from_secs(30);

/// What a partner may cost a server for a million signatures, in bytes: a sixteenth of its capacity, with room for the sums.
const MOST_MEMORY: u64 = 32 << 20;
const MOST_DISK: u64 = 128 << 20;

/// Resident bytes of a process, now or at its highest.
pub(crate) fn memory(daemon: &Daemon, line: &str) -> u64 {
    1024 * kilobytes(daemon.pid(), line)
}

/// Bytes of the files of a directory.
fn disk(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

/// In millions.
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
    // What was taken is on its way to the follower.
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
