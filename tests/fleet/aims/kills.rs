// SPDX-License-Identifier: GPL-3.0-or-later
//! A kill every two seconds, while mail flows: in the end every full copy counts every letter exactly, and partial copies hold the counts
//! that they promise.

use super::members::{Members, PARTIAL};
use super::traffic::Traffic;
use super::{Kept, Line, Scale};
use bulkmark_testing::fleet::{Engine, Fleet};
use bulkmark_testing::random::Random;
use std::fmt;
use std::time::Instant;

/// Messages between two kills, if there is time for so many.
const MESSAGES: usize = 2000;

/// The parts of the time between two kills; the same number of messages begins in each.
const PARTS: usize = 100;

/// Messages that begin right before a kill, so that some are in progress even if a message takes a millisecond.
const AMID: usize = 200;

/// The victim of a kill, which stays dead until the next kill.
#[derive(Clone, Copy)]
enum Victim {
    /// One of the log's servers.
    Server(usize),
    Aggregator(usize),
    Milter(usize),
    /// All connections to one of the log's servers.
    Connections(usize),
}

/// The number of kills of each kind.
#[derive(Default)]
struct Killed {
    servers: usize,
    aggregators: usize,
    milters: usize,
    connections: usize,
}

impl Killed {
    const fn all(&self) -> usize {
        self.servers + self.aggregators + self.milters + self.connections
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, aggregators, milters, connections } = self;
        write!(
            f,
            "{} kills ({servers} of a server of the log, {aggregators} aggregators, {milters} milters, connections {connections} times)",
            self.all()
        )
    }
}

pub(crate) fn on_nats(scale: &Scale) -> Vec<Line> {
    under_fire("NATS, three nodes", Fleet::nats(), scale)
}

pub(crate) fn on_postgres(scale: &Scale) -> Vec<Line> {
    under_fire("PostgreSQL, its server killed and started again", Fleet::postgres(), scale)
}

fn under_fire(log: &str, fleet: Option<Fleet>, scale: &Scale) -> Vec<Line> {
    let what = format!("{} messages, something killed every {:?}: {log}", scale.messages, scale.pause);
    let Some(fleet) = fleet else { return vec![Line::skipped(what)] };
    let members = Members::start(fleet, PARTIAL);
    let traffic = Traffic::new(scale.messages);
    let began = Instant::now();
    let killed = fire(&members, &traffic, scale);
    let fired = began.elapsed();
    let slowest = traffic.take_slowest().of_all();
    let healing = Instant::now();
    members.settle();
    // The latest reports may not be in a step yet when a spool is seen empty.
    let mut found = None;
    let mut why = String::new();
    for _ in 0..10 {
        match traffic.check(&members) {
            Ok(exact) => {
                found = Some(exact);
                break;
            }
            Err(wrong) => why = wrong,
        }
        members.settle();
    }
    let healed = healing.elapsed();
    let cells = members.compare();
    let aim = "every count exact at all holders, full and partial";
    let Some(found) = found else { return vec![Line::new(what, aim, why, Kept::Wrong)] };
    let partial = found.partial.map(|known| format!("; {known}")).unwrap_or_default();
    let measured = format!(
        "{} of {} letters answered and counted once each at {} full holders, {} not answered of which {} count{partial}; {killed} in {:.0} s; \
         equal {:.1} s after the last message; slowest message {} ms",
        found.certain,
        found.letters,
        found.holders,
        found.perhaps,
        found.counted,
        fired.as_secs_f64(),
        healed.as_secs_f64(),
        slowest.as_millis()
    );
    let kept = match cells {
        Ok(_) => Kept::Yes,
        Err(difference) => {
            println!("{difference}");
            return vec![Line::new(
                what,
                aim,
                format!("{measured}; BUT the cells of full ones differ"),
                Kept::Wrong,
            )];
        }
    };
    let mut lines = vec![Line::new(what, aim, measured, kept)];
    if found.uncounted > 0 {
        let measured = format!("{} messages were answered without a count", found.uncounted);
        lines.push(Line::new("judged without counts", "none", measured, Kept::No));
    }
    lines
}

/// Sends all messages, spread over the kills.
fn fire(members: &Members, traffic: &Traffic, scale: &Scale) -> Killed {
    let least = (scale.messages / MESSAGES).max(scale.kills);
    let mut random = Random::new(scale.seed);
    let mut killed = Killed::default();
    std::thread::scope(|scope| {
        let _end = traffic.end();
        traffic.flow(scope, members, scale.seed);
        let mut dead: Option<Victim> = None;
        let mut kinds = Vec::new();
        while killed.all() < least || traffic.begun() < scale.messages {
            for part in 1..=PARTS {
                let share = (killed.all() * PARTS + part) as f64 / (least * PARTS) as f64;
                traffic.allow((scale.messages as f64 * share.min(1.0)) as usize);
                std::thread::sleep(scale.pause / PARTS as u32);
            }
            if let Some(victim) = dead.take() {
                bring_back(members, victim);
            }
            if kinds.is_empty() {
                kinds = (0..4).collect();
            }
            let kind = kinds.swap_remove(random.below(kinds.len()));
            let victim = choose(members, kind, &mut random);
            *match victim {
                Victim::Server(_) => &mut killed.servers,
                Victim::Aggregator(_) => &mut killed.aggregators,
                Victim::Milter(_) => &mut killed.milters,
                Victim::Connections(_) => &mut killed.connections,
            } += 1;
            traffic.begin_more(AMID, scale.messages);
            kill(members, victim);
            dead = Some(victim);
        }
        if let Some(victim) = dead {
            bring_back(members, victim);
        }
    });
    killed
}

/// A victim of this kind: each has its turn before any has the next.
fn choose(members: &Members, kind: usize, random: &mut Random) -> Victim {
    let servers = match &members.fleet.log {
        Engine::Nats(cluster, ..) => cluster.nodes.len(),
        Engine::Postgres(_) => 1,
    };
    match kind {
        0 => Victim::Server(random.below(servers)),
        1 => Victim::Aggregator(random.below(members.aggregators.len())),
        2 => Victim::Milter(random.below(members.milters.len())),
        _ => Victim::Connections(random.below(servers)),
    }
}

fn kill(members: &Members, victim: Victim) {
    match (victim, &members.fleet.log) {
        (Victim::Aggregator(i), _) => members.aggregators[i].kill(),
        (Victim::Milter(i), _) => members.milters[i].kill(),
        (Victim::Server(i), Engine::Nats(cluster, ..)) => cluster.nodes[i].kill(),
        (Victim::Server(_), Engine::Postgres(server)) => server.kill_all(),
        (Victim::Connections(i), Engine::Nats(cluster, ..)) => cluster.nodes[i].proxy.cut(),
        (Victim::Connections(_), Engine::Postgres(server)) => {
            // It may be about to start, and then it has no connections.
            let _ = server.cut();
        }
    }
}

fn bring_back(members: &Members, victim: Victim) {
    match (victim, &members.fleet.log) {
        (Victim::Aggregator(i), _) => members.aggregators[i].start(),
        (Victim::Milter(i), _) => members.milters[i].start(),
        (Victim::Server(i), Engine::Nats(cluster, ..)) => cluster.nodes[i].start(),
        (Victim::Server(_), Engine::Postgres(server)) => server.run(),
        (Victim::Connections(_), _) => (),
    }
}
