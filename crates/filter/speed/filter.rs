// SPDX-License-Identifier: GPL-3.0-or-later
//! The speed of the filter, compared with a hash map and with the limits of the machine's memory.
//!
//!     make bench-filter
//!
//! Filters of 5 MB, 100 MB and 1 GB are filled to their capacity; the number of additions of each element follows Pareto(1), as
//! in the bench `accuracy`. Then half of the elements that are reported or counted are in the filter, the others not.
//! `bulk` is traffic in which every element is in the filter with a count beyond 15. All times are for one element. A
//! batch is 32 elements. Contenders run in turn; the ratios in the last table are medians over such rounds. criterion
//! measures the same operations of the filter once more, one after the other, and stores the results.

#[path = "filter/contenders.rs"]
mod contenders;
#[path = "filter/plain.rs"]
mod plain;
#[path = "filter/race.rs"]
mod race;
#[path = "../tests/common/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is shared with the tests, and a part of it is used here")]
mod random;
#[path = "filter/table.rs"]
mod table;
#[path = "filter/traffic.rs"]
mod traffic;

use bulkmark_filter::CELLS_AT_CAPACITY;
use contenders::{Filled, Foldhash, Map, NoHash, limits, sharded, sharded_threads};
use criterion::Criterion;
use plain::Plain;
use race::{Contender, Results, Rounds, race, with_criterion};
use std::cell::RefCell;
use std::time::Duration;
use table::{DABLOOMS, Table};
use traffic::{Kind, Traffic};

/// Elements of the filters of 5 MB, 100 MB and 1 GB.
const SMALL: u32 = 1_000_000;
const MIDDLE: u32 = 20_000_000;
const LARGE: u32 = 240_000_000;

/// The number of elements of the largest hash map, and of the filter that is compared with it.
const MAP: u32 = 50_000_000;

/// The cells per element in that filter: so few that it takes a tenth of the map's memory.
const CELLS_BESIDE_MAP: f64 = 7.1;

/// Many short rounds: most of them end before the kernel gives the processor to another process.
const ROUNDS: Rounds = Rounds { rounds: 31, elements: 50_000, untimed: 50_000 };

/// A filter of 5 MB is used from the cache. Other filters, and the maps, evict it: before a round, enough operations run to bring most
/// of it back.
const SMALL_ROUNDS: Rounds = Rounds { rounds: 20, elements: 10_000, untimed: 60_000 };

/// So long that starting a thread does not influence the result.
const THREAD_ROUNDS: Rounds = Rounds { rounds: 15, elements: 1_000_000, untimed: 1_000_000 };

fn main() {
    // `cargo test --benches` runs this, too, without `--bench`: then a short run is enough.
    if !std::env::args().any(|arg| arg == "--bench") {
        with_map("5 MB", SMALL, Rounds { rounds: 1, elements: 1000, untimed: 1000 }, None);
        return;
    }
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .without_plots()
        .configure_from_args();
    let mut table = Table::default();
    let small = with_map("5 MB", SMALL, SMALL_ROUNDS, Some(&mut criterion));
    table.additions("5 MB", &small, DABLOOMS[0]);
    let middle = with_map("100 MB", MIDDLE, ROUNDS, Some(&mut criterion));
    table.additions("100 MB", &middle, DABLOOMS[1]);
    large(&mut table, &mut criterion);
    threads(&mut table);
    table.print();
}

/// Measures a filter and hash maps with the same number of elements.
fn with_map(title: &str, capacity: u32, rounds: Rounds, criterion: Option<&mut Criterion>) -> Results {
    let filled = Filled::new(capacity, CELLS_AT_CAPACITY, true);
    let results = {
        let (no_hash, foldhash) = (Map::<NoHash>::new(capacity), Map::<Foldhash>::new(capacity));
        println!(
            "\n{title}: {} elements; {} MB, hash map {} MB",
            capacity,
            megabytes(filled.memory()),
            megabytes(no_hash.memory())
        );
        let mut contenders = filled.contenders(Kind::Mixed);
        contenders.extend(filled.contenders(Kind::Bulk));
        contenders.extend(no_hash.contenders("no hashing"));
        contenders.extend(foldhash.contenders("foldhash"));
        race(title, &mut contenders, &mut Traffic::new(capacity.into()), rounds)
    };
    if let Some(criterion) = criterion {
        measure(criterion, title, &filled, capacity, rounds);
    }
    results
}

fn measure(criterion: &mut Criterion, title: &str, filled: &Filled, capacity: u32, rounds: Rounds) {
    let mut traffic = Traffic::new(capacity.into());
    with_criterion(criterion, title, &mut filled.contenders(Kind::Mixed), &mut traffic, rounds);
}

/// Measures the filter of 1 GB against the machine's limits, and hash maps against a filter of their size.
fn large(table: &mut Table, criterion: &mut Criterion) {
    let filled = Filled::new(LARGE, CELLS_AT_CAPACITY, false);
    println!("\n1 GB: {LARGE} elements; {} MB", megabytes(filled.memory()));
    let mut traffic = Traffic::new(LARGE.into());
    {
        let pages = [true, false].map(|huge| RefCell::new(Plain::new(filled.blocks(), huge)));
        let mut contenders = filled.contenders(Kind::Mixed);
        contenders.extend(filled.contenders(Kind::Bulk));
        contenders.extend(limits(&pages[0], "huge"));
        contenders.extend(limits(&pages[1], "small"));
        let results = race("1 GB", &mut contenders, &mut traffic, ROUNDS);
        table.additions("1 GB", &results, DABLOOMS[2]);
        table.limits(&results);
    }
    maps(table);
    let mut contenders: Vec<Contender<'_>> = filled.contenders(Kind::Mixed);
    with_criterion(criterion, "1 GB", &mut contenders, &mut traffic, ROUNDS);
    drop(contenders);
    let results = race("1 GB, threads", &mut filled.count_threads(), &mut traffic, THREAD_ROUNDS);
    table.count_threads(&results);
}

fn maps(table: &mut Table) {
    let filled = Filled::new(MAP, CELLS_BESIDE_MAP, false);
    let (no_hash, foldhash) = (Map::<NoHash>::new(MAP), Map::<Foldhash>::new(MAP));
    let mut contenders = filled.contenders(Kind::Mixed);
    contenders.extend(no_hash.contenders("no hashing"));
    contenders.extend(foldhash.contenders("foldhash"));
    let results = race("50 million", &mut contenders, &mut Traffic::new(MAP.into()), ROUNDS);
    table.maps(&results, filled.memory(), no_hash.memory());
}

fn threads(table: &mut Table) {
    let filter = sharded(LARGE);
    let mut traffic = Traffic::new(LARGE.into());
    let results = race("1 GB, sharded", &mut sharded_threads(&filter), &mut traffic, THREAD_ROUNDS);
    table.sharded(&results);
}

/// Returns millions of bytes.
fn megabytes(bytes: usize) -> usize {
    bytes / 1_000_000
}
