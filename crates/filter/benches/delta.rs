// SPDX-License-Identifier: GPL-3.0-or-later
//! The size of a delta in bytes, and its lower bound.
//!
//!     cargo bench --bench delta
//!
//! A filter of 100 MB gets new signatures, and some that it has already. `bytes` is the size of the coded delta; `bound` the entropy
//! of its changes given the layout: the blocks, the number of cells in each, the cells, and their increments, the latter by the
//! frequencies of sizes and increments in this delta. `cells alone` is the bound for cells that share no
//! blocks, and `listing` 16 bytes of signature and 4 of count for each signature.

#[path = "../tests/common/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is shared with the tests, and a part of it is used here")]
mod random;

use bulkmark_filter::{CELLS_AT_CAPACITY, CELLS_PER_BLOCK, Counting, Delta, Refined};
use random::element;
use std::collections::HashMap;
use std::time::Instant;

/// 20 million signatures: 100 MB.
const CAPACITY: u32 = 20_000_000;

fn main() {
    println!(
        "{:>10} {:>9} {:>9} {:>9} {:>6} {:>12} {:>11} {:>9} {:>10} {:>10}",
        "signatures",
        "cells",
        "bytes",
        "bound",
        "ratio",
        "cells alone",
        "listing",
        "bytes/sig",
        "encode ms",
        "decode ms"
    );
    for signatures in [167, 1_000, 10_000, 100_000, 167_000] {
        measure(signatures);
    }
}

fn measure(signatures: u64) {
    let old = Refined::sized(CAPACITY, CELLS_AT_CAPACITY).expect("memory");
    let mut new = Refined::sized(CAPACITY, CELLS_AT_CAPACITY).expect("memory");
    for i in 0..signatures {
        // One in ten was seen more than once: twice, three times, and so on.
        let times = if i % 10 == 0 { 2 + i / 10 % 4 } else { 1 };
        new.add(element(i), u32::try_from(times).expect("small"));
    }
    let delta = Delta::between(&old, &new).expect("of one size");
    let start = Instant::now();
    let bytes = delta.encode();
    let encode = start.elapsed();
    let start = Instant::now();
    assert_eq!(Delta::decode(&bytes, new.blocks(), delta.len()).expect("valid"), delta);
    let decode = start.elapsed();
    let bound = entropy(&delta, new.blocks()) / 8.0;
    let cells = (new.blocks() * CELLS_PER_BLOCK) as f64;
    let alone = (log2_choose(cells, delta.len() as f64) + increments(&delta)) / 8.0;
    println!(
        "{signatures:>10} {:>9} {:>9} {bound:>9.0} {:>6.3} {alone:>12.0} {:>11} {:>9.2} {:>10.1} {:>10.1}",
        delta.len(),
        bytes.len(),
        bytes.len() as f64 / bound,
        signatures * 20,
        bytes.len() as f64 / signatures as f64,
        encode.as_secs_f64() * 1e3,
        decode.as_secs_f64() * 1e3
    );
}

/// Returns the entropy of the changes in bits, given the layout.
fn entropy(delta: &Delta, blocks: usize) -> f64 {
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for (index, _) in delta.changes() {
        *sizes.entry(index / CELLS_PER_BLOCK).or_default() += 1;
    }
    let changed = sizes.len() as f64;
    let which_blocks = log2_choose(blocks as f64, changed);
    let which_cells: f64 = sizes.values().map(|&n| log2_choose(CELLS_PER_BLOCK as f64, n as f64)).sum();
    which_blocks + frequencies(sizes.values().copied()) + which_cells + increments(delta)
}

/// Returns the entropy of the increments in bits: a signature's cells in one block mostly grow alike, so each is given the previous one.
fn increments(delta: &Delta) -> f64 {
    let mut before = (usize::MAX, 0);
    let (mut first, mut same, mut other) = (Vec::new(), Vec::new(), Vec::new());
    for (index, by) in delta.changes() {
        let block = index / CELLS_PER_BLOCK;
        if block != before.0 {
            first.push(by as usize);
        } else {
            same.push(usize::from(by == before.1));
            if by != before.1 {
                other.push(by as usize);
            }
        }
        before = (block, by);
    }
    [first, same, other].into_iter().map(|values| frequencies(values.into_iter())).sum()
}

/// Returns the entropy of a sequence of values in bits, by their own frequencies.
fn frequencies(values: impl Iterator<Item = usize>) -> f64 {
    let mut counts: HashMap<usize, f64> = HashMap::new();
    let mut n = 0.0;
    for value in values {
        *counts.entry(value).or_default() += 1.0;
        n += 1.0;
    }
    counts.values().map(|c| c * (n / c).log2()).sum()
}

/// Returns the logarithm of a binomial coefficient, by Stirling's formula for large ones.
fn log2_choose(n: f64, k: f64) -> f64 {
    let ln_factorial = |x: f64| {
        if x < 200.0 {
            (2..=x as u32).map(|i| f64::from(i).ln()).sum()
        } else {
            x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        }
    };
    (ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)) / std::f64::consts::LN_2
}
