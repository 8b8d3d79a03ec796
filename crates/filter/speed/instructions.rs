// SPDX-License-Identifier: GPL-3.0-or-later
//! The number of instructions of 32 operations of the filter.
//!
//!     make bench-instructions
//!
//! Unlike times they are the same in each run, and show a change at once. They do not include waiting for memory. A
//! filter for 10,000 elements holds as many, each once, and 32 more with a count of 100, the bulk. `plain` are 16 of the
//! former and 16 that it does not hold.

#[path = "../tests/common/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is shared with the tests, and a part of it is used here")]
mod random;

use bulkmark_filter::{CELLS_AT_CAPACITY, Counting, Refined};
use gungraun::prelude::*;
use random::element;
use std::hint::black_box;

const HELD: u64 = 10_000;
const BATCH: usize = 32;

/// A filter, additions and lookups for it, and room for the counts.
type Work = (Refined, [(u128, u32); BATCH], [u128; BATCH], [u32; BATCH]);

/// Returns work with the elements from this number on.
fn from(first: u64) -> Work {
    let mut filter = Refined::sized(10_000, CELLS_AT_CAPACITY).expect("memory");
    for number in 0..HELD {
        filter.add(element(number), 1);
    }
    let bulk = 2 * HELD;
    for number in bulk..bulk + BATCH as u64 {
        filter.add(element(number), 100);
    }
    let elements: [u128; BATCH] = std::array::from_fn(|i| element(first + i as u64));
    (filter, elements.map(|element| (element, 1)), elements, [0; BATCH])
}

fn plain() -> Work {
    from(HELD - BATCH as u64 / 2)
}

fn bulk() -> Work {
    from(2 * HELD)
}

#[library_benchmark]
#[bench::plain(plain())]
#[bench::bulk(bulk())]
fn add(mut work: Work) -> Work {
    for (element, times) in work.1 {
        black_box(work.0.add(element, times));
    }
    work
}

#[library_benchmark]
#[bench::plain(plain())]
#[bench::bulk(bulk())]
fn count(work: Work) -> Work {
    for element in work.2 {
        black_box(work.0.count(element));
    }
    work
}

#[library_benchmark]
#[bench::plain(plain())]
#[bench::bulk(bulk())]
fn add_batch(mut work: Work) -> Work {
    work.0.add_batch(&work.1, &mut work.3);
    work
}

#[library_benchmark]
#[bench::plain(plain())]
#[bench::bulk(bulk())]
fn count_batch(mut work: Work) -> Work {
    work.0.count_batch(&work.2, &mut work.3);
    work
}

library_benchmark_group!(name = filter, benchmarks = [add, count, add_batch, count_batch]);
main!(library_benchmark_groups = filter);
