// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 39: an own client hides signatures that are aimed at a few blocks among hashes.

use super::client::{self, BATCH, Http};
use super::flood::{mb, memory};
use super::{Outcome, Scale};
use bulkmark_testing::process::processor;
use bulkmark_testing::random::element;
use bulkmark_testing::server::Server;

/// Aimed signatures of a batch, each behind as many others; these are the same hashes in each batch. A sample of a batch has few of them.
const HIDDEN: usize = 512;
const BETWEEN: usize = BATCH / HIDDEN - 1;

/// How often each is reported: more than a cell counts in its block, so that the tables of large counts fill.
const TIMES: u32 = 100;

/// The most memory for them, in bytes: tables of large counts that take 270 kB for each 1,024 blocks at most, and windows of others.
const MOST_MEMORY: u64 = 128 << 20;

/// Batches of another client between two readings of the processor's time, and readings.
const OF_OTHERS: u64 = 8;
const READINGS: u64 = 4;

/// The largest processor time of others' batches afterwards, as a multiple of that before; and of a restart, in seconds.
const MOST_TIMES: f64 = 1.5;
const MOST_RESTART: f64 = 2.0;

/// A signature whose cells are all in the first sixty-fourth of the blocks, which is one row of a filter for a million.
fn aimed(n: u64) -> u128 {
    let half = u128::from(u64::MAX >> 6);
    element(n) & (half << 64 | half)
}

/// Another client, whose signatures are all new.
struct Others {
    http: Http,
    next: u64,
}

impl Others {
    /// Seconds of the server's processor time for a batch: the least of some readings, with the least of its other work.
    fn batch(&mut self, pid: u32) -> f64 {
        let readings = (0..READINGS).map(|_| {
            let before = processor(pid);
            for _ in 0..OF_OTHERS {
                let batch: Vec<_> = (self.next..self.next + BATCH as u64).map(element).collect();
                self.next += BATCH as u64;
                assert_eq!(self.http.report(&batch, 1).status, 200);
            }
            processor(pid) - before
        });
        readings.fold(f64::MAX, f64::min) / OF_OTHERS as f64
    }
}

pub(crate) fn hidden(scale: Scale) -> Outcome {
    let number = if scale == Scale::Full { 1 << 20 } else { 16 * HIDDEN as u64 };
    let server = Server::new("[limits]\nrate = 1000000000\n");
    let [attacker, other] = ["mx1", "mx2"].map(|name| client::own(&server, name));
    let daemon = server.start();
    let mut others = Others { http: Http::new(server.port, &other), next: 1 << 40 };
    let (first, before) = (others.batch(daemon.pid()), memory(&daemon, "VmRSS"));
    let mut http = Http::new(server.port, &attacker);
    let hashes: Vec<u128> = (0..(BATCH - HIDDEN) as u64).map(|n| element(1 << 50 | n)).collect();
    let mut taken = 0;
    for from in (0..number).step_by(HIDDEN) {
        let aimed = (from..).map(aimed);
        let batch: Vec<u128> = hashes
            .chunks(BETWEEN)
            .zip(aimed)
            .flat_map(|(others, one)| others.iter().copied().chain([one]))
            .collect();
        taken += u64::from(http.report(&batch, TIMES).status == 200) * HIDDEN as u64;
    }
    let last = others.batch(daemon.pid());
    let grown = memory(&daemon, "VmRSS").saturating_sub(before);
    assert!(daemon.terminate().success());
    let daemon = server.start();
    let restart = processor(daemon.pid());
    Outcome::new(
        format!(
            "an own client hides {number} signatures that are aimed at few cells among others; {taken} are taken"
        ),
        format!(
            "a batch of another client takes {:.1} ms of processor time before, {:.1} ms after; {} of memory; a restart takes \
             {restart:.2} s",
            1e3 * first,
            1e3 * last,
            mb(grown)
        ),
        // Beside other tests, processor time is no measure.
        grown <= MOST_MEMORY
            && (scale != Scale::Full || (last <= MOST_TIMES * first && restart <= MOST_RESTART)),
    )
}
