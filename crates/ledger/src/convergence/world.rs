// SPDX-License-Identifier: GPL-3.0-or-later
//! A federation: servers that pull from one another, milters that report and pull, and possible failures.

use super::node::{DAY, Node};
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::vector::Origin;
use bulkmark_counts::history::window::USER_REPORT_WINDOW;
use bulkmark_counts::settings::{Federation, Role, Settings};
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::limited::Limits;
use bulkmark_counts::state::receipts::{Receipt, Reporter};
use bulkmark_counts::state::report::Report;
use bulkmark_counts::state::server::NotCounted;
use bulkmark_counts::state::spool::Outgoing;
use bulkmark_types::{FederationKey, Signature, nomination};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::time::Duration;

/// Signatures that many reports have in common. Each report also has a unique one, by which it is traced.
const SHARED: usize = 12;

/// Windows that count at a time.
const RETENTION: u64 = 3;

/// Capacities of windows: the first for all members, all three in a federation whose capacity is being raised.
const CAPACITIES: [u32; 3] = [2000, 3000, 5000];

pub(super) fn signature(number: usize) -> Signature {
    let [a, b] = [number as u64, number as u64 + 1_000_000].map(|n| {
        let z = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    });
    let signature = Signature::from_bytes((u128::from(a) << 64 | u128::from(b)).to_le_bytes());
    // One in four is a user report, in separate windows.
    if number % 4 == 3 { nomination(&FederationKey::public(), signature) } else { signature }
}

/// A report: the number of its unique signature, and how often it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) own: Signature,
    pub(super) times: u32,
    /// The time of the report.
    pub(super) at: u64,
    /// The number of servers that counted it without knowing that it was counted.
    pub(super) taken: u32,
    /// The count that servers showed when one of them was restored from an old copy.
    pub(super) floor: u32,
}

/// A milter, and its expected state.
pub(super) struct Milter {
    pub(super) node: Node,
    pub(super) client: String,
    /// Reports (indices of `World::made`) that it has and must show: neither lost with a file nor dropped.
    pub(super) has: BTreeSet<usize>,
    /// Those of them that were in its file at the last start.
    found: BTreeSet<usize>,
    /// Whether a server noticed, since the start, that its file is an old copy.
    noticed: bool,
    copy: Option<(Vec<u8>, BTreeSet<usize>)>,
}

/// A server.
pub(super) struct Server {
    pub(super) node: Node,
    copy: Option<Vec<u8>>,
    /// Whether other servers cannot reach it, nor it them.
    pub(super) apart: bool,
}

pub(super) struct World {
    pub(super) seed: u64,
    random: Xoshiro256PlusPlus,
    pub(super) servers: Vec<Server>,
    pub(super) milters: Vec<Milter>,
    /// All reports made.
    pub(super) made: Vec<Made>,
    by_signature: HashMap<Signature, usize>,
    /// Whether servers are restored from old copies, which weakens some conditions.
    pub(super) servers_forget: bool,
    /// For each of the two clients, whether it has limits; these are so high that all its reports count.
    limited: [bool; 2],
    /// Whether any reports were withdrawn, so that counts fell.
    pub(super) withdrew: bool,
}

impl World {
    pub(super) fn new(seed: u64, servers_forget: bool) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let least = if servers_forget { 2 } else { 1 };
        let servers = least + random.next_u32() % 3;
        let milters = 1 + random.next_u32() % 4;
        let name = |n: u32| format!("server {n}");
        // Updates are kept as long as they count; in one federation of four only until all servers have them.
        let federation = Federation {
            upstreams: (0..servers).map(name).collect(),
            keep_updates: Duration::ZERO,
            for_peers: !seed.is_multiple_of(4),
            ..Federation::default()
        };
        let settings = Settings {
            capacity: NonZeroU32::new(CAPACITIES[0]).unwrap(),
            federation,
            retention: Duration::from_secs(RETENTION * DAY),
            user_report_retention: Duration::from_secs(2 * USER_REPORT_WINDOW),
            ..Settings::default()
        };
        let limited = [random.next_u32() % 2 == 0, random.next_u32() % 2 == 0];
        // In one federation of three the servers' capacities differ, as while it is raised on one after the other.
        let sizes = if seed.is_multiple_of(3) { &CAPACITIES[..] } else { &CAPACITIES[..1] };
        let of = |n: u32| {
            let mut of = settings.clone();
            of.capacity = NonZeroU32::new(sizes[n as usize % sizes.len()]).unwrap();
            of.federation.peers = (0..servers).filter(|&peer| peer != n).map(name).collect();
            of
        };
        let server =
            |n| Server { node: Node::new(name(n), Role::Server, of(n), n.into()), copy: None, apart: false };
        let milter = |n: u32| Milter {
            node: Node::new(format!("milter {n}"), Role::Cache, settings.clone(), u64::from(n) + 100),
            client: format!("client {}", n / 2),
            has: BTreeSet::new(),
            found: BTreeSet::new(),
            noticed: false,
            copy: None,
        };
        Self {
            seed,
            random,
            servers: (0..servers).map(server).collect(),
            milters: (0..milters).map(milter).collect(),
            made: Vec::new(),
            by_signature: HashMap::new(),
            servers_forget,
            limited,
            withdrew: false,
        }
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.random.next_u64() % n as u64).unwrap()
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A message arrives at a milter.
    pub(super) fn report(&mut self, m: usize) {
        let number = self.made.len();
        let times = 1 + u32::try_from(self.below(5) * self.below(8)).unwrap();
        let now = self.milters[m].node.now;
        let made = Made { own: signature(SHARED + number), times, at: now, taken: 0, floor: 0 };
        let shared = signature(self.below(SHARED));
        self.made.push(made);
        self.by_signature.insert(made.own, number);
        let milter = &mut self.milters[m];
        let report =
            Report { signatures: vec![shared, made.own], times: made.times, now, ..Report::default() };
        milter.node.state().report(&report).unwrap();
        milter.node.commit();
        milter.has.insert(number);
    }

    /// Returns the reports of a batch.
    fn of(&self, batch: &Outgoing) -> Vec<usize> {
        batch.reports.iter().filter_map(|(signature, _)| self.by_signature.get(signature).copied()).collect()
    }

    /// A milter sends one batch to a server. With `loss`, the request or its answer may be lost or repeated, and the server may refuse it
    /// for good. Returns false if there is nothing to send.
    pub(super) fn send(&mut self, m: usize, s: usize, loss: bool) -> bool {
        let name = self.servers[s].node.name.clone();
        let milter = &mut self.milters[m];
        let cache = milter.node.state().cache().unwrap();
        let Some((spool, batch)) = cache.next_batch(&name, true) else { return false };
        milter.node.commit();
        let reports = self.of(&batch);
        let milter = &self.milters[m];
        assert!(
            !milter.noticed || reports.iter().all(|report| !milter.found.contains(report)),
            "seed {}: reports from the start are sent although the file is an old copy",
            self.seed
        );
        if loss && self.chance(15) {
            return true;
        }
        if loss && self.chance(3) {
            let cache = self.milters[m].node.state().cache().unwrap();
            cache.drop_batch(&name, batch.number);
            // Also in a copy that is restored: the number may by then belong to a question of the run that dropped the batch.
            let milter = &mut self.milters[m];
            let copied = milter.copy.iter_mut().map(|(_, has)| has);
            copied.chain([&mut milter.has]).for_each(|has| has.retain(|report| !reports.contains(report)));
            milter.node.commit();
            return true;
        }
        let mut answer = self.take(m, s, spool, &batch);
        if loss && self.chance(15) {
            answer = self.take(m, s, spool, &batch);
        }
        if loss && self.chance(15) {
            return true;
        }
        match answer {
            Ok(receipt) => {
                let cache = self.milters[m].node.state().cache().unwrap();
                cache.acknowledge(&name, batch.number, receipt);
            }
            Err(NotCounted::Backwards(_)) => self.notice(m, &name, spool),
            Err(NotCounted::Waits) => return false,
            Err(why @ (NotCounted::OverQuota(_) | NotCounted::TooManySpools(_))) => {
                panic!("seed {}: {why}", self.seed)
            }
        }
        self.milters[m].node.commit();
        true
    }

    /// A milter drops reports that waited for too long; user reports stay as long as they count.
    pub(super) fn trim(&mut self, m: usize) {
        let milter = &mut self.milters[m];
        let now = milter.node.now;
        milter.node.state().cache().unwrap().trim_spool(now);
        milter.node.commit();
        let (made, view) = (&self.made, milter.node.view());
        let is_lost = |report: &usize| {
            let Made { own, times, .. } = made[*report];
            !own.is_user_report() && view.count(own, now) < times
        };
        let lost: BTreeSet<usize> = milter.has.iter().copied().filter(is_lost).collect();
        // Also in a copy that is restored: a batch may by then be counted without them.
        let copied = milter.copy.iter_mut().map(|(_, has)| has);
        copied.chain([&mut milter.has]).for_each(|has| has.retain(|report| !lost.contains(report)));
    }

    fn take(&mut self, m: usize, s: usize, spool: u64, batch: &Outgoing) -> Result<Receipt, NotCounted> {
        let reporter = Reporter { client: self.milters[m].client.clone(), spool };
        let limits = self.limited[m / 2].then_some(Limits { influence: 100_000, quota: 1_000_000 });
        let server = &mut self.servers[s].node;
        let (new, now) = (Origin(server.new_name()), server.now);
        let taken = server.state().server().unwrap();
        let is_new = matches!(taken.receipts.find(&reporter, batch.number), Ok(None));
        let receipt = taken.take_batch(reporter, batch.number, &batch.reports, limits, now, new);
        server.commit();
        if is_new && receipt.is_ok() {
            self.of(batch).into_iter().for_each(|report| self.made[report].taken += 1);
        }
        receipt
    }

    /// A server withdraws all reports of a limited client. Those of its milters may be gone then.
    pub(super) fn withdraw(&mut self, m: usize, s: usize) {
        let client = self.milters[m].client.clone();
        let server = &mut self.servers[s].node;
        let now = server.now;
        if !server.state().server().unwrap().withdraw(&client, now) {
            return;
        }
        server.commit();
        self.withdrew = true;
        for milter in self.milters.iter_mut().filter(|milter| milter.client == client) {
            milter.has.clear();
            milter.copy = None;
        }
    }

    /// A milter learns that its spool is an old copy.
    fn notice(&mut self, m: usize, upstream: &str, spool: u64) {
        let milter = &mut self.milters[m];
        let new = milter.node.new_name();
        milter.node.state().cache().unwrap().renew_spool(upstream, spool, new);
        milter.noticed = true;
        // Reports found in the file may be dropped, but not later ones.
        let (made, view) = (&self.made, milter.node.view());
        let now = milter.node.now;
        let shown = |report: usize| view.count(made[report].own, now) >= made[report].times;
        let found = &milter.found;
        milter.has.retain(|report| !found.contains(report) || shown(*report));
    }

    fn node(&mut self, to: Holder) -> &mut Node {
        match to {
            Holder::Server(s) => &mut self.servers[s].node,
            Holder::Milter(m) => &mut self.milters[m].node,
        }
    }

    /// A holder requests the data that it lacks from a server, about so many bytes, as `sync` does.
    pub(super) fn pull(&mut self, to: Holder, s: usize, bytes: usize, loss: bool) {
        if let Holder::Server(to) = to {
            return self.pull_server(to, s, bytes, loss);
        }
        let theirs = self.node(to).view().vector();
        let result = self.servers[s].node.updates(&theirs, bytes);
        let from = match result {
            Ok(updates) => {
                let cut = if loss { self.below(updates.len() + 1) } else { updates.len() };
                let again = usize::from(loss && self.chance(30));
                for bytes in updates[..cut].iter().flat_map(|bytes| std::iter::repeat_n(bytes, 1 + again)) {
                    let applied = self.node(to).apply(bytes);
                    assert!(self.servers_forget || applied.is_ok(), "seed {}: {applied:?}", self.seed);
                }
                return self.node(to).commit();
            }
            Err(refusal) => refusal,
        };
        let forked = matches!(from, Refusal::Fork { .. });
        assert!(self.servers_forget || !forked, "seed {}: {from}", self.seed);
        self.take_snapshot(to, s, forked);
    }

    /// The same for a server, which first receives the other's vector.
    fn pull_server(&mut self, to: usize, s: usize, bytes: usize, loss: bool) {
        if self.servers[to].apart != self.servers[s].apart {
            return;
        }
        let (name, known) = (self.servers[s].node.name.clone(), self.servers[s].node.view().vector());
        self.servers[to].node.receive_vector(&name, &known);
        let mut missing = None;
        for skip_gaps in [false, true] {
            let theirs = self.servers[to].node.view().vector();
            match self.servers[s].node.missing(&theirs, bytes, skip_gaps) {
                Ok(found) => {
                    missing = Some(found);
                    break;
                }
                Err(refusal) => {
                    assert!(matches!(refusal, Refusal::Gap { .. }), "seed {}: {refusal}", self.seed);
                    assert!(!skip_gaps, "seed {}: {refusal}", self.seed);
                    self.take_snapshot(Holder::Server(to), s, false);
                }
            }
        }
        let missing = missing.unwrap();
        let cut = if loss { self.below(missing.updates.len() + 1) } else { missing.updates.len() };
        let again = usize::from(loss && self.chance(30));
        let node = &mut self.servers[to].node;
        let now = node.now;
        node.state().server().unwrap().skip_past(&missing.past, now);
        for bytes in missing.updates[..cut].iter().flat_map(|bytes| std::iter::repeat_n(bytes, 1 + again)) {
            let applied = node.apply(bytes);
            assert!(applied.is_ok(), "seed {}: {applied:?}", self.seed);
        }
        node.commit();
    }

    /// Time passes for all nodes.
    pub(super) fn pass_days(&mut self, days: u64) {
        let servers = self.servers.iter_mut().map(|server| &mut server.node);
        let all = servers.chain(self.milters.iter_mut().map(|milter| &mut milter.node));
        all.for_each(|node| node.now += days * DAY);
    }

    /// A holder takes a server's snapshot. In any case no count falls, unless the server's history forked.
    pub(super) fn take_snapshot(&mut self, to: Holder, s: usize, forked: bool) {
        let theirs = self.node(to).view().vector();
        let snapshot = self.servers[s].node.snapshot(&theirs);
        let shared: Vec<_> = (0..SHARED).map(signature).collect();
        let counts =
            |node: &Node| -> Vec<u32> { shared.iter().map(|&signature| node.counted(signature)).collect() };
        let node = self.node(to);
        let (before, vector) = (counts(node), node.view().vector());
        let taken = node.adopt(snapshot, forked);
        let (after, known) = (counts(node), node.view().vector());
        node.commit();
        if !forked {
            let falls = before.iter().zip(&after).any(|(before, after)| before > after);
            assert!(self.withdrew || !falls, "seed {}", self.seed);
            assert!(known.covers(&vector), "seed {}: a step back", self.seed);
            assert!(taken.is_ok() || before == after, "seed {}", self.seed);
        }
    }

    /// A milter restarts: memory is lost, the file is not.
    pub(super) fn restart_milter(&mut self, m: usize) {
        let milter = &mut self.milters[m];
        milter.node.restart(None);
        (milter.found, milter.noticed) = (milter.has.clone(), false);
    }

    pub(super) fn copy_milter(&mut self, m: usize) {
        let backup = self.chance(50);
        let milter = &mut self.milters[m];
        let bytes = if backup { milter.node.backup() } else { milter.node.copy() };
        milter.copy = Some((bytes, milter.has.clone()));
    }

    /// A server restarts with the largest capacity.
    pub(super) fn raise_capacity(&mut self, s: usize) {
        let server = &mut self.servers[s].node;
        if self.seed.is_multiple_of(3) {
            server.set_capacity(CAPACITIES[2]);
        }
        server.restart(None);
    }

    /// A milter's file is replaced by an old copy.
    pub(super) fn roll_back_milter(&mut self, m: usize) {
        let milter = &mut self.milters[m];
        let Some((bytes, has)) = &milter.copy else { return };
        milter.node.restart(Some(bytes));
        milter.has.clone_from(has);
        (milter.found, milter.noticed) = (milter.has.clone(), false);
    }

    pub(super) fn copy_server(&mut self, s: usize) {
        let backup = self.chance(50);
        let node = &self.servers[s].node;
        self.servers[s].copy = Some(if backup { node.backup() } else { node.copy() });
    }

    /// All servers make updates of their counts.
    pub(super) fn cut_all(&mut self) {
        for server in &mut self.servers {
            let now = server.node.now;
            server.node.state().cut(now);
            server.node.commit();
        }
    }

    /// A server's file is replaced by an old copy.
    pub(super) fn roll_back_server(&mut self, s: usize) {
        let Some(bytes) = self.servers[s].copy.clone() else { return };
        let shown = |world: &Self, made: &Made| {
            world.servers.iter().map(|server| server.node.counted(made.own)).max().unwrap_or(0)
        };
        let before: Vec<_> = self.made.iter().map(|made| shown(self, made)).collect();
        self.servers[s].node.restart(Some(&bytes));
        for (n, before) in before.into_iter().enumerate() {
            let made = self.made[n];
            let after = shown(self, &made);
            // Counts that only this server had are gone.
            self.made[n].floor = if after < before { after.min(made.floor) } else { after.max(made.floor) };
        }
    }

    /// Writes a server's checkpoint. Updates that all servers have are deleted, though milters may lack them.
    pub(super) fn checkpoint_server(&mut self, s: usize) {
        let vector = self.servers[s].node.view().vector();
        let all_know = self.servers.iter().all(|other| other.node.view().vector().covers(&vector));
        if !self.seed.is_multiple_of(4) {
            return self.servers[s].node.checkpoint_in_time();
        }
        let old = all_know.then_some(self.servers[s].node.now + 1);
        self.servers[s].node.checkpoint(&Expired { updates_before: old, ..Expired::default() });
    }

    /// Each server pulls from each other one.
    fn pull_all(&mut self) {
        for to in 0..self.servers.len() {
            for from in (0..self.servers.len()).filter(|&from| from != to) {
                self.pull_server(to, from, usize::MAX, false);
            }
        }
    }

    /// All exchange everything, without loss, until nothing changes.
    pub(super) fn heal(&mut self) {
        self.servers.iter_mut().for_each(|server| server.apart = false);
        for _ in 0..3 {
            self.pull_all();
            for m in 0..self.milters.len() {
                // A server may have to be asked once before it can be sent anything.
                for s in (0..self.servers.len()).chain(0..self.servers.len()) {
                    let rounds = (0..1000).take_while(|_| self.send(m, s, false)).count();
                    assert!(rounds < 1000, "seed {}: sending never ends", self.seed);
                }
            }
            self.cut_all();
            self.pull_all();
            for m in 0..self.milters.len() {
                // Once more after a snapshot, which is as old as the last checkpoint.
                for _ in 0..2 {
                    self.pull(Holder::Milter(m), 0, usize::MAX, false);
                }
            }
        }
    }
}

/// A holder of others' counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder {
    Server(usize),
    Milter(usize),
}
