// SPDX-License-Identifier: GPL-3.0-or-later
//! The costs of an addition and a question in the shipped filter as it outgrows the caches.

use super::sample::element;
use bulkmark_filter::{Counting, ParameterError, Refined, Sharded};
use std::hint::black_box;
use std::time::Instant;

/// Bytes of cells of the measured filters, from a day of a million messages to all of a server's counts.
pub const FILTER_BYTES: [u64; 7] =
    [5_000_000, 20_000_000, 100_000_000, 500_000_000, 1_000_000_000, 2_000_000_000, 4_000_000_000];

/// Bytes of a block.
const BLOCK: usize = 64;

/// Each page is written before a measurement, so that the kernel has allocated it.
const PAGE_BLOCKS: usize = 4096 / BLOCK;

/// Elements that are added or asked for together.
const BATCH: usize = 512;

/// Batches of one measurement.
const BATCHES: u64 = 2000;

/// Each measurement is made so many times, and the best one counts: the others were disturbed.
const REPEATS: u64 = 3;

/// Nanoseconds for an addition and for a question.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// For an element that is added once.
    pub add: f64,
    /// For an element that is looked up.
    pub count: f64,
}

/// The costs in a filter of one size. Elements are different all the time, so that hardly any block is in a cache that
/// is smaller than the filter; making their 128 bits is part of the time.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// Bytes of cells.
    pub bytes: u64,
    /// One by one.
    pub single: Cost,
    /// In batches of 512.
    pub batch: Cost,
    /// In batches of 512 in a filter in parts, each with a lock, one thread.
    pub shared: Cost,
    /// The same with two threads: nanoseconds of the clock for each element of both.
    pub two_threads: Cost,
}

/// Measures filters of `bytes` bytes.
///
/// # Errors
/// When the machine lacks the memory.
pub fn speed(bytes: u64, seed: u64) -> Result<Speed, ParameterError> {
    Work { seed, batches: BATCHES }.speed(bytes)
}

/// The elements of a measurement.
#[derive(Clone, Copy)]
struct Work {
    seed: u64,
    batches: u64,
}

impl Work {
    fn speed(self, bytes: u64) -> Result<Speed, ParameterError> {
        let blocks = usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(BLOCK);
        let (single, batch) = alone(blocks, self)?;
        let (shared, two_threads) = in_parts(blocks, self)?;
        Ok(Speed { bytes, single, batch, shared, two_threads })
    }

    /// The elements, a batch at a time, all different from those of a measurement of another number.
    fn elements(self, measurement: u64) -> impl Iterator<Item = [u128; BATCH]> {
        let first = (measurement + 1) << 32;
        let of = move |batch, i: usize| element(self.seed, first + batch * BATCH as u64 + i as u64);
        (0..self.batches).map(move |batch| std::array::from_fn(|i| of(batch, i)))
    }

    /// The best time of one element, in nanoseconds; `work` gets the number of the measurement.
    fn best(self, mut work: impl FnMut(u64)) -> f64 {
        let time = |repeat| {
            let start = Instant::now();
            work(repeat);
            start.elapsed().as_secs_f64() * 1e9 / (self.batches * BATCH as u64) as f64
        };
        (0..REPEATS).map(time).fold(f64::INFINITY, f64::min)
    }
}

fn alone(blocks: usize, work: Work) -> Result<(Cost, Cost), ParameterError> {
    let mut filter = Refined::new(blocks)?;
    for block in (0..blocks).step_by(PAGE_BLOCKS) {
        filter.add(in_block(block, blocks, 0), 1);
    }
    let mut counts = [0; BATCH];
    let add = work.best(|repeat| {
        for element in work.elements(repeat).flatten() {
            black_box(filter.add(element, 1));
        }
    });
    let count = work.best(|repeat| {
        for element in work.elements(100 + repeat).flatten() {
            black_box(filter.count(element));
        }
    });
    let single = Cost { add, count };
    let add = work.best(|repeat| {
        for elements in work.elements(200 + repeat) {
            filter.add_batch(&elements.map(|element| (element, 1)), &mut counts);
        }
    });
    let count = work.best(|repeat| {
        for elements in work.elements(300 + repeat) {
            filter.count_batch(&elements, &mut counts);
        }
    });
    black_box(counts);
    Ok((single, Cost { add, count }))
}

fn in_parts(blocks: usize, work: Work) -> Result<(Cost, Cost), ParameterError> {
    /// Parts of the filter, which the lowest bits of an element choose.
    const PARTS: usize = 16;
    let filter = Sharded::new(blocks)?;
    let of_part = blocks.div_ceil(PARTS);
    for block in (0..of_part).step_by(PAGE_BLOCKS) {
        let additions: [_; PARTS] = std::array::from_fn(|part| (in_block(block, of_part, part), 1));
        filter.add_batch(&additions, &mut [0; PARTS]);
    }
    let add = |measurement| {
        let mut counts = [0; BATCH];
        for elements in work.elements(measurement) {
            filter.add_batch(&elements.map(|element| (element, 1)), &mut counts);
        }
        black_box(counts);
    };
    let count = |measurement| {
        let mut counts = [0; BATCH];
        for elements in work.elements(measurement) {
            filter.count_batch(&elements, &mut counts);
        }
        black_box(counts);
    };
    let shared =
        Cost { add: work.best(|repeat| add(400 + repeat)), count: work.best(|repeat| count(500 + repeat)) };
    let two = |one: &(dyn Fn(u64) + Sync), measurement| {
        std::thread::scope(|scope| {
            scope.spawn(|| one(measurement));
            one(measurement + 50);
        });
    };
    let add = work.best(|repeat| two(&add, 600 + repeat)) / 2.0;
    let count = work.best(|repeat| two(&count, 700 + repeat)) / 2.0;
    Ok((shared, Cost { add, count }))
}

/// An element with both blocks equal to this one, and these lowest bits.
fn in_block(block: usize, blocks: usize, lowest: usize) -> u128 {
    // The least number whose fraction of 2^64 is in the block, and a little more.
    let word = ((block as u128) << 64).div_ceil(blocks as u128);
    word << 64 | (word + 0x100) & !0xFF | lowest as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_filter::Probe;

    #[test]
    fn every_page_is_written() {
        for blocks in [1, 7, 1000, 62_500_000] {
            for block in [0, blocks / 3, blocks - 1] {
                let probe = Probe::new(in_block(block, blocks, 5), blocks);
                assert_eq!(probe.blocks, [block, block], "of {blocks}");
            }
        }
    }

    #[test]
    fn a_small_filter_is_measured() {
        let speed = Work { seed: 1, batches: 3 }.speed(10_000).unwrap();
        for cost in [speed.single, speed.batch, speed.shared, speed.two_threads] {
            assert!(cost.add > 0.0 && cost.count > 0.0);
        }
    }
}
