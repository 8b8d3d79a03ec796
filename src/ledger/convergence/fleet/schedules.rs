// SPDX-License-Identifier: GPL-3.0-or-later
//! The schedules, and what has to be true after each move and in the end.
//!
//! After each move:
//!
//! - no holder counts a report twice: its own signature is shown as often as it was seen, or not at all
//! - a milter shows what it has, exactly: all that was reported there, but for what was lost with a file that was put back, or dropped
//!   because it was there at the start and the marks said that the file was an old copy
//!
//! In the end, when nothing is lost any more: all cells of all holders are equal, and those of one that begins then; all that a milter
//! has is counted, once; what many reports have in common is their sum; no spool holds anything.
//!
//! Where the log and an aggregator are both put back, what both forgot is lost: then only the cells have to be equal. Where filters
//! are crowded, counts may be too high, and never too low.

use super::super::node::{NOW, Node};
use super::super::world::{Made, signature};
use super::member::Member;
use super::world::{SHARED, World};
use crate::ledger::settings::Role;
use crate::ledger::state::changes::Expired;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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
        96 if world.seed % 2 == 0 => world.withdraw(m),
        97 => world.copy_log(),
        98 => world.roll_back_log(false),
        99 => world.roll_back_log(true),
        100 => world.copy_aggregator(a),
        101 if world.forgets => world.roll_back_aggregator(a),
        102 => world.heal_aggregator(a),
        _ => (),
    }
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
            let right = if world.crowded { shown >= times } else { shown == times };
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

/// Nothing is lost any more, until nothing changes.
fn heal(world: &mut World) {
    for _ in 0..if world.forgets { 20 } else { 6 } {
        if world.forgets {
            // Who goes on from a history that is forgotten hears so from the steps that follow.
            world.report(0);
        }
        world.deliver(true);
        for a in 0..world.aggregators.len() {
            world.heal_aggregator(a);
            world.snapshot(a, false);
        }
        for m in 0..world.milters.len() {
            while !world.follow(m, usize::MAX, 1) {}
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

/// One that begins now, with nothing.
fn newcomer(world: &World) -> Member {
    let settings = world.aggregators[0].node.settings().clone();
    let mut member = Member::new(Node::new("newcomer".to_owned(), Role::Cache, settings, 1000));
    member.follow_all(&world.log);
    member
}

fn run(seed: u64) -> usize {
    let mut world = World::new(seed);
    let moves = world.below(400);
    for n in 0..moves {
        one_move(&mut world);
        if n % 8 == 0 {
            check(&world);
        }
    }
    check(&world);
    heal(&mut world);
    check(&world);
    let (cells, mark) = (world.aggregators[0].node.cells(), world.aggregators[0].mark());
    let newcomer = newcomer(&world);
    for member in world.members().chain([&newcomer]) {
        let name = &member.node.name;
        let passed = &member.passed;
        assert_eq!(member.mark().version, mark.version, "seed {seed}: {name} is not up to date: {passed:?}");
        assert!(member.node.cells() == cells, "seed {seed}: {name} differs");
        let marks = |member: &Member| -> Vec<_> {
            let fleet = &member.node.view().counts().fleet;
            fleet
                .marks
                .iter()
                .map(|(client, spool, known)| (client.to_owned(), spool, known.clone()))
                .collect()
        };
        assert_eq!(marks(member), marks(&world.aggregators[0]), "seed {seed}: the marks of {name} differ");
    }
    let held = |made: &Made| newcomer.node.counted(made.own);
    for milter in world.milters.iter().filter(|_| !world.forgets) {
        let spool = milter.member.node.view().spool().unwrap();
        assert_eq!(spool.len(), 0, "seed {seed}: reports of {} are left", milter.member.node.name);
        for &report in &milter.has {
            let (made, _) = &world.made[report];
            assert!(held(made) == made.times || world.crowded, "seed {seed}: lost");
        }
    }
    for shared in (0..SHARED).filter(|_| !world.crowded && !world.forgets) {
        let of = world.made.iter().filter(|(made, of)| *of == shared && held(made) > 0);
        let sum: u32 = of.map(|(made, _)| made.times).sum();
        assert_eq!(newcomer.node.counted(signature(shared)), sum, "seed {seed}: the sum of all");
    }
    usize::try_from(mark.version).unwrap()
}

#[test]
fn a_fleet_counts_each_report_once() {
    let seeds: u64 = if cfg!(debug_assertions) { 80 } else { 10_000 };
    let (next, steps) = (AtomicU64::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&n| n < seeds) {
                    steps.fetch_add(run(seed), Ordering::Relaxed);
                }
            });
        }
    });
    let steps = steps.into_inner();
    assert!(steps > 5 * usize::try_from(seeds).unwrap(), "{steps} steps are too few to tell anything");
}
