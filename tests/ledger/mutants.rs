// SPDX-License-Identifier: GPL-3.0-or-later
//! Hundreds of changed steps and snapshots, as a member with an aggregator's rights can put them into a fleet's log: their checksums and their
//! places in the chain are right, and all other values may be wrong. All members agree on each, and count what comes behind it.

use super::fleet::{Member, terms};

use bulkmark_counts::{Applied, Chain, Limits, LoggedBatch, Step, Terms, seal, step_head};
use bulkmark_testing::counts::{NOW, report};
use bulkmark_testing::random::Random;

/// Changed steps, and changed snapshots.
const STEPS: u64 = 500;
const SNAPSHOTS: u64 = 100;

/// The last place for batches in the log.
const LAST: u64 = 1_000_000;

/// The bytes of a step up to its version's end: kind, origin, version and the hash before it.
const PLACE: usize = 5 + 8 + 8 + 16;

/// A value that code may not expect in the place of this one.
fn extreme(random: &mut Random, value: u64) -> u64 {
    let others = [0, 1, value.wrapping_sub(1), value.wrapping_add(1), value ^ 1 << random.below(64)];
    let ends = [1 << 31, u64::from(u32::MAX), 1 << 40, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];
    let all = [&others[..], &ends].concat();
    all[random.below(all.len())]
}

/// Changes, inserts or removes some bytes behind `from`.
fn change(random: &mut Random, bytes: &mut Vec<u8>, from: usize) {
    for _ in 0..=random.below(3) {
        let at = from + random.below(bytes.len() - from);
        match random.below(8) {
            0 => bytes.truncate(at.max(from + 1)),
            1 => bytes.insert(at, random.next().to_le_bytes()[0]),
            2 | 3 if at + 8 <= bytes.len() => {
                let value = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                bytes[at..at + 8].copy_from_slice(&extreme(random, value).to_le_bytes());
            }
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
}

/// This step with another head, or other marks of spools.
fn with_other_fields(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut step = Step::decode(bytes).unwrap();
    let head = &mut step.head;
    match random.below(6) {
        0 => head.covers = extreme(random, head.covers),
        1 => head.time = extreme(random, head.time),
        2 => (head.epoch, head.covers) = (head.epoch + 1, extreme(random, head.covers)),
        3 => (head.epoch, head.made) = (head.epoch + 1, extreme(random, head.made)),
        4 => head.bound = u32::try_from(extreme(random, head.bound.into()) >> 32).unwrap(),
        _ => {
            let spool = step.marks.values_mut().next().and_then(|spools| spools.values_mut().next()).unwrap();
            let (number, lowest) = (extreme(random, 7), extreme(random, 7));
            spool.take(number, lowest.min(number));
        }
    }
    step.encode()
}

/// This step with any change that leaves its place in the chain.
fn mutant(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    if random.below(3) == 0 {
        return with_other_fields(random, bytes);
    }
    let mut content = bytes[..bytes.len() - 4].to_vec();
    change(random, &mut content, PLACE);
    seal(content)
}

/// A fleet of two milters, a partner and an aggregator.
struct Fleet {
    /// Last the aggregator.
    members: Vec<Member>,
    /// The last place for batches.
    batches: u64,
    /// The last place for steps.
    steps: u64,
}

impl Fleet {
    fn new() -> Self {
        let members = [Some("mx1"), Some("mx2"), Some("partner"), None].map(Member::new);
        Self { members: members.into(), batches: 0, steps: 0 }
    }

    /// The batches of all milters that no step covers, again.
    async fn open_batches(&mut self) -> Vec<LoggedBatch> {
        let mut all = Vec::new();
        for (milter, name) in self.members.iter().zip(["mx1", "mx2", "partner"]) {
            let limits = (name == "partner").then_some(Limits { influence: 5, quota: 1_000_000 });
            let batches = milter.batches(self.batches + 1, name, limits).await;
            self.batches += batches.len() as u64;
            all.extend(batches);
        }
        all
    }

    /// The next step of an honest aggregator.
    async fn honest_step(&mut self) -> Vec<u8> {
        let batches = self.open_batches().await;
        let mark = self.members[3].ledger.fleet();
        let goes_on = mark.version > 0 && mark.made == terms().made && mark.covers <= LAST;
        let epoch = if goes_on { mark.epoch } else { mark.next_epoch().unwrap() };
        // Batches up to a place that a step claims are not read again; so they come behind it.
        let behind = if goes_on { mark.covers } else { 0 };
        let batches = batches.into_iter().map(|batch| LoggedBatch { place: behind + batch.place, ..batch });
        let terms = Terms { epoch, ..terms() };
        self.members[3].ledger.draft_step(batches.collect(), terms).await.unwrap().unwrap().bytes
    }

    /// Delivers an entry of the log to all members. Returns whether they took it.
    async fn deliver(&mut self, step: &[u8]) -> bool {
        self.steps += 1;
        let mut taken = Vec::new();
        for member in &self.members {
            taken.push(member.apply(step, self.steps).await == Ok(Applied::New));
        }
        let marks: Vec<_> = self.members.iter().map(|member| member.ledger.fleet()).collect();
        assert!(marks.iter().all(|mark| *mark == marks[0]), "{taken:?} {marks:?}");
        taken[0]
    }

    /// Reports of a signature by an own milter and by the partner are counted by all.
    async fn counts(&mut self, number: u64) {
        self.members[0].ledger.report(report(number, 3, NOW)).await.unwrap();
        self.members[2].ledger.report(report(number, 2, NOW)).await.unwrap();
        let step = self.honest_step().await;
        assert!(self.deliver(&step).await, "an honest step");
        for member in &self.members {
            // Made-up cells may be those of this signature, too.
            assert!(member.count(number).await >= 5, "of {number}");
        }
    }

    async fn restart(&mut self) {
        for member in std::mem::take(&mut self.members) {
            member.ledger.checkpoint().await.unwrap();
            self.members.push(member.kill());
        }
    }
}

#[tokio::test]
async fn any_step_is_counted_by_all_or_by_none() {
    let mut fleet = Fleet::new();
    fleet.counts(0).await;
    let mut taken = 0;
    for seed in 1..=STEPS {
        let random = &mut Random::new(seed);
        // Its reports are counted by the mutant, or by the step after it.
        fleet.members[1].ledger.report(report(1_000_000 + seed, 1, NOW)).await.unwrap();
        let honest = fleet.honest_step().await;
        let mutant = mutant(random, &honest);
        if fleet.deliver(&mutant).await {
            taken += 1;
            let (head, mark) = step_head(&mutant).unwrap();
            assert!(head.version == mark.version && mark.chain == Chain::of(&mutant));
        }
        fleet.counts(seed).await;
        if seed % 100 == 0 {
            fleet.restart().await;
        }
    }
    assert!((STEPS / 10..STEPS / 2).contains(&taken), "{taken} mutants are no junk");
}

/// Each changed snapshot is refused or taken by a new member. It then counts the steps that follow the snapshot's place in the chain, or takes
/// the next snapshot.
#[tokio::test]
async fn any_snapshot_leaves_a_member_that_counts() {
    let mut fleet = Fleet::new();
    for number in 0..20 {
        fleet.counts(number).await;
    }
    fleet.members[3].ledger.checkpoint().await.unwrap();
    let parts: Vec<_> =
        fleet.members[3].ledger.fleet_snapshot().unwrap().unwrap().map(Result::unwrap).collect();
    assert_eq!(parts.len(), 1);
    fleet.counts(20).await;
    fleet.members[3].ledger.checkpoint().await.unwrap();
    let (later, mark) = {
        let snapshot = fleet.members[3].ledger.fleet_snapshot().unwrap().unwrap();
        let mark = snapshot.mark();
        (snapshot.map(Result::unwrap).collect::<Vec<_>>(), mark)
    };
    let (mut taken, mut went_on) = (0, 0);
    for seed in 0..SNAPSHOTS {
        let random = &mut Random::new(seed);
        let mut content = parts[0][..parts[0].len() - 4].to_vec();
        change(random, &mut content, 5);
        let late = Member::new(Some("mx3"));
        let mut assembly = late.assembly();
        if assembly.push(&seal(content)).is_ok()
            && late.ledger.adopt_fleet(assembly, false).await.unwrap() == Ok(Applied::New)
        {
            taken += 1;
        }
        // It may have begun at a place of its own; restarting changes nothing.
        let late = late.kill();
        let steps = fleet.members[3].ledger.steps_since(late.ledger.fleet().version, usize::MAX).unwrap();
        let mut follows = true;
        for (version, step) in &steps {
            follows &= late.apply(step, *version).await == Ok(Applied::New);
        }
        went_on += u64::from(follows && !steps.is_empty());
        // As a fork is left, and as a member that is behind goes on.
        let is_forked = late.ledger.fleet().version >= mark.version;
        let mut assembly = late.assembly();
        later.iter().for_each(|part| assembly.push(part).unwrap());
        late.ledger.adopt_fleet(assembly, is_forked).await.unwrap().unwrap();
        assert_eq!((late.ledger.fleet(), late.count(20).await), (mark, 5), "seed {seed}");
    }
    assert!(taken > SNAPSHOTS / 20 && went_on > SNAPSHOTS / 20, "{taken} are taken, {went_on} go on");
}
