// SPDX-License-Identifier: GPL-3.0-or-later
//! Do all ledgers become equal, despite loss, repetition, cuts, restarts and restored copies? Thousands of random schedules of a
//! federation without a network: its servers and milters are the states that the daemons have, with their files in memory.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

mod faults;
mod fleet;
mod node;
mod schedules;
mod world;

/// The seeds of a test: this number of them, ten thousand in optimised builds, or the range in `SEEDS`, such as `411..412`.
fn seeds(few: u64) -> Range<u64> {
    let Ok(named) = std::env::var("SEEDS") else {
        return 0..if cfg!(debug_assertions) { few } else { 10_000 };
    };
    let (first, end) =
        named.split_once("..").unwrap_or_else(|| panic!("SEEDS is {named:?}, expected 0..100"));
    first.parse().unwrap()..end.parse().unwrap()
}

/// Runs all seeds on all cores.
fn run_all(seeds: Range<u64>, run: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&n| n < seeds.end) {
                    run(seed);
                }
            });
        }
    });
}
