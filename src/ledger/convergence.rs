// SPDX-License-Identifier: GPL-3.0-or-later
//! Do all ledgers become equal, whatever is lost, repeated, cut off or restarted? Thousands of random schedules of a
//! federation without network and disk: servers and caches are the parts that the daemons are made of.

use crate::ledger::history::chunks::{CHUNK_BLOCKS, blocks_of};
use crate::ledger::history::update::Update;
use crate::ledger::history::vector::{Mark, Origin, Vector};
use crate::ledger::settings::Settings;
use crate::ledger::state::generations::Generations;
use crate::ledger::state::local::Local;
use crate::ledger::state::merged::MergedCounts;
use crate::ledger::state::receipts::{Receipt, Receipts, Reporter};
use crate::ledger::state::spool::{Spool, Waiting};
use crate::signature::Signature;
use bulkmark_filter::Counting;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

const NOW: u64 = 20_000 * 86_400 + 1000;
const SIGNATURES: usize = 12;

fn settings() -> Settings {
    Settings { capacity: NonZeroU32::new(2000).unwrap(), ..Settings::default() }
}

fn signature(number: usize) -> Signature {
    let [a, b] = [number as u64, number as u64 + 1000].map(|n| {
        let z = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    });
    Signature::from_bytes((u128::from(a) << 64 | u128::from(b)).to_le_bytes())
}

/// Whose batch, its number, its receipt, and what was in it.
type Counted = (Reporter, u64, Receipt, Vec<(Signature, u32)>);

/// What a server has on disk: the reports in order, and after how many of them it cut.
#[derive(Default)]
struct Journal {
    batches: Vec<Counted>,
    cuts: Vec<usize>,
}

struct Server {
    name: String,
    origin: Origin,
    own: Local,
    others: MergedCounts,
    acknowledged: Receipts,
    journal: Journal,
    /// The updates of all origins, its own among them.
    updates: BTreeMap<Origin, Vec<Vec<u8>>>,
}

impl Server {
    fn new(number: u64) -> Self {
        let origin = Origin(number + 100);
        Self {
            name: format!("server {number}"),
            origin,
            own: Local::recording(Generations::new(&settings()), origin, Mark::default()),
            others: MergedCounts::new(&settings()),
            acknowledged: Receipts::default(),
            journal: Journal::default(),
            updates: BTreeMap::new(),
        }
    }

    fn take(&mut self, reporter: &Reporter, number: u64, reports: &[(Signature, u32)]) -> Option<Receipt> {
        match self.acknowledged.find(reporter, number) {
            // An old copy that the network delivered late: nobody waits for the answer.
            Err(_) => return None,
            Ok(Some(receipt)) => return Some(receipt),
            Ok(None) => (),
        }
        let receipt = Receipt { origin: self.origin, version: self.own.next_version() };
        self.journal.batches.push((reporter.clone(), number, receipt, reports.to_vec()));
        self.count(reports);
        assert_eq!(self.acknowledged.set(reporter.clone(), number, receipt), None);
        Some(receipt)
    }

    fn count(&mut self, reports: &[(Signature, u32)]) {
        for &(signature, times) in reports {
            let window = self.own.generations.window_at(NOW);
            self.own.add(window, 0, signature, times).unwrap();
        }
    }

    fn cut(&mut self) {
        if let Some((_, bytes)) = self.own.cut() {
            self.journal.cuts.push(self.journal.batches.len());
            self.updates.entry(self.origin).or_default().push(bytes);
        }
    }

    /// Everything in memory is gone and comes back from disk; what was cut before must come out the same.
    fn restart(&mut self) {
        self.own = Local::recording(Generations::new(&settings()), self.origin, Mark::default());
        self.acknowledged = Receipts::default();
        let journal = std::mem::take(&mut self.journal);
        let written = self.updates.get(&self.origin).map_or(&[][..], |updates| updates);
        let mut cuts = journal.cuts.iter().zip(written).peekable();
        for (i, (reporter, number, receipt, reports)) in journal.batches.iter().enumerate() {
            while let Some((_, bytes)) = cuts.next_if(|(at, _)| **at == i) {
                assert_eq!(&self.own.cut().unwrap().1, bytes);
            }
            for &(signature, times) in reports {
                let window = self.own.generations.window_at(NOW);
                self.own.add(window, 0, signature, times).unwrap();
            }
            assert_eq!(self.acknowledged.set(reporter.clone(), *number, *receipt), None);
        }
        for (_, bytes) in cuts {
            assert_eq!(&self.own.cut().unwrap().1, bytes);
        }
        self.journal = journal;
    }

    fn vector(&self) -> Vector {
        let mut vector = self.others.vector().clone();
        vector.set(self.origin, self.own.mark());
        vector
    }

    /// At most `most` updates that a holder of `vector` lacks, after one that it has.
    fn since(&self, vector: &Vector, most: usize) -> Vec<Vec<u8>> {
        let from = |origin| usize::try_from(vector.get(origin).version.saturating_sub(1)).unwrap();
        self.updates
            .iter()
            .flat_map(|(&origin, all)| all.iter().skip(from(origin)).take(most))
            .cloned()
            .collect()
    }

    fn pull(&mut self, updates: &[Vec<u8>]) {
        for bytes in updates {
            let update = Update::decode(bytes).unwrap();
            if update.origin() != self.origin
                && self
                    .others
                    .apply(&update, bytes, NOW)
                    .is_ok_and(|applied| applied == crate::ledger::state::merged::Applied::New)
            {
                self.updates.entry(update.origin()).or_default().push(bytes.clone());
            }
        }
    }

    fn shows(&self, signature: Signature) -> u32 {
        self.own.generations.count(signature, NOW) + self.others.count(signature, NOW)
    }

    /// All cells, its own and the others'.
    fn cells(&self) -> Vec<u8> {
        let mut sum = MergedCounts::new(&settings());
        for generation in self.own.generations.iter() {
            for (number, slice) in (0..).zip(generation.row.slices()) {
                for chunk in 0..slice.filter.blocks().div_ceil(CHUNK_BLOCKS) {
                    let bytes = slice.filter.bytes(blocks_of(chunk, slice.filter.blocks()));
                    let chunk = u32::try_from(chunk).unwrap();
                    assert!(sum.merge_chunk(generation.window, 2000, number, chunk, &bytes).unwrap());
                }
            }
        }
        merge(&mut sum, &self.others);
        bytes_of(&sum)
    }
}

fn merge(sum: &mut MergedCounts, view: &MergedCounts) {
    for layer in view.layers() {
        for (number, slice) in (0..).zip(&layer.slices) {
            let bytes = slice.bytes(0..slice.blocks());
            assert!(sum.merge_chunk(layer.window, layer.capacity, number, 0, &bytes).unwrap());
        }
    }
}

fn bytes_of(view: &MergedCounts) -> Vec<u8> {
    view.layers()
        .iter()
        .flat_map(|layer| &layer.slices)
        .flat_map(|slice| slice.bytes(0..slice.blocks()))
        .collect()
}

struct Cache {
    reporter: Reporter,
    view: MergedCounts,
    spool: Spool,
    /// What was reported here.
    truth: [u32; SIGNATURES],
}

impl Cache {
    fn new(number: u64) -> Self {
        let reporter = Reporter { client: format!("client {}", number / 2), spool: number };
        let view = MergedCounts::new(&settings());
        Self { reporter, view, spool: Spool::default(), truth: [0; SIGNATURES] }
    }

    fn shows(&self, signature: Signature) -> u32 {
        self.view.count(signature, NOW) + self.spool.pending(signature)
    }

    fn report(&mut self, number: usize, times: u32) {
        self.truth[number] += times;
        self.spool.push(Waiting { signature: signature(number), times, at: NOW });
    }

    /// Sends one batch; the request may come twice or not at all, and so may the answer.
    fn send(&mut self, server: &mut Server, chance: &mut impl FnMut(u32) -> bool) {
        let open = self.spool.open(&server.name);
        let Some(batch) = open.or_else(|| self.spool.begin(&server.name)) else { return };
        if chance(20) {
            return;
        }
        let receipt = server.take(&self.reporter, batch.number, &batch.reports);
        if chance(20) {
            server.take(&self.reporter, batch.number, &batch.reports);
        }
        if chance(20) {
            return;
        }
        if let Some(receipt) = receipt {
            self.spool.acknowledge(batch.number, receipt);
            self.spool.settle(self.view.vector());
        }
    }

    fn pull(&mut self, updates: &[Vec<u8>]) {
        for bytes in updates {
            let _ = self.view.apply(&Update::decode(bytes).unwrap(), bytes, NOW);
        }
        self.spool.settle(self.view.vector());
    }

    fn restart(&mut self) {
        let before = self.spool.clone();
        self.spool = self.spool.reopened();
        self.spool.settle(self.view.vector());
        assert_eq!(self.spool, before);
    }
}

fn run(seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = move |n: u32| random.next_u32() % n;
    let one_of = |n: usize, below: &mut dyn FnMut(u32) -> u32| below(u32::try_from(n).unwrap()) as usize;
    let mut servers: Vec<_> = (0..1 + u64::from(below(4))).map(Server::new).collect();
    let mut caches: Vec<_> = (0..1 + u64::from(below(4))).map(Cache::new).collect();
    for _ in 0..below(400) {
        let (s, c) = (one_of(servers.len(), &mut below), one_of(caches.len(), &mut below));
        match below(20) {
            0..7 => caches[c].report(one_of(SIGNATURES, &mut below), 1 + below(5) * below(8)),
            7..11 => caches[c].send(&mut servers[s], &mut |percent| below(100) < percent),
            11..13 => servers[s].cut(),
            13..16 => {
                let updates = servers[s].since(caches[c].view.vector(), below(4) as usize);
                caches[c].pull(&updates);
            }
            16..19 => {
                let other = one_of(servers.len(), &mut below);
                let updates = servers[s].since(&servers[other].vector(), below(4) as usize);
                servers[other].pull(&updates);
            }
            _ if below(2) == 0 => servers[s].restart(),
            _ => caches[c].restart(),
        }
        let truth: Vec<u32> =
            (0..SIGNATURES).map(|n| caches.iter().map(|cache| cache.truth[n]).sum()).collect();
        for cache in &caches {
            for (n, &all) in truth.iter().enumerate() {
                // What is counted and has lost its answer shows twice here, until it is sent again.
                let merged = cache.view.count(signature(n), NOW);
                assert!(
                    cache.shows(signature(n)) >= cache.truth[n],
                    "seed {seed}: an undercount of own reports"
                );
                assert!(merged <= all, "seed {seed}: something is counted twice");
            }
        }
    }
    heal(&mut servers, &mut caches);
    for n in 0..SIGNATURES {
        let truth: u32 = caches.iter().map(|cache| cache.truth[n]).sum();
        assert!(
            servers.iter().all(|server| server.shows(signature(n)) == truth),
            "seed {seed}: a server is off"
        );
        assert!(caches.iter().all(|cache| cache.shows(signature(n)) == truth), "seed {seed}: a cache is off");
    }
    let cells = servers[0].cells();
    assert!(servers.iter().all(|server| server.cells() == cells), "seed {seed}: servers differ");
    assert!(caches.iter().all(|cache| bytes_of(&cache.view) == cells), "seed {seed}: caches differ");
    assert!(caches.iter().all(|cache| cache.spool.len() == 0), "seed {seed}: reports are left");
}

/// Everybody talks to everybody, and nothing is lost any more, until nothing changes.
fn heal(servers: &mut [Server], caches: &mut [Cache]) {
    for _ in 0..3 {
        for cache in &mut *caches {
            for server in &mut *servers {
                for _ in 0..100 {
                    cache.send(server, &mut |_| false);
                }
            }
        }
        servers.iter_mut().for_each(Server::cut);
        for to in 0..servers.len() {
            for from in 0..servers.len() {
                let updates = servers[from].since(&servers[to].vector(), usize::MAX);
                servers[to].pull(&updates);
            }
        }
        for cache in &mut *caches {
            let updates = servers[0].since(cache.view.vector(), usize::MAX);
            cache.pull(&updates);
        }
    }
}

#[test]
fn all_ledgers_become_equal() {
    let seeds: u64 = if cfg!(debug_assertions) { 300 } else { 10_000 };
    (0..seeds).for_each(run);
}
