// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's ledgers, over kills and checkpoints: every holder counts the log's entries once, and keeps them.

use bulkmark_counts::{
    Applied, Chain, Drafted, Federation, FleetAssembly, Limits, LoggedBatch, MAX_STEP, Role, Settings, Step,
    StepRefusal, Terms, Update,
};
use bulkmark_ledger::{FILE_NAME, Ledger};
use bulkmark_testing::counts::{DAY, NOW, report, signature};
use bulkmark_types::FederationKey;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

fn settings(client: Option<&str>) -> Settings {
    let federation = Federation { fleet_client: client.map(str::to_owned), ..Federation::default() };
    Settings { capacity: 1000.try_into().unwrap(), federation, ..Settings::default() }
}

fn open(directory: &Path, settings: &Settings) -> Ledger {
    Ledger::open(directory, Role::Cache, settings, &FederationKey::public()).unwrap()
}

/// A member of the fleet; without a client it is an aggregator.
pub(crate) struct Member {
    directory: TempDir,
    settings: Settings,
    pub(crate) ledger: Ledger,
}

impl Member {
    pub(crate) fn new(client: Option<&str>) -> Self {
        let (directory, settings) = (tempfile::tempdir().unwrap(), settings(client));
        let ledger = open(directory.path(), &settings);
        Self { directory, settings, ledger }
    }

    /// Kills it and starts it again, with its file as of that moment.
    pub(crate) fn kill(self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::copy(self.directory.path().join(FILE_NAME), directory.path().join(FILE_NAME)).unwrap();
        let ledger = open(directory.path(), &self.settings);
        Self { directory, settings: self.settings, ledger }
    }

    pub(crate) async fn count(&self, number: u64) -> u32 {
        self.ledger.count(signature(number), NOW).await.unwrap()
    }

    pub(crate) async fn apply(&self, step: &[u8], place: u64) -> Result<Applied, StepRefusal> {
        self.ledger.apply_step(step.into(), place, NOW).await.unwrap()
    }

    /// Its batches for the log.
    pub(crate) async fn batches(
        &self,
        first_place: u64,
        client: &str,
        limits: Option<Limits>,
    ) -> Vec<LoggedBatch> {
        let batches = self.ledger.outgoing(0, 64, true, 0).await.unwrap();
        (first_place..)
            .zip(batches)
            .map(|(place, batch)| LoggedBatch {
                place,
                at: NOW,
                client: client.to_owned(),
                limits,
                withdrawn: 0,
                bytes: batch.bytes,
            })
            .collect()
    }

    /// An empty assembly for a snapshot that it takes.
    pub(crate) fn assembly(&self) -> FleetAssembly {
        self.ledger.fleet_assembly(&self.settings)
    }

    async fn draft(&self, batches: Vec<LoggedBatch>) -> Drafted {
        self.ledger.draft_step(batches, terms()).await.unwrap().unwrap()
    }
}

pub(crate) fn terms() -> Terms {
    Terms { epoch: 1, made: 5, gone: 0, withdrawn: Vec::new(), most_bytes: MAX_STEP }
}

/// From a report to all holders: each counts it once, despite kills, and its milter drops it with the step that includes it.
#[tokio::test]
async fn a_report_comes_to_all_and_stays() {
    let (mx1, mx2, aggregator) = (Member::new(Some("mx1")), Member::new(Some("mx2")), Member::new(None));
    for (number, times) in [(1, 2), (2, 30)] {
        mx1.ledger.report(report(number, times, NOW)).await.unwrap();
    }
    mx2.ledger.report(report(2, 5, NOW)).await.unwrap();
    let mut batches = mx1.batches(1, "mx1", None).await;
    batches.extend(mx2.batches(2, "mx2", None).await);
    let drafted = aggregator.draft(batches.clone()).await;
    assert_eq!((drafted.batches, drafted.signatures, drafted.repeated), (2, 3, 0));
    assert_eq!(
        (aggregator.count(2).await, aggregator.ledger.fleet().version),
        (0, 0),
        "a draft changes nothing"
    );
    let mut members = vec![mx1, mx2, aggregator];
    for round in 0..3 {
        for member in &members {
            let expected = if round == 0 { Applied::New } else { Applied::Known };
            assert_eq!(member.apply(&drafted.bytes, 7).await, Ok(expected));
            assert_eq!((member.count(1).await, member.count(2).await), (2, 35));
            assert_eq!(member.ledger.outgoing(0, 64, true, 0).await.unwrap(), []);
            let mark = member.ledger.fleet();
            assert_eq!((mark.version, mark.epoch, mark.made, mark.covers, mark.place), (1, 1, 5, 2, 7));
        }
        if round == 1 {
            for member in &members {
                member.ledger.checkpoint().await.unwrap();
            }
        }
        members = members.into_iter().map(Member::kill).collect();
    }
    // The same batches again, and later ones.
    members[0].ledger.report(report(1, 1, NOW)).await.unwrap();
    batches.extend(members[0].batches(9, "mx1", None).await);
    let drafted = members[2].draft(batches).await;
    assert_eq!((drafted.batches, drafted.signatures, drafted.repeated, drafted.version), (3, 1, 2, 2));
    for member in &members {
        assert_eq!(member.apply(&drafted.bytes, 8).await, Ok(Applied::New));
        assert_eq!((member.count(1).await, member.count(2).await), (3, 35));
        assert_eq!(member.ledger.steps_since(0, usize::MAX).unwrap().len(), 2);
        assert_eq!(member.ledger.steps_since(1, usize::MAX).unwrap(), [(2, Arc::from(&drafted.bytes[..]))]);
    }
}

/// A late member takes a snapshot, in parts as small as the log requires, and continues with the later steps.
#[tokio::test]
async fn a_snapshot_and_the_steps_since_are_the_whole() {
    let (mx1, aggregator, late) = (Member::new(Some("mx1")), Member::new(None), Member::new(Some("mx2")));
    assert!(aggregator.ledger.fleet_snapshot().unwrap().is_none(), "of nothing there is none");
    for n in 0..3 {
        mx1.ledger.report(report(n, 3, NOW)).await.unwrap();
        let drafted = aggregator.draft(mx1.batches(n + 1, "mx1", None).await).await;
        for member in [&mx1, &aggregator] {
            assert_eq!(member.apply(&drafted.bytes, n + 1).await, Ok(Applied::New));
        }
        if n == 1 {
            aggregator.ledger.checkpoint().await.unwrap();
        }
    }
    let snapshot = aggregator.ledger.fleet_snapshot().unwrap().unwrap();
    assert_eq!(snapshot.mark().version, 2);
    let parts: Vec<_> = snapshot.map(Result::unwrap).collect();
    assert!(parts.iter().all(|part| part.len() <= MAX_STEP));
    let steps = aggregator.ledger.steps_since(0, usize::MAX).unwrap();
    assert_eq!(late.apply(&steps[2].1, 3).await, Err(StepRefusal::Gap { have: 0, version: 3 }));
    let of = late.settings.clone();
    let assembled = |parts: &[Vec<u8>]| {
        let mut assembly = FleetAssembly::new(&of);
        parts.iter().for_each(|part| assembly.push(part).unwrap());
        assembly
    };
    let cut = late.ledger.adopt_fleet(assembled(&[]), false).await.unwrap();
    assert!(matches!(cut, Err(StepRefusal::Junk(_))), "{cut:?}");
    let whole = assembled(&parts);
    assert!(whole.is_complete() && whole.mark().is_some_and(|mark| mark.covers == 2));
    assert_eq!(late.ledger.adopt_fleet(whole, false).await.unwrap(), Ok(Applied::New));
    let late = late.kill();
    assert_eq!(late.apply(&steps[2].1, 3).await, Ok(Applied::New));
    for n in 0..3 {
        assert_eq!(late.count(n).await, 3);
    }
    // The same snapshot is not adopted again as newer. If the log continued from there without steps known here, it is.
    let again = aggregator.ledger.adopt_fleet(assembled(&parts), false).await.unwrap();
    assert_eq!((again, aggregator.ledger.fleet().version), (Ok(Applied::Known), 3));
    let back = aggregator.ledger.adopt_fleet(assembled(&parts), true).await.unwrap();
    assert_eq!((back, aggregator.ledger.fleet().version), (Ok(Applied::New), 2));
    assert_eq!(aggregator.count(2).await, 0);
    assert_eq!(aggregator.apply(&steps[2].1, 3).await, Ok(Applied::New));
    for n in 0..3 {
        assert_eq!(aggregator.count(n).await, 3);
    }
}

/// A client with limits raises no count above its influence, and brings no more new signatures than its quota; the rest is dropped without
/// delay. Its reports can be withdrawn at every holder.
#[tokio::test]
async fn limits_hold_and_what_was_brought_is_taken_back() {
    let (partner, mx1, aggregator) =
        (Member::new(Some("partner")), Member::new(Some("mx1")), Member::new(None));
    let limits = Some(Limits { influence: 5, quota: 50_000 });
    mx1.ledger.report(report(0, 2, NOW)).await.unwrap();
    for step in 0..2 {
        partner.ledger.report(report(0, 4, NOW)).await.unwrap();
        // A separate batch, so that it has room before the others.
        assert_eq!(partner.ledger.outgoing(0, 64, true, 0).await.unwrap().len(), 1);
        for n in 0..200 {
            partner.ledger.report(report(100 + 200 * step + n, 1, NOW)).await.unwrap();
        }
        let mut batches = partner.batches(10 * step + 1, "partner", limits).await;
        batches.extend(mx1.batches(10 * step + 5, "mx1", None).await);
        let drafted = aggregator.draft(batches).await;
        for member in [&partner, &mx1, &aggregator] {
            assert_eq!(member.apply(&drafted.bytes, step + 1).await, Ok(Applied::New));
        }
        assert_eq!(partner.ledger.outgoing(0, 64, true, 0).await.unwrap(), [], "all of it is judged");
    }
    assert_eq!(mx1.count(0).await, 2 + 5);
    let mut brought = 0;
    for n in 100..500 {
        brought += u64::from(mx1.count(n).await > 0);
    }
    // 50 of a capacity of 1,000, which the cells estimate within a few.
    assert!((45..=55).contains(&brought), "{brought}");
    let terms = Terms { withdrawn: vec![("partner".to_owned(), 1)], ..terms() };
    let taken_back = aggregator.ledger.draft_step(Vec::new(), terms.clone()).await.unwrap().unwrap();
    for member in [partner, mx1, aggregator] {
        assert_eq!(member.apply(&taken_back.bytes, 3).await, Ok(Applied::New));
        assert_eq!((member.count(0).await, member.count(100).await), (2, 0));
        let member = member.kill();
        assert_eq!((member.count(0).await, member.count(100).await), (2, 0));
        assert_eq!(
            member.ledger.draft_step(Vec::new(), terms.clone()).await.unwrap(),
            None,
            "once is enough"
        );
    }
}

/// Junk, and steps of another fleet or another place in the chain, change nothing.
#[tokio::test]
async fn whatever_else_is_in_the_stream_changes_nothing() {
    let (mx1, aggregator, other) = (Member::new(Some("mx1")), Member::new(None), Member::new(None));
    mx1.ledger.report(report(1, 2, NOW)).await.unwrap();
    let batches = mx1.batches(1, "mx1", None).await;
    let (first, race) = (aggregator.draft(batches.clone()).await, other.draft(batches.clone()).await);
    aggregator.apply(&first.bytes, 1).await.unwrap();
    let lost = aggregator.apply(&race.bytes, 2).await;
    assert_eq!(lost, Ok(Applied::Known), "another one was first");
    other.apply(&race.bytes, 1).await.unwrap();
    let next = other.ledger.draft_step(Vec::new(), Terms { epoch: 2, ..terms() }).await.unwrap().unwrap();
    assert_eq!(aggregator.apply(&next.bytes, 3).await, Err(StepRefusal::Fork { version: 2 }));
    let junk = aggregator.apply(b"no step", 4).await;
    assert!(matches!(junk, Err(StepRefusal::Junk(_))), "{junk:?}");
    let hours = Settings { window: Duration::from_secs(3600), ..settings(None) };
    let directory = tempfile::tempdir().unwrap();
    let in_hours = open(directory.path(), &hours);
    let unlike = in_hours.apply_step(first.bytes.into(), 1, NOW).await.unwrap();
    assert_eq!(unlike.unwrap_err().to_string(), "window differs: 86400s in the fleet, 3600s here");
    aggregator.ledger.checkpoint().await.unwrap();
    let first_part = aggregator.ledger.fleet_snapshot().unwrap().unwrap().next().unwrap().unwrap();
    assert_eq!(
        in_hours.fleet_assembly(&hours).push(&first_part).unwrap_err().to_string(),
        "window differs: 86400s in the fleet, 3600s here",
        "the rest of a snapshot is not read in vain"
    );
    let mut whole = FleetAssembly::new(&hours);
    aggregator.ledger.fleet_snapshot().unwrap().unwrap().for_each(|part| whole.push(&part.unwrap()).unwrap());
    let unlike = in_hours.adopt_fleet(whole, false).await.unwrap();
    assert!(matches!(unlike, Err(StepRefusal::Unlike { .. })), "{unlike:?}");
    let right = aggregator.ledger.fleet_assembly(&aggregator.settings).push(&first_part);
    assert_eq!(right, Ok(()));
    let member = aggregator.kill();
    assert_eq!((member.count(1).await, member.ledger.fleet().version), (2, 1));
    // Unreadable batches are skipped, and nobody waits for them.
    let junk = LoggedBatch { bytes: vec![1; 50], place: 2, ..batches[0].clone() };
    let drafted = member.draft(vec![junk]).await;
    assert_eq!((drafted.batches, drafted.junk, drafted.signatures), (1, 1, 0));
    member.apply(&drafted.bytes, 5).await.unwrap();
    assert_eq!(member.ledger.fleet().covers, 2);
}

/// An old copy of a milter's ledger is restored. Its spool's marks in a step show that later batches were sent; it drops its own ambiguous
/// batches, and sends new reports: nothing counts twice.
#[tokio::test]
async fn an_old_copy_hears_that_it_is_one() {
    let (mx1, aggregator) = (Member::new(Some("mx1")), Member::new(None));
    mx1.ledger.report(report(1, 1, NOW)).await.unwrap();
    let backup = tempfile::tempdir().unwrap();
    std::fs::copy(mx1.directory.path().join(FILE_NAME), backup.path().join(FILE_NAME)).unwrap();
    let drafted = aggregator.draft(mx1.batches(1, "mx1", None).await).await;
    aggregator.apply(&drafted.bytes, 1).await.unwrap();
    drop(mx1);
    let copy = open(backup.path(), &settings(Some("mx1")));
    copy.report(report(2, 1, NOW)).await.unwrap();
    assert_eq!(copy.outgoing(0, 64, false, 0).await.unwrap(), []);
    copy.apply_step(drafted.bytes.into(), 1, NOW).await.unwrap().unwrap();
    let counts = [copy.count(signature(1), NOW).await, copy.count(signature(2), NOW).await];
    assert_eq!(counts, [Ok(1), Ok(1)]);
    let sent = copy.outgoing(0, 64, true, 0).await.unwrap();
    assert_eq!(sent.len(), 1);
    let batch = LoggedBatch {
        place: 2,
        at: NOW,
        client: "mx1".to_owned(),
        limits: None,
        withdrawn: 0,
        bytes: sent[0].bytes.clone(),
    };
    let drafted = aggregator.draft(vec![batch]).await;
    aggregator.apply(&drafted.bytes, 2).await.unwrap();
    assert_eq!((aggregator.count(1).await, aggregator.count(2).await), (1, 1));
}

/// A follower of an aggregator by HTTPS gets the fleet's counts as updates; a ledger that gets other origins this way no longer
/// belongs to a fleet.
#[tokio::test]
async fn updates_are_kept_for_others() {
    let mx1 = Member::new(Some("mx1"));
    let directory = tempfile::tempdir().unwrap();
    let federation = Federation { serves: true, ..Federation::default() };
    let serving = open(directory.path(), &Settings { federation, ..settings(None) });
    for n in 0..2 {
        mx1.ledger.report(report(n, 4, NOW)).await.unwrap();
        let batches = mx1.batches(n + 1, "mx1", None).await;
        let step = serving.draft_step(batches, terms()).await.unwrap().unwrap().bytes;
        assert_eq!(mx1.apply(&step, n + 1).await, Ok(Applied::New));
        serving.apply_step(step.into(), n + 1, NOW).await.unwrap().unwrap();
        serving.checkpoint().await.unwrap();
    }
    let follower = Member::new(None);
    let updates = serving.reader().unwrap().updates(&serving.vector(), &follower.ledger.vector(), usize::MAX);
    for bytes in updates.unwrap() {
        follower.ledger.apply(Update::decode(&bytes).unwrap(), bytes, NOW).await.unwrap().unwrap();
    }
    assert_eq!((follower.count(0).await, follower.count(1).await), (4, 4));
    // A fleet's member learns of a separate server.
    let directory = tempfile::tempdir().unwrap();
    let server =
        Ledger::open(directory.path(), Role::Server, &settings(None), &FederationKey::public()).unwrap();
    let reporter = bulkmark_counts::Reporter { client: "a".to_owned(), spool: 1 };
    server.take_batch(reporter, 1, vec![(signature(5), 1)], None, NOW + DAY).await.unwrap().unwrap();
    server.close().await.unwrap();
    let server =
        Ledger::open(directory.path(), Role::Server, &settings(None), &FederationKey::public()).unwrap();
    let updates = server.reader().unwrap().updates(&server.vector(), &mx1.ledger.vector(), usize::MAX);
    for bytes in updates.unwrap() {
        mx1.ledger.apply(Update::decode(&bytes).unwrap(), bytes, NOW + DAY).await.unwrap().unwrap();
    }
    assert_eq!(mx1.ledger.fleet().version, 0);
    let mx1 = mx1.kill();
    assert_eq!((mx1.ledger.fleet().version, mx1.count(0).await), (0, 4));
}

/// A withdrawal covers the client's reports from up to 64 withdrawals ago: an aggregator that did not know the last ones yet may have
/// counted them. Nobody is further behind, and a longer search would be in vain at each step.
#[tokio::test]
async fn what_was_brought_under_an_older_number_is_taken_back() {
    for (times, is_taken_back) in [(0, false), (1, true), (64, true), (65, false)] {
        let (partner, aggregator) = (Member::new(Some("partner")), Member::new(None));
        partner.ledger.report(report(0, 4, NOW)).await.unwrap();
        let limits = Some(Limits { influence: 5, quota: 50_000 });
        let drafted = aggregator.draft(partner.batches(1, "partner", limits).await).await;
        assert_eq!(aggregator.apply(&drafted.bytes, 1).await, Ok(Applied::New));
        assert_eq!(aggregator.count(0).await, 4);
        let terms = Terms { withdrawn: vec![("partner".to_owned(), times)], ..terms() };
        let drafted = aggregator.ledger.draft_step(Vec::new(), terms).await.unwrap();
        assert_eq!(drafted.is_some(), is_taken_back, "{times}");
        if let Some(drafted) = drafted {
            assert_eq!(aggregator.apply(&drafted.bytes, 2).await, Ok(Applied::New));
            assert_eq!(aggregator.count(0).await, 0);
        }
    }
}

/// A step can only begin the next epoch, and a snapshot's place must fit a chain: nobody can use up the numbers.
#[tokio::test]
async fn no_number_is_so_high_that_nothing_follows() {
    let (mx1, aggregator) = (Member::new(Some("mx1")), Member::new(None));
    mx1.ledger.report(report(0, 2, NOW)).await.unwrap();
    let first = aggregator.draft(mx1.batches(1, "mx1", None).await).await;
    for member in [&mx1, &aggregator] {
        assert_eq!(member.apply(&first.bytes, 1).await, Ok(Applied::New));
    }
    let next = |change: &dyn Fn(&mut Step)| {
        let mut step = Step::decode(&first.bytes).unwrap();
        (step.head.version, step.head.before) = (2, Chain::of(&first.bytes));
        (step.marks, step.updates) = Default::default();
        change(&mut step);
        step.encode()
    };
    for epoch in [0, 3, u64::MAX] {
        let step = next(&|step| (step.head.epoch, step.head.covers) = (epoch, 1 << 62));
        let refused = mx1.apply(&step, 2).await;
        assert!(matches!(refused, Err(StepRefusal::Junk(_))), "{epoch}: {refused:?}");
    }
    // The list's bound only falls; from 1 on it would have all signatures, for good.
    let refused = mx1.apply(&next(&|step| step.head.bound = 1), 2).await;
    assert!(matches!(refused, Err(StepRefusal::Junk(_))), "{refused:?}");
    let terms = |epoch| Terms { epoch, made: 6, ..terms() };
    assert_eq!(
        aggregator.ledger.draft_step(Vec::new(), terms(3)).await.unwrap(),
        None,
        "nobody would take it"
    );
    let drafted = aggregator.ledger.draft_step(Vec::new(), terms(2)).await.unwrap().unwrap();
    assert_eq!(mx1.apply(&drafted.bytes, 2).await, Ok(Applied::New));
    assert_eq!(mx1.ledger.fleet().epoch, 2);
}

/// A batch, a step, a snapshot and a member's file of 0.1.0, from `tests/data/0.1.0/fleet`: later versions read them, and count the same.
/// `WRITE_FIXTURES=1` makes them again, which is right only until 0.1.0 is released.
#[tokio::test]
async fn what_a_fleet_of_0_1_0_wrote_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/0.1.0/fleet");
    if std::env::var_os("WRITE_FIXTURES").is_some() {
        let (mx1, aggregator) = (Member::new(Some("mx1")), Member::new(None));
        for (number, times) in [(1, 2), (2, 30)] {
            mx1.ledger.report(report(number, times, NOW)).await.unwrap();
        }
        let batches = mx1.batches(1, "mx1", None).await;
        let step = aggregator.draft(batches.clone()).await.bytes;
        for member in [&mx1, &aggregator] {
            member.apply(&step, 7).await.unwrap();
        }
        aggregator.ledger.checkpoint().await.unwrap();
        std::fs::create_dir_all(&fixture).unwrap();
        std::fs::write(fixture.join("batch.bin"), &batches[0].bytes).unwrap();
        std::fs::write(fixture.join("step.bin"), &step).unwrap();
        let snapshot = aggregator.ledger.fleet_snapshot().unwrap().unwrap().map(Result::unwrap);
        for (n, part) in snapshot.enumerate() {
            std::fs::write(fixture.join(format!("snapshot{n}.bin")), part).unwrap();
        }
        std::fs::copy(mx1.directory.path().join(FILE_NAME), fixture.join("member.redb")).unwrap();
    }
    let read = |name: &str| std::fs::read(fixture.join(name)).unwrap();
    let counts = async |member: &Member| (member.count(1).await, member.count(2).await);

    let aggregator = Member::new(None);
    let batch = LoggedBatch {
        place: 1,
        at: NOW,
        client: "mx1".to_owned(),
        limits: None,
        withdrawn: 0,
        bytes: read("batch.bin"),
    };
    let drafted = aggregator.draft(vec![batch]).await;
    assert_eq!((drafted.batches, drafted.junk, drafted.signatures), (1, 0, 2));
    assert_eq!(aggregator.apply(&read("step.bin"), 7).await, Ok(Applied::New));
    assert_eq!(counts(&aggregator).await, (2, 30));

    let late = Member::new(Some("mx2"));
    let mut assembly = FleetAssembly::new(&late.settings);
    (0..)
        .map_while(|n| std::fs::read(fixture.join(format!("snapshot{n}.bin"))).ok())
        .for_each(|part| assembly.push(&part).unwrap());
    assert_eq!(late.ledger.adopt_fleet(assembly, false).await.unwrap(), Ok(Applied::New));
    assert_eq!(counts(&late).await, (2, 30));

    let (directory, settings) = (tempfile::tempdir().unwrap(), settings(Some("mx1")));
    std::fs::copy(fixture.join("member.redb"), directory.path().join(FILE_NAME)).unwrap();
    let ledger = open(directory.path(), &settings);
    let member = Member { directory, settings, ledger };
    assert_eq!((counts(&member).await, member.ledger.fleet().version), ((2, 30), 1));
}
