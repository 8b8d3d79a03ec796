// SPDX-License-Identifier: GPL-3.0-or-later
//! The accuracy of the refined filter in its default size, and the cost of one operation.
//!
//!     cargo bench --bench accuracy -- [SIGNATURES]
//!
//! A filter made for SIGNATURES (1,000,000 unless given) is filled with 1, 1.5 and 2 times as many. The number of additions of
//! each follows Pareto(1), capped: c times or more with probability 1/c, so 5 % are bulk (20 times or more). All
//! additions come in random order. Then the counts of all signatures, and those of others that were never added, are
//! looked up. The pseudo-random numbers are the same in each run.

#[path = "../tests/common/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is shared with the tests, and a part of it is used here")]
mod random;

use bulkmark_filter::{CELLS_AT_CAPACITY, Counting, Refined};
use random::{Random, element};
use std::hint::black_box;
use std::time::Instant;

const SIGNATURES: u32 = 1_000_000;

/// The largest number of additions of one signature.
const MAX_TIMES: u32 = 100_000;

/// Elements that were never added and are looked up.
const UNSEEN: u64 = 20_000_000;

const THRESHOLD: u32 = 20;

fn main() {
    // `cargo bench` adds `--bench` to the arguments.
    let capacity = std::env::args()
        .skip(1)
        .find(|arg| !arg.starts_with("--"))
        .map_or(SIGNATURES, |arg| arg.replace('_', "").parse().expect("expected a number of signatures"));
    let blocks = Refined::sized(capacity, CELLS_AT_CAPACITY).expect("memory").blocks();
    println!("capacity {capacity} signatures: {blocks} blocks, {} bytes", blocks * 64);
    println!(
        "{:.2} bits of cells for each signature at capacity",
        (blocks * 64 * 8) as f64 / f64::from(capacity)
    );
    println!(
        "{:>5} {:>11} {:>11} {:>10} {:>10} {:>11} {:>12} {:>7} {:>9} {:>8}",
        "load",
        "signatures",
        "additions",
        "too high",
        "false bulk",
        "unseen >= 2",
        "unseen >= 20",
        "ns/add",
        "ns/count",
        "bits/sig"
    );
    for (load, signatures) in [("1", capacity), ("1.5", capacity / 2 * 3), ("2", capacity * 2)] {
        measure(load, signatures, capacity);
    }
}

fn measure(load: &str, signatures: u32, capacity: u32) {
    let mut random = Random::new(1);
    let counts: Vec<u32> = (0..signatures).map(|_| pareto(&mut random)).collect();
    let mut order: Vec<u32> = (0..signatures).flat_map(|i| (0..counts[i as usize]).map(move |_| i)).collect();
    shuffle(&mut order, &mut random);

    let mut filter = Refined::sized(capacity, CELLS_AT_CAPACITY).expect("memory");
    let start = Instant::now();
    for &i in &order {
        filter.add(element(u64::from(i)), 1);
    }
    let ns_per_add = start.elapsed().as_secs_f64() * 1e9 / order.len() as f64;

    let (mut too_high, mut false_bulk, mut below) = (0u32, 0u32, 0u32);
    for (i, &truth) in (0..).zip(&counts) {
        let shown = filter.count(element(i));
        assert!(shown >= truth, "an undercount");
        too_high += u32::from(shown > truth);
        if truth < THRESHOLD {
            below += 1;
            false_bulk += u32::from(shown >= THRESHOLD);
        }
    }

    let (mut two, mut bulk) = (0u32, 0u32);
    let first = u64::from(u32::MAX);
    let start = Instant::now();
    for i in first..first + UNSEEN {
        let shown = black_box(filter.count(element(i)));
        two += u32::from(shown >= 2);
        bulk += u32::from(shown >= THRESHOLD);
    }
    let ns_per_count = start.elapsed().as_secs_f64() * 1e9 / UNSEEN as f64;
    println!(
        "{load:>5} {signatures:>11} {:>11} {:>10.1e} {:>10.1e} {two:>11} {bulk:>12} {ns_per_add:>7.0} {ns_per_count:>9.0} {:>8.2}",
        order.len(),
        f64::from(too_high) / f64::from(signatures),
        f64::from(false_bulk) / f64::from(below),
        filter.memory() as f64 * 8.0 / f64::from(signatures),
    );
}

/// Returns c or more with probability 1/c.
fn pareto(random: &mut Random) -> u32 {
    let u = ((random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    (1.0 / u).min(f64::from(MAX_TIMES)) as u32
}

/// Fisher-Yates.
fn shuffle(items: &mut [u32], random: &mut Random) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i + 1));
    }
}
