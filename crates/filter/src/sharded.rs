// SPDX-License-Identifier: GPL-3.0-or-later
//! A refined filter for several threads.

use crate::counting::Counting;
use crate::params::ParameterError;
use crate::refined::Refined;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of parts of the filter. With so many, two threads rarely need the same.
const SHARDS: usize = 16;

/// The number of elements that are sorted by part together, so that each part's lock is taken once for about 32 of them.
const ROUND: usize = 32 * SHARDS;

/// A refined filter in parts, each with a lock: an element belongs to one of them, with both of its blocks. So each part
/// has one writer at a time, as H1 needs, and writers of different parts do not wait for one another.
///
/// ```
/// use bulkmark_filter::Sharded;
///
/// let (a, b) = (0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835, 0x0123_4567_89AB_CDEF_0246_8ACE_1357_9BDF);
/// let filter = Sharded::new(1000)?;
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| filter.add_batch(&[(a, 1), (b, 2)], &mut [0; 2]));
///     }
/// });
/// let mut counts = [0; 2];
/// filter.count_batch(&[a, b], &mut counts);
/// assert_eq!(counts, [2, 4]);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Sharded {
    shards: [Mutex<Refined>; SHARDS],
}

/// Returns the part of an element: its lowest bits, which no probe of a filter of 2^32 blocks uses.
fn shard(element: u128) -> usize {
    let [low, ..] = element.to_le_bytes();
    usize::from(low) % SHARDS
}

impl Sharded {
    /// Returns an empty filter of at least `blocks` blocks of 64 bytes.
    ///
    /// # Errors
    /// If `blocks` is 0 or above 2^36, or the machine lacks the memory.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        let mut shards = Vec::with_capacity(SHARDS);
        for _ in 0..SHARDS {
            shards.push(Mutex::new(Refined::new(blocks.div_ceil(SHARDS))?));
        }
        let shards = shards.try_into().map_err(|_| ParameterError::memory("blocks", blocks as u64))?;
        Ok(Self { shards })
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Refined> {
        // An addition that panicked may have raised some cells of an element and not others: that lowers no count that was
        // returned.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the parts in their order, each locked while it is held: to write them to disk one by one, and to restore them.
    pub fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Refined>> {
        (0..SHARDS).map(|shard| self.lock(shard))
    }

    /// Like [`Refined::add_batch`], from any thread. The order of additions to different parts is unspecified.
    pub fn add_batch(&self, additions: &[(u128, u32)], counts: &mut [u32]) {
        self.in_parts(additions, counts, |addition| addition.0, Refined::add_batch);
    }

    /// Like [`Refined::count_batch`], from any thread.
    pub fn count_batch(&self, elements: &[u128], counts: &mut [u32]) {
        self.in_parts(
            elements,
            counts,
            |&element| element,
            |filter, elements, counts| filter.count_batch(elements, counts),
        );
    }

    /// Sorts `items` by part, a round at a time, calls `work` for those of each part, and writes the answers to their indices.
    fn in_parts<T: Copy + Default>(
        &self,
        items: &[T],
        counts: &mut [u32],
        element: impl Fn(&T) -> u128,
        work: impl Fn(&mut Refined, &[T], &mut [u32]),
    ) {
        for (items, counts) in items.chunks(ROUND).zip(counts.chunks_mut(ROUND)) {
            let mut ends = [0; SHARDS];
            items.iter().for_each(|item| ends[shard(element(item))] += 1);
            let mut end = 0;
            for slot in &mut ends {
                end += *slot;
                *slot = end;
            }
            // A counting sort, from the last item to the first: so those of a part keep their order.
            let (mut places, mut starts) = ([0; ROUND], ends);
            let mut sorted = [T::default(); ROUND];
            for (item, place) in items.iter().zip(&mut places).rev() {
                let start = &mut starts[shard(element(item))];
                *start -= 1;
                *place = *start;
                sorted[*start] = *item;
            }
            let mut answers = [0; ROUND];
            let mut answer = |part: usize, shard: &mut Refined| {
                let range = starts[part]..ends[part];
                work(shard, &sorted[range.clone()], &mut answers[range]);
            };
            // Parts that another thread holds come last: sleeping and waking takes longer than many additions.
            let mut busy = [false; SHARDS];
            for part in (0..SHARDS).filter(|&part| starts[part] < ends[part]) {
                match self.shards[part].try_lock() {
                    Ok(mut shard) => answer(part, &mut shard),
                    Err(_) => busy[part] = true,
                }
            }
            for part in (0..SHARDS).filter(|&part| busy[part]) {
                answer(part, &mut self.lock(part));
            }
            for (count, &place) in counts.iter_mut().zip(&places) {
                *count = answers[place];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(n: u64) -> u128 {
        u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    /// Four threads add the same elements at the same time: no addition is lost, and each count is at its index.
    #[test]
    fn threads_lose_nothing() {
        const THREADS: u32 = 4;
        let filter = Sharded::new(10_000).unwrap();
        let elements: Vec<u128> = (0..3000).map(element).collect();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (filter, elements) = (&filter, &elements);
                scope.spawn(move || {
                    let mut additions: Vec<_> = (1..).zip(elements).map(|(i, &e)| (e, i % 25)).collect();
                    additions.rotate_left(700 * thread as usize);
                    let mut counts = vec![0; additions.len()];
                    filter.add_batch(&additions, &mut counts);
                    assert!(counts.iter().zip(&additions).all(|(&count, &(_, times))| count >= times));
                });
            }
        });
        // As read from disk, part by part.
        let read = Sharded::new(10_000).unwrap();
        for (part, mut copy) in filter.parts().zip(read.parts()) {
            assert!(copy.restore(0..part.blocks(), &part.bytes(0..part.blocks())));
        }
        let mut counts = vec![0; elements.len()];
        read.count_batch(&elements, &mut counts);
        for (i, count) in (1..).zip(counts) {
            assert_eq!(count, THREADS * (i % 25));
        }
    }
}
