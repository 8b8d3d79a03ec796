// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet, and possible failures.

use super::super::node::{NOW, Node};
use super::super::world::signature;
use super::log::Log;
use super::member::Member;
use bulkmark_counts::history::spool_batch::SpoolBatch;
use bulkmark_counts::history::step::Step;
use bulkmark_counts::history::vector::Chain;
use bulkmark_counts::settings::{Federation, LocalCopy, Role, Settings};
use bulkmark_counts::state::limited::Limits;
use bulkmark_counts::state::report::Report;
use bulkmark_types::Signature;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Signatures that many reports have in common. Each report also has a unique one, by which it is traced.
pub(super) const SHARED: usize = 12;

const DAY: u64 = 86_400;
const KEY: u64 = 77;

/// Limits so high that all reports count.
const LIMITS: Limits = Limits { influence: 1_000_000, quota: 100_000_000 };

/// A report: its unique signature, and how often it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) own: Signature,
    pub(super) times: u32,
}

/// A milter, and its expected state.
pub(super) struct Milter {
    pub(super) member: Member,
    /// For a holder of bulk alone, a holder of everything that follows at the same time.
    pub(super) twin: Option<Twin>,
    pub(super) client: String,
    /// Reports (indices of `World::made`) that it has and must show: neither lost with a file nor dropped.
    pub(super) has: BTreeSet<usize>,
    /// Those of them that were in its file at the last start.
    found: BTreeSet<usize>,
    /// The place for batches and its last batch at the start: steps must cover this batch before anything new is sent.
    fence: Option<(u64, u64)>,
    copy: Option<(Vec<u8>, BTreeSet<usize>)>,
}

/// The holder with which a milter with a partial copy is compared.
pub(super) struct Twin {
    pub(super) member: Member,
    /// The counts when the twin first saw a list of bulk, by signature, and the number of reports then: the list may lack signatures that
    /// were not reported since.
    pub(super) before: Option<(u32, BTreeMap<Signature, u32>)>,
}

pub(super) struct World {
    pub(super) seed: u64,
    random: Xoshiro256PlusPlus,
    pub(super) log: Log,
    log_copy: Option<Log>,
    pub(super) aggregators: Vec<Member>,
    copies: BTreeMap<usize, Vec<u8>>,
    pub(super) milters: Vec<Milter>,
    /// All reports made.
    pub(super) made: Vec<(Made, usize)>,
    /// Batches on their way, which may arrive late.
    late: Vec<(String, Vec<u8>)>,
    /// Whether the log and an aggregator may both be replaced by old copies, so that reports that both forgot are lost.
    pub(super) forgets: bool,
    /// Whether filters are so small that many signatures share cells, so that counts are only never too low.
    pub(super) crowded: bool,
    /// Clients with limits, and how often their reports were withdrawn.
    withdrawn: BTreeMap<String, u32>,
    names: u64,
    /// Counts of bulk that were compared.
    pub(super) compared: usize,
    /// Those of them for user reports.
    pub(super) user_reports: usize,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let crowded = seed % 5 == 4;
        let capacity = NonZeroU32::new(if crowded { 40 } else { 4000 }).unwrap();
        let partial = random.next_u32();
        let copy = |n: u32| if partial >> n & 1 > 0 { LocalCopy::Partial } else { LocalCopy::Full };
        let settings = |client: Option<String>, copy| {
            let federation = Federation { key_id: KEY, fleet_client: client, copy, ..Federation::default() };
            Settings { capacity, federation, ..Settings::default() }
        };
        let node = |name: String, client: Option<String>, copy, number: u64| {
            Member::new(Node::new(name, Role::Cache, settings(client, copy), number))
        };
        let twin = |n: u32| Twin {
            member: node(format!("twin {n}"), None, LocalCopy::Full, u64::from(n) + 200),
            before: None,
        };
        let (milters, aggregators) = (1 + random.next_u32() % 4, 1 + random.next_u32() % 3);
        let milter = |n: u32| {
            let client = format!("client{}", n / 2);
            Milter {
                member: node(format!("milter {n}"), Some(client.clone()), copy(n), u64::from(n) + 100),
                twin: (copy(n) == LocalCopy::Partial).then(|| twin(n)),
                client,
                has: BTreeSet::new(),
                found: BTreeSet::new(),
                fence: None,
                copy: None,
            }
        };
        let aggregator = |n: u32| node(format!("aggregator {n}"), None, LocalCopy::Full, n.into());
        let limited =
            (0..2).filter(|_| random.next_u32() % 2 == 0).map(|n| (format!("client{n}"), 0)).collect();
        Self {
            seed,
            log: Log::new(1),
            log_copy: None,
            aggregators: (0..aggregators).map(aggregator).collect(),
            copies: BTreeMap::new(),
            milters: (0..milters).map(milter).collect(),
            made: Vec::new(),
            late: Vec::new(),
            forgets: seed % 4 == 3,
            crowded,
            withdrawn: limited,
            names: 1,
            compared: 0,
            user_reports: 0,
            random,
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
        let (number, shared) = (self.made.len(), self.below(SHARED));
        let times = 1 + u32::try_from(self.below(5) * self.below(8)).unwrap();
        let made = Made { own: signature(SHARED + number), times };
        self.made.push((made, shared));
        let milter = &mut self.milters[m];
        let signatures = vec![signature(shared), made.own];
        let report = Report { signatures, times, now: NOW, ..Report::default() };
        milter.member.node.state().report(&report).unwrap();
        milter.member.node.commit();
        milter.has.insert(number);
    }

    /// A milter appends its open batches, and new ones when it may. With `loss`, each batch may be lost, repeated or late.
    pub(super) fn push(&mut self, m: usize, loss: bool) {
        let (made, (end, _)) = (self.log.made, self.log.ends());
        let milter = &mut self.milters[m];
        let mark = milter.member.mark();
        if milter.fence.is_none_or(|(of, batches)| of != made || batches > end) {
            // Until all steps were read, the mark does not show whether the log lost its end, nor which batches are counted.
            let lost = mark.version > 0 && mark.made == made && mark.covers > end;
            let here = milter.member.read >= self.log.ends().1;
            milter.fence = (here && !lost).then_some((made, end));
        }
        let passed = milter.fence.is_some_and(|(of, batches)| mark.made == of && mark.covers >= batches);
        let client = milter.client.clone();
        let mut batches = milter.member.outgoing(passed);
        if loss && self.chance(50) {
            batches.reverse();
        }
        for batch in batches {
            for _ in 0..if loss { self.below(3) } else { 1 } {
                let at = NOW - self.below(3) as u64 * DAY;
                let late = loss && self.chance(20);
                match late {
                    true => self.late.push((client.clone(), batch.encode())),
                    false => drop(self.log.append(&client, at, batch.encode())),
                }
            }
        }
    }

    /// A delayed batch arrives.
    pub(super) fn deliver(&mut self, all: bool) {
        let many = if all { self.late.len() } else { self.below(self.late.len() + 1) };
        for (client, bytes) in self.late.drain(..many).collect::<Vec<_>>() {
            self.log.append(&client, NOW, bytes);
        }
    }

    /// An aggregator drafts a step, and appends it: on condition that no other was first, or unconditionally.
    pub(super) fn draft(&mut self, a: usize, loss: bool) -> bool {
        let (batches, most_bytes) =
            if loss { (1 + self.below(20), 500 + self.below(4000)) } else { (1000, 960 << 10) };
        let (race, lost) = (loss && self.chance(50), loss && self.chance(15));
        let withdrawn: Vec<_> = self.withdrawn.clone().into_iter().collect();
        let limits = |client: &str| match self.withdrawn.get(client) {
            Some(&times) => (Some(LIMITS), times),
            None => (None, 0),
        };
        let aggregator = &mut self.aggregators[a];
        // Comparing all cells takes long.
        let before = loss.then(|| aggregator.node.cells());
        let drafted = aggregator.draft(&self.log, limits, &withdrawn, (batches, most_bytes));
        let changed = before.is_some_and(|before| aggregator.node.cells() != before);
        assert!(!changed, "seed {}: a draft changed something", self.seed);
        let Some((step, drafted)) = drafted else { return false };
        assert_eq!(Step::decode(&drafted.bytes), Ok(step), "seed {}", self.seed);
        let after = (!race).then_some(aggregator.read);
        lost || self.log.append_step(after, drafted.bytes.into())
    }

    /// An invalid step comes into the stream, an old one, or one with impossible content.
    pub(super) fn junk_step(&mut self) {
        let kinds = self.below(4);
        let known = self.log.steps.last().map(|(_, bytes)| Arc::clone(bytes));
        let bytes: Vec<u8> = match (kinds, known) {
            (1, Some(bytes)) => bytes[..bytes.len() / 2].to_vec(),
            (2, Some(_)) => {
                let old = self.below(self.log.steps.len());
                self.log.steps[old].1.to_vec()
            }
            (3, Some(bytes)) => {
                // A step that could be next, except that it repeats an update.
                let Ok(mut step) = Step::decode(&bytes) else { return };
                step.head.before = if self.chance(70) { Chain::of(&bytes) } else { Chain([9; 16]) };
                step.head.version += 1;
                if step.updates.is_empty() && step.marks.is_empty() {
                    return;
                }
                if step.updates.is_empty() {
                    // The rest of it would be valid: nothing counted, no new marks.
                    step.head.covers = 0;
                    step.head.epoch = 0;
                }
                step.encode()
            }
            _ => (0..self.below(200)).map(|n| u8::try_from(n * 7 % 256).unwrap()).collect(),
        };
        self.log.append_step(None, bytes.into());
    }

    /// An invalid batch comes into the log, or one in which a client names another client's spool.
    pub(super) fn junk_batch(&mut self) {
        let known = self.log.batches.last().map(|stored| SpoolBatch::decode(&stored.bytes));
        let bytes = match known {
            Some(Some(victim)) => {
                let reports = vec![(Signature::from_bytes([5; 16]), 3)];
                let number = victim.number + self.below(4) as u64;
                SpoolBatch { number, lowest: number, reports, ..victim }.encode()
            }
            _ => vec![7; 40],
        };
        self.log.append("evil", NOW, bytes);
    }

    /// A new machine appends a batch.
    pub(super) fn another_reports(&mut self, spool: u64) {
        let reports = vec![(Signature::from_bytes([6; 16]), 1)];
        let batch = SpoolBatch { key_id: KEY, spool, number: 1, lowest: 1, bulk_from: 0, reports };
        self.log.append("another", NOW, batch.encode());
    }

    /// A limited client's reports are withdrawn. Those of its milters may be gone then.
    pub(super) fn withdraw(&mut self, m: usize) {
        let client = self.milters[m].client.clone();
        let Some(times) = self.withdrawn.get_mut(&client) else { return };
        *times += 1;
        for milter in self.milters.iter_mut().filter(|milter| milter.client == client) {
            milter.has.clear();
            milter.copy = None;
        }
    }

    /// A milter reads steps, and its spool follows.
    pub(super) fn follow(&mut self, m: usize, most: usize, times: usize) -> bool {
        let milter = &mut self.milters[m];
        let spool = milter.member.node.view().spool().unwrap().ids().0;
        let finished = milter.member.follow(&self.log, most, times);
        if let Some(twin) = &mut milter.twin {
            twin.member.follow(&self.log, most, times);
        }
        if milter.member.node.view().spool().unwrap().ids().0 == spool {
            return finished;
        }
        // Its file is an old copy. Reports found in the file may be dropped, but not later ones.
        let (made, view) = (&self.made, milter.member.node.view());
        let found = &milter.found;
        milter.has.retain(|report| {
            !found.contains(report) || view.count(made[*report].0.own, NOW) >= made[*report].0.times
        });
        finished
    }

    pub(super) fn restart_milter(&mut self, m: usize) {
        let milter = &mut self.milters[m];
        milter.member.restart(None);
        milter.started();
    }

    pub(super) fn copy_milter(&mut self, m: usize) {
        let milter = &mut self.milters[m];
        milter.copy = Some((milter.member.node.backup(), milter.has.clone()));
    }

    /// A milter's file is replaced by an old copy. Its earlier batches have arrived, or never will: a daemon that is gone sends nothing.
    pub(super) fn roll_back_milter(&mut self, m: usize) {
        self.deliver(true);
        self.log_copy = None;
        let milter = &mut self.milters[m];
        let Some((bytes, has)) = &milter.copy else { return };
        milter.member.restart(Some(bytes));
        milter.has.clone_from(has);
        milter.started();
    }

    pub(super) fn restart_aggregator(&mut self, a: usize) {
        self.aggregators[a].restart(None);
    }

    pub(super) fn copy_aggregator(&mut self, a: usize) {
        self.copies.insert(a, self.aggregators[a].node.backup());
    }

    pub(super) fn roll_back_aggregator(&mut self, a: usize) {
        let Some(bytes) = self.copies.get(&a) else { return };
        self.aggregators[a].restart(Some(bytes));
    }

    pub(super) fn copy_log(&mut self) {
        self.log_copy = Some(self.log.clone());
    }

    /// The log loses its end, or all of it. Members that have more append it again before anybody continues from there, unless
    /// everything may be forgotten.
    pub(super) fn roll_back_log(&mut self, anew: bool) {
        self.names += 1;
        if !self.forgets {
            // Any entry that the log delivered reached one of these.
            let a = self.below(self.aggregators.len());
            self.aggregators[a].follow_all(&self.log);
        }
        match &self.log_copy {
            Some(copy) if !anew => self.log = copy.clone(),
            _ => self.log = Log::new(self.names),
        }
        // Their connections broke, and places have new entries.
        self.aggregators.iter_mut().for_each(|member| member.read = 0);
        for milter in &mut self.milters {
            milter.member.read = 0;
            milter.twin.iter_mut().for_each(|twin| twin.member.read = 0);
        }
        if !self.forgets {
            // The member that is ahead comes first: the others cannot know the lost end.
            let mut order: Vec<_> = (0..self.aggregators.len()).collect();
            order.sort_by_key(|&a| std::cmp::Reverse(self.aggregators[a].mark().version));
            for a in order {
                self.aggregators[a].heal(&mut self.log);
            }
        }
    }

    /// An aggregator stores a snapshot, and older entries are deleted.
    pub(super) fn snapshot(&mut self, a: usize, forget: bool) {
        let aggregator = &mut self.aggregators[a];
        aggregator.follow_all(&self.log);
        let mark = aggregator.mark();
        let is_last = |bytes: &[u8]| Chain::of(bytes) == mark.chain;
        let Some(&(place, _)) = self.log.steps.iter().find(|(_, bytes)| is_last(bytes)) else { return };
        aggregator.snapshot(&mut self.log);
        if forget {
            self.log.forget(place, if mark.made == self.log.made { mark.covers } else { 0 });
        }
    }

    pub(super) fn heal_aggregator(&mut self, a: usize) {
        self.aggregators[a].heal(&mut self.log);
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.aggregators.iter().chain(self.milters.iter().map(|milter| &milter.member))
    }
}

impl Milter {
    fn started(&mut self) {
        (self.fence, self.found) = (None, self.has.clone());
    }
}
