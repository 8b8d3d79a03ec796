// SPDX-License-Identifier: GPL-3.0-or-later
//! The schedules, and the conditions after each move and at the end.
//!
//! After each move:
//!
//! - no holder counts a report twice: its unique signature is shown as often as it was seen, or not at all
//! - a milter shows exactly the reports that were made there, except those lost with a replaced file, or dropped because they were in the
//!   file at the start and the marks showed that it was an old copy
//! - a holder of bulk alone, with the same steps as a holder of everything, shows the same counts of bulk and user reports made since the
//!   list began (a sixteenth less at most for counts far above its bound), and no higher ones
//!
//! At the end, when nothing is lost any more: all cells of all holders are equal, and those of a new member; each report of a milter is
//! counted once; signatures in many reports have the sum as their count; no spool holds anything.
//!
//! If both the log and an aggregator are replaced by old copies, reports that both forgot are lost: then only the cells must be equal. If
//! filters are crowded, counts may be too high, but never too low.

use super::super::node::{NOW, Node};
use super::super::world::signature;
use super::super::{run_all, seeds};
use super::member::Member;
use super::world::{Made, SHARED, World};
use bulkmark_counts::settings::Role;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::fleet::keeps::Keeps;
use bulkmark_counts::state::fleet::marks::KnownMark;
use bulkmark_counts::state::note_queue::bound_for;
use bulkmark_types::{Signature, UNIT};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

fn one_move(world: &mut World) {
    let (a, m) = (world.below(world.aggregators.len()), world.below(world.milters.len()));
    let (most, times) = (1 + world.below(6), 1 + usize::from(world.chance(10)));
    match world.below(104) {
        0..28 => world.report(m),
        28..44 => world.push(m, true),
        44..58 => _ = world.aggregators[a].follow(&world.log, most, times),
        58..72 => drop(world.draft(a, true)),
        72..84 => _ = world.follow(m, most, times),
        84 | 85 => world.deliver(false),
        86 => world.junk_step(),
        87 => world.junk_batch(),
        88 => world.restart_milter(m),
        89 => world.copy_milter(m),
        90 => world.roll_back_milter(m),
        91 => world.restart_aggregator(a),
        92 => world.milters[m].member.node.checkpoint(&Expired::default()),
        93 => world.aggregators[a].node.checkpoint(&Expired::default()),
        94 | 95 => {
            let forget = world.chance(50);
            world.snapshot(a, forget);
        }
        96 if world.seed.is_multiple_of(2) => world.withdraw(m),
        97 => world.copy_log(),
        98 => world.roll_back_log(false),
        99 => world.roll_back_log(true),
        100 => world.copy_aggregator(a),
        101 if world.forgets => world.roll_back_aggregator(a),
        102 => world.heal_aggregator(a),
        _ => (),
    }
}

/// Returns the signatures of all reports.
fn signatures_of(world: &World) -> impl Iterator<Item = Signature> {
    (0..SHARED).map(signature).chain(world.made.iter().map(|(made, _)| made.own))
}

fn check(world: &World) {
    let seed = world.seed;
    if world.forgets {
        return;
    }
    for milter in &world.milters {
        for &report in &milter.has {
            let (Made { own, times }, _) = world.made[report];
            let shown = milter.member.node.view().count(own, NOW);
            // A list lacks signatures that are not bulk, and those counted before anybody asked for the list.
            let unlisted = milter.twin.is_some()
                && milter.member.node.view().spool().unwrap().pending(own) == 0
                && shown == 0;
            let right = if world.crowded { shown >= times } else { shown == times } || unlisted;
            assert!(right, "seed {seed}: {} shows {shown} of {times}", milter.member.node.name);
        }
    }
    for (made, _) in world.made.iter().filter(|_| !world.crowded) {
        for member in world.members() {
            let count = member.node.counted(made.own);
            assert!(count == 0 || count == made.times, "seed {seed}: {} shows {count}", member.node.name);
        }
    }
}

/// Compares milters with a partial copy with those that hold everything. After a withdrawal the list starts over, which this does not cover.
fn compare(world: &mut World) {
    let (seed, withdraws) = (world.seed, world.seed.is_multiple_of(2) || world.forgets);
    let signatures: Vec<_> = signatures_of(world).collect();
    for milter in &mut world.milters {
        let Some(twin) = &mut milter.twin else { continue };
        if twin.member.mark() != milter.member.mark() {
            continue;
        }
        let bound = milter.member.node.view().counts().bulk.bound;
        let all: BTreeMap<_, _> = signatures.iter().map(|&s| (s, twin.member.node.counted(s))).collect();
        if bound > 0 && twin.before.as_ref().is_none_or(|(known, _)| *known != bound) {
            twin.before = Some((bound, all.clone()));
        }
        let before = |signature: &Signature| {
            twin.before.as_ref().and_then(|(_, before)| before.get(signature)).copied().unwrap_or(0)
        };
        for (signature, count) in &all {
            let held = milter.member.node.view().counts().held.count(*signature, NOW);
            let name = &milter.member.node.name;
            assert!(held <= *count, "seed {seed}: {name} holds {held}, and there are {count}");
            let is_listed = bound > 0 && *count >= bound_for(*signature, bound) && *count > before(signature);
            let exact = 16 * if signature.is_user_report() { bound.max(UNIT) } else { bound };
            let low = if *count < exact { 0 } else { count / 16 };
            let right = !is_listed || withdraws || world.crowded || held + low >= *count;
            assert!(right, "seed {seed}: {name} holds {held} of {count}");
            world.compared += usize::from(is_listed && !withdraws);
            world.user_reports += usize::from(is_listed && !withdraws && signature.is_user_report());
        }
    }
}

/// Runs without loss until nothing changes.
fn heal(world: &mut World) {
    for round in 0..if world.forgets { 20 } else { 6 } {
        if world.forgets {
            // A member that follows a forgotten history learns so from later steps; it is silent until then, so others must report.
            world.report(0);
            world.another_reports(round);
        }
        world.deliver(true);
        for a in 0..world.aggregators.len() {
            world.heal_aggregator(a);
            world.snapshot(a, false);
        }
        for m in 0..world.milters.len() {
            while !world.follow(m, usize::MAX, 1) {}
            if world.forgets {
                world.milters[m].member.give_up(&world.log);
                world.milters[m].twin.iter_mut().for_each(|twin| twin.member.give_up(&world.log));
                while !world.follow(m, usize::MAX, 1) {}
            }
            world.push(m, false);
        }
        for a in 0..world.aggregators.len() {
            world.aggregators[a].follow_all(&world.log);
            for _ in 0..50 {
                if !world.draft(a, false) {
                    break;
                }
                world.aggregators[a].follow_all(&world.log);
            }
        }
    }
    for m in 0..world.milters.len() {
        while !world.follow(m, usize::MAX, 1) {}
    }
    for aggregator in &mut world.aggregators {
        aggregator.follow_all(&world.log);
    }
}

/// Returns a new, empty member.
fn newcomer(world: &World) -> Member {
    let settings = world.aggregators[0].node.settings().clone();
    let mut member = Member::new(Node::new("newcomer".to_owned(), Role::Cache, settings, 1000));
    member.follow_all(&world.log);
    member
}

/// Returns a member's knowledge of the spools.
fn marks(member: &Member) -> Vec<(String, u64, KnownMark)> {
    let marks = member.node.view().counts().fleet.marks.iter();
    marks.map(|(client, spool, known)| (client.to_owned(), spool, known.clone())).collect()
}

fn run(seed: u64) -> [usize; 3] {
    let mut world = World::new(seed);
    let moves = world.below(400);
    for n in 0..moves {
        one_move(&mut world);
        compare(&mut world);
        if n % 8 == 0 {
            check(&world);
        }
    }
    check(&world);
    heal(&mut world);
    check(&world);
    let twins = world.milters.iter_mut().filter_map(|milter| milter.twin.as_mut());
    twins.for_each(|twin| twin.member.follow_all(&world.log));
    compare(&mut world);
    let (cells, mark) = (world.aggregators[0].node.cells(), world.aggregators[0].mark());
    let newcomer = newcomer(&world);
    for member in world.members().chain([&newcomer]) {
        let name = &member.node.name;
        let passed = &member.passed;
        assert_eq!(member.mark().version, mark.version, "seed {seed}: {name} is not up to date: {passed:?}");
        if Keeps::of(member.node.settings()).cells {
            assert!(member.node.cells() == cells, "seed {seed}: {name} differs");
        } else {
            let windows = member.node.view().counts().merged.windows();
            assert!(windows.is_empty(), "seed {seed}: {name} holds cells");
        }
        assert_eq!(marks(member), marks(&world.aggregators[0]), "seed {seed}: the marks of {name} differ");
    }
    let held = |made: &Made| newcomer.node.counted(made.own);
    for milter in world.milters.iter().filter(|_| !world.forgets) {
        let spool = milter.member.node.view().spool().unwrap();
        assert_eq!(spool.held(), 0, "seed {seed}: reports of {} are left", milter.member.node.name);
        for &report in &milter.has {
            let (made, _) = &world.made[report];
            assert!(held(made) == made.times || world.crowded, "seed {seed}: lost");
        }
    }
    for partial in world.milters.iter().filter(|milter| milter.twin.is_some()) {
        let list = |member: &Member| {
            let counts = member.node.view().counts();
            signatures_of(&world).map(|s| counts.held.count(s, NOW)).collect::<Vec<_>>()
        };
        let name = &partial.member.node.name;
        assert_eq!(list(&partial.member), list(&newcomer), "seed {seed}: the list of {name} differs");
        let vector = |member: &Member| member.node.view().vector();
        assert_eq!(vector(&partial.member), vector(&newcomer), "seed {seed}: the vector of {name} differs");
    }
    for shared in (0..SHARED).filter(|_| !world.crowded && !world.forgets) {
        let of = world.made.iter().filter(|(made, of)| *of == shared && held(made) > 0);
        let sum: u32 = of.map(|(made, _)| made.times).sum();
        assert_eq!(newcomer.node.counted(signature(shared)), sum, "seed {seed}: the sum of all");
    }
    [usize::try_from(mark.version).unwrap(), world.compared, world.user_reports]
}

#[test]
fn a_fleet_counts_each_report_once() {
    let (seeds, sums) = (seeds(80), [const { AtomicUsize::new(0) }; 3]);
    let number = usize::try_from(seeds.end - seeds.start).unwrap();
    run_all(seeds, |seed| {
        sums.iter().zip(run(seed)).for_each(|(sum, of)| _ = sum.fetch_add(of, Ordering::Relaxed));
    });
    let [steps, compared, user_reports] = sums.map(AtomicUsize::into_inner);
    assert!(number < 20 || steps > 5 * number, "{steps} steps are too few to prove anything");
    assert!(number < 20 || compared > 5 * number, "{compared} counts of bulk are too few to compare");
    assert!(number < 20 || user_reports > 5 * number, "{user_reports} counts of user reports are too few");
}
