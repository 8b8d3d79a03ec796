// SPDX-License-Identifier: GPL-3.0-or-later
//! The filters and the hash maps, filled, and the operations that are timed.

use super::plain::{Ahead, BATCH, Plain};
use super::race::Contender;
use super::traffic::{Kind, Sample, filling};
use bulkmark_filter::{CELLS_AT_CAPACITY, Counting, Refined, Sharded};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The number of elements that a thread passes to a sharded filter at once.
pub(crate) const LARGE_BATCH: usize = 512;

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A full filter, with a given number of cells for each element.
pub(crate) struct Filled {
    filter: RefCell<Refined>,
    /// Its content when it was full, if it is small enough to be restored.
    full: Option<Vec<u8>>,
    added: Cell<usize>,
    capacity: usize,
}

impl Filled {
    pub(crate) fn new(capacity: u32, cells: f64, put_back: bool) -> Self {
        let mut filter = Refined::sized(capacity, cells).expect("memory");
        let mut counts = Vec::new();
        filling(0..capacity.into(), |additions| {
            counts.resize(additions.len(), 0);
            filter.add_batch(additions, &mut counts);
        });
        let full = put_back.then(|| filter.bytes(0..filter.blocks()));
        Self { filter: RefCell::new(filter), full, added: Cell::new(0), capacity: capacity as usize }
    }

    pub(crate) fn memory(&self) -> usize {
        self.filter.borrow().memory()
    }

    pub(crate) fn blocks(&self) -> usize {
        self.filter.borrow().blocks()
    }

    /// Restores a filter after additions of a quarter of its capacity: so it never differs much from when it was full.
    fn going_to_add(&self, elements: usize) {
        self.added.set(self.added.get() + elements);
        if let Some(full) = self.full.as_ref().filter(|_| self.added.get() > self.capacity / 4) {
            let blocks = self.blocks();
            let mut filter = Refined::new(blocks).expect("memory");
            assert!(filter.restore(0..blocks, full));
            self.filter.replace(filter);
            self.added.set(elements);
        }
    }

    fn adding(&self, work: impl Fn(&mut Refined, &Sample)) -> impl Fn(&Sample) -> Duration {
        move |sample| {
            self.going_to_add(sample.elements.len());
            let filter = &mut *self.filter.borrow_mut();
            timed(|| work(filter, sample))
        }
    }

    fn counting(&self, work: impl Fn(&Refined, &Sample)) -> impl Fn(&Sample) -> Duration {
        move |sample| timed(|| work(&self.filter.borrow(), sample))
    }

    /// Returns all four operations on that traffic.
    pub(crate) fn contenders(&self, kind: Kind) -> Vec<Contender<'_>> {
        let name = |operation: &str| format!("filter, {operation}{}", suffix(kind));
        vec![
            Contender::new(name("report+count"), kind, self.adding(add_singly)),
            Contender::new(name("report+count, batch"), kind, self.adding(add_batch)),
            Contender::new(name("count"), kind, self.counting(count_singly)),
            Contender::new(name("count, batch"), kind, self.counting(|f, s| count_batch(f, &s.elements))),
        ]
    }

    /// Returns counting from one thread and from two, each of which has half of the elements.
    pub(crate) fn count_threads(&self) -> Vec<Contender<'_>> {
        let run = move |threads: usize| {
            move |sample: &Sample| {
                let filter = &*self.filter.borrow();
                timed(|| {
                    in_threads(threads, &sample.elements, |elements| count_batch(filter, elements));
                })
            }
        };
        [1, 2]
            .map(|n| Contender::new(format!("filter, count, batch, {n} threads"), Kind::Mixed, run(n)))
            .into()
    }
}

fn suffix(kind: Kind) -> &'static str {
    if kind == Kind::Bulk { ", bulk" } else { "" }
}

fn add_singly(filter: &mut Refined, sample: &Sample) {
    for &(element, times) in &sample.additions {
        black_box(filter.add(element, times));
    }
}

fn add_batch(filter: &mut Refined, sample: &Sample) {
    let mut counts = [0; BATCH];
    for additions in sample.additions.chunks(BATCH) {
        filter.add_batch(additions, &mut counts);
        black_box(&counts);
    }
}

fn count_singly(filter: &Refined, sample: &Sample) {
    for &element in &sample.elements {
        black_box(filter.count(element));
    }
}

fn count_batch(filter: &Refined, elements: &[u128]) {
    let mut counts = [0; BATCH];
    for elements in elements.chunks(BATCH) {
        filter.count_batch(elements, &mut counts);
        black_box(&counts);
    }
}

/// Gives each thread its share of the items; one of them is the current thread.
fn in_threads<T: Sync>(threads: usize, items: &[T], work: impl Fn(&[T]) + Sync) {
    let mut parts = items.chunks(items.len().div_ceil(threads));
    let mine = parts.next();
    std::thread::scope(|scope| {
        for part in parts {
            let work = &work;
            scope.spawn(move || work(part));
        }
        mine.map(&work);
    });
}

/// Returns a filter in parts, filled by two threads.
pub(crate) fn sharded(capacity: u32) -> Sharded {
    let blocks = (f64::from(capacity) * CELLS_AT_CAPACITY / 128.0) as usize;
    let filter = Sharded::new(blocks).expect("memory");
    let half = u64::from(capacity) / 2;
    std::thread::scope(|scope| {
        for part in [0..half, half..capacity.into()] {
            let filter = &filter;
            scope.spawn(move || {
                let mut counts = Vec::new();
                filling(part, |additions| {
                    counts.resize(additions.len(), 0);
                    filter.add_batch(additions, &mut counts);
                });
            });
        }
    });
    filter
}

/// Returns operations on a sharded filter with one thread and two, with batches of both sizes.
pub(crate) fn sharded_threads(filter: &Sharded) -> Vec<Contender<'_>> {
    let mut contenders = Vec::new();
    for batch in [BATCH, LARGE_BATCH] {
        for threads in [1, 2] {
            let name = |operation| format!("sharded, {operation}, batch of {batch}, {threads} threads");
            contenders.push(Contender::new(name("report+count"), Kind::Mixed, move |sample: &Sample| {
                timed(|| {
                    in_threads(threads, &sample.additions, |additions| {
                        let mut counts = [0; LARGE_BATCH];
                        for additions in additions.chunks(batch) {
                            filter.add_batch(additions, &mut counts);
                            black_box(&counts);
                        }
                    });
                })
            }));
            contenders.push(Contender::new(name("count"), Kind::Mixed, move |sample: &Sample| {
                timed(|| {
                    in_threads(threads, &sample.elements, |elements| {
                        let mut counts = [0; LARGE_BATCH];
                        for elements in elements.chunks(batch) {
                            filter.count_batch(elements, &mut counts);
                            black_box(&counts);
                        }
                    });
                })
            }));
        }
    }
    contenders
}

/// A hasher that returns the low 64 bits of a key, which are uniformly distributed.
#[derive(Default)]
pub(crate) struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u128");
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// hashbrown's own hasher.
pub(crate) type Foldhash = hashbrown::DefaultHashBuilder;

/// No hashing.
pub(crate) type NoHash = BuildHasherDefault<PassThrough>;

/// A map from elements to counts.
pub(crate) struct Map<S>(RefCell<HashMap<u128, u8, S>>);

impl<S: BuildHasher + Default> Map<S> {
    pub(crate) fn new(capacity: u32) -> Self {
        let mut map = HashMap::with_capacity_and_hasher(capacity as usize, S::default());
        filling(0..capacity.into(), |additions| {
            for &(element, times) in additions {
                map.insert(element, u8::try_from(times).unwrap_or(u8::MAX));
            }
        });
        Self(RefCell::new(map))
    }

    pub(crate) fn memory(&self) -> usize {
        self.0.borrow().allocation_size()
    }

    pub(crate) fn contenders(&self, hasher: &str) -> Vec<Contender<'_>> {
        let add = |sample: &Sample| {
            let map = &mut *self.0.borrow_mut();
            assert!(map.len() + sample.elements.len() <= map.capacity(), "it would have to grow");
            timed(|| {
                for &element in &sample.elements {
                    let count = map.entry(element).or_insert(0);
                    *count = count.saturating_add(1);
                    black_box(*count);
                }
            })
        };
        let count = |sample: &Sample| {
            let map = &*self.0.borrow();
            timed(|| {
                for element in &sample.elements {
                    black_box(map.get(element).copied().unwrap_or(0));
                }
            })
        };
        vec![
            Contender::new(format!("hashbrown, {hasher}, report+count"), Kind::Mixed, add),
            Contender::new(format!("hashbrown, {hasher}, count"), Kind::Mixed, count),
        ]
    }
}

/// Returns the limits of the machine, and the filter's batch with several kinds of prefetching, on these pages.
pub(crate) fn limits<'a>(plain: &'a RefCell<Plain>, pages: &str) -> Vec<Contender<'a>> {
    let mut contenders = Vec::new();
    let mut push = |name: &str, work: fn(&mut Plain, &Sample)| {
        contenders.push(Contender::new(
            format!("{name}, {pages} pages"),
            Kind::Mixed,
            move |sample: &Sample| {
                let plain = &mut *plain.borrow_mut();
                timed(|| work(plain, sample))
            },
        ));
    };
    push("two lines, read one after the other", |p, s| p.read_dependent(&s.elements));
    push("two lines, read", |p, s| p.read(&s.elements));
    push("two lines, changed", |p, s| p.update(&s.elements, Ahead::Nothing));
    push("two lines, changed, prefetched to level 1", |p, s| p.update(&s.elements, Ahead::First));
    push("two lines, changed, prefetched to level 2", |p, s| p.update(&s.elements, Ahead::Second));
    push("filter's batch, nothing ahead", |p, s| plain_batch(p, s, Ahead::Nothing));
    push("filter's batch, read ahead", |p, s| plain_batch(p, s, Ahead::Read));
    push("filter's batch, prefetched to level 1", |p, s| plain_batch(p, s, Ahead::First));
    push("filter's batch, prefetched to level 2", |p, s| plain_batch(p, s, Ahead::Second));
    contenders
}

#[inline(always)]
fn plain_batch(plain: &mut Plain, sample: &Sample, ahead: Ahead) {
    let mut counts = [0; BATCH];
    for additions in sample.additions.chunks(BATCH) {
        plain.add_batch(additions, &mut counts, ahead);
        black_box(&counts);
    }
}
