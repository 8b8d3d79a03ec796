// SPDX-License-Identifier: GPL-3.0-or-later
//! The schedules, and the conditions after each move and at the end.
//!
//! After each move, while no server is restored from an old copy:
//!
//! - no ledger counts a report twice: the merged counts show its unique signature as often as it was seen, or not at all
//! - a milter shows all reports that were made there, except those lost with a replaced file, in a dropped batch, or because they were in
//!   the file at the start and a server noticed that it was an old copy; and except mail, but not user reports, that waited for too long
//! - no report that was in the file at the start is sent once the old copy was noticed
//! - no snapshot lowers a count
//!
//! If servers withdraw reports of limited clients, the reports of their milters may be gone, and counts may fall.
//!
//! At the end, when all have exchanged everything: all cells of all ledgers are equal, each report of a milter is counted once, each lost
//! one once or not at all, and no spool holds anything.
//!
//! Days pass, so that windows expire, and servers are apart for longer than any window counts. The conditions for a report hold while its
//! window counts.
//!
//! If servers are restored from old copies, and count before or after they receive others' vectors, reports acknowledged since count only
//! if a server has them, and unanswered ones may count twice. But no report is counted more often than servers acknowledged it, no count
//! that any server showed then is lower at the end, and all servers are equal, and so is each milter that knows no more than they do: a
//! milter may keep counts that all servers forgot.

use super::node::Node;
use super::world::{Holder, Made, World};
use super::{run_all, seeds};
use bulkmark_counts::state::expired::Expired;

fn one_move(world: &mut World) {
    let (s, m) = (world.below(world.servers.len()), world.below(world.milters.len()));
    let other = world.below(world.servers.len());
    let (bytes, days) = (1 + world.below(4) * 400, 1 + world.below(4) as u64);
    match world.below(105) {
        0..31 => world.report(m),
        31 if world.seed.is_multiple_of(2) => world.withdraw(m, s),
        31 => world.trim(m),
        32..54 => drop(world.send(m, s, true)),
        54..62 => {
            let node = &mut world.servers[s].node;
            let now = node.now;
            node.state().cut(now);
            node.commit();
        }
        62..74 => world.pull(Holder::Milter(m), s, bytes, true),
        74..86 if s != other => world.pull(Holder::Server(other), s, bytes, true),
        86..88 => world.raise_capacity(s),
        88..90 => world.restart_milter(m),
        90..92 => world.copy_milter(m),
        92 | 93 => world.roll_back_milter(m),
        94 => world.checkpoint_server(s),
        95 if world.chance(50) => world.milters[m].node.checkpoint_in_time(),
        95 => world.milters[m].node.checkpoint(&Expired::default()),
        96 => world.take_snapshot(Holder::Milter(m), s, false),
        97 if s != other && !world.servers_forget => world.take_snapshot(Holder::Server(other), s, false),
        98 if world.servers_forget => world.copy_server(s),
        99 if world.servers_forget => world.roll_back_server(s),
        100 | 101 => world.pass_days(days),
        102 | 103 if s != other => world.servers[s].apart ^= true,
        104 if world.chance(50) => world.servers[s].node.stop_waiting(),
        _ => (),
    }
}

fn check(world: &World) {
    let seed = world.seed;
    let nodes = || {
        let servers = world.servers.iter().map(|server| &server.node);
        servers.chain(world.milters.iter().map(|milter| &milter.node))
    };
    for milter in &world.milters {
        for &report in &milter.has {
            let Made { own, times, at, .. } = world.made[report];
            let shown = milter.node.view().count(own, milter.node.now);
            assert!(
                world.servers_forget || shown >= times || !milter.node.is_live(own, at),
                "seed {seed}: {} shows {shown} of {times}",
                milter.node.name
            );
        }
    }
    let merged = |node: &Node, made: &Made| node.counted(made.own);
    for made in &world.made {
        for node in nodes() {
            let count = merged(node, made);
            let most = if world.servers_forget { made.taken } else { 1 };
            let exact = count.is_multiple_of(made.times) && count / made.times <= most;
            assert!(exact, "seed {seed}: {} shows {count} of {made:?}", node.name);
        }
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed, seed % 4 == 3);
    let moves = world.below(300);
    for n in 0..moves {
        one_move(&mut world);
        if n % 16 == 0 {
            check(&world);
        }
    }
    check(&world);
    world.heal();
    check(&world);
    let cells = world.servers[0].node.cells();
    for node in &world.servers {
        assert!(node.node.cells() == cells, "seed {seed}: servers differ");
    }
    let known = world.servers[0].node.view().vector();
    for milter in &world.milters {
        if world.servers_forget && !known.covers(&milter.node.view().vector()) {
            continue;
        }
        assert!(milter.node.cells() == cells, "seed {seed}: {} differs", milter.node.name);
    }
    for made in world.made.iter().filter(|_| !world.withdrew) {
        let node = &world.servers[0].node;
        let shown = node.counted(made.own);
        assert!(
            shown >= made.floor || !node.is_live(made.own, made.at),
            "seed {seed}: lost is {made:?}, {shown} are left"
        );
    }
    if world.servers_forget {
        return;
    }
    for milter in &world.milters {
        let spool = milter.node.view().spool().unwrap();
        assert_eq!(spool.held(), 0, "seed {seed}: reports of {} are left", milter.node.name);
        for &report in &milter.has {
            let Made { own, times, at, .. } = world.made[report];
            let node = &world.servers[0].node;
            assert!(node.counted(own) == times || !node.is_live(own, at), "seed {seed}: lost");
        }
    }
}

/// Seeds that once failed, beyond the few that run without optimisation: a server that had only reports in no update took a new origin;
/// one that waited for its peers was killed a second time; a receipt for an empty batch named an update that was never made; a server forgot
/// the batches of a client whose counts it withdrew, and an old copy of its milter sent one to another server.
const FOUND: [u64; 5] = [114, 411, 917, 3110, 6282];

#[test]
fn all_ledgers_become_equal() {
    FOUND.into_iter().for_each(run);
    run_all(seeds(300), run);
}
