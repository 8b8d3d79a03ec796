// SPDX-License-Identifier: GPL-3.0-or-later
//! The time until a count is known elsewhere, normally and after a kill; and the cost of an idle fleet.

use super::members::{COUNT, Member, Members, PARTIAL};
use super::traffic::{LETTERS, Slowest, Traffic, probe};
use super::{Kept, Line, Scale};
use bulkmark_testing::fleet::{Engine, Fleet};
use bulkmark_testing::random::Random;
use std::time::{Duration, Instant};

/// The number of probes from A to B, and of kills of each kind.
const PROBES: usize = 30;
const DEATHS: usize = 5;

/// Messages a second during kills.
const LOAD: usize = 200;

/// The tolerance by which a message during a kill may take longer than the slowest one without. A message that waited for the log, which is
/// away for a second and more, would be far beyond. A milter with a partial copy may ask an aggregator, for half a second in all.
const LONGER: Duration = Duration::from_millis(100);
const ASKING: Duration = Duration::from_millis(500);

/// The duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(60);

pub(crate) fn on_nats(scale: &Scale) -> Vec<Line> {
    all("NATS", Fleet::nats(), scale)
}

pub(crate) fn on_postgres(scale: &Scale) -> Vec<Line> {
    all("PostgreSQL", Fleet::postgres(), scale)
}

fn all(log: &str, fleet: Option<Fleet>, scale: &Scale) -> Vec<Line> {
    let Some(fleet) = fleet else { return vec![Line::skipped(format!("times: {log}"))] };
    let members = Members::start(fleet, PARTIAL);
    let mut random = Random::new(scale.seed);
    let mut probes = Probes { members: &members, traffic: Traffic::new(usize::MAX), next: LETTERS };
    let mut lines = vec![probes.a_to_b(log, &mut random)];
    lines.push(idle(log, &members));
    let of = if matches!(members.fleet.log, Engine::Nats(..)) { "the leader" } else { "the server" };
    let name = format!("{of} of the log dies under load: {log}");
    lines.extend(probes.deaths(&name, 15.0, &mut random, |members, n| {
        match &members.fleet.log {
            Engine::Nats(cluster, ..) => {
                let leader = cluster.leader(["BULKMARK_BATCHES", "BULKMARK_STEPS"][n % 2]);
                let began = Instant::now();
                leader.kill();
                began
            }
            Engine::Postgres(server) => {
                let began = Instant::now();
                server.kill_all();
                // There is no other server.
                server.run();
                began
            }
        }
    }));
    let name = format!("the aggregator that made the last step dies under load: {log}");
    let mut won: Vec<u64> = members.aggregators.iter().map(Member::steps_won).collect();
    lines.extend(probes.deaths(&name, 3.0, &mut random, |members, _| {
        let now: Vec<u64> = members.aggregators.iter().map(Member::steps_won).collect();
        let grown = |i: &usize| now[*i].saturating_sub(won[*i]);
        let last = (0..now.len()).max_by_key(grown).unwrap();
        won = vec![0; now.len()];
        won[1 - last] = now[1 - last];
        let began = Instant::now();
        members.aggregators[last].kill();
        began
    }));
    lines
}

/// Letters whose counts spread from one milter to all others.
struct Probes<'a> {
    members: &'a Members,
    /// The load during kills.
    traffic: Traffic,
    /// The number of the next letter.
    next: usize,
}

impl Probes<'_> {
    fn go(&mut self) {
        self.next += 1;
        probe(self.members, self.next % COUNT, self.next);
    }

    fn a_to_b(&mut self, log: &str, random: &mut Random) -> Line {
        let mut times = Vec::new();
        for _ in 0..PROBES {
            std::thread::sleep(Duration::from_millis(random.next() % 2000));
            let began = Instant::now();
            self.go();
            times.push(began.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let longest = times[PROBES - 1];
        let measured = format!(
            "{longest:.2} s at most of {PROBES}, median {:.2} s, to seven others, partial ones too",
            times[PROBES / 2]
        );
        Line::timed(format!("from A to B, default settings: {log}"), "<= 2 s", measured, longest <= 2.0)
    }

    /// Kills members again and again under load; each time it waits until a report made at that moment reaches all others. Returns that
    /// time, and the slowest message from a kill until then, beside the slowest under the same load without kills, for about as long.
    fn deaths(
        &mut self,
        name: &str,
        aim: f64,
        random: &mut Random,
        mut kill: impl FnMut(&Members, usize) -> Instant,
    ) -> Vec<Line> {
        let mut times = Vec::new();
        let [mut calm, mut slowest] = [Slowest::default(); 2];
        self.traffic.go_on();
        std::thread::scope(|scope| {
            let (members, seed) = (self.members, random.next());
            let traffic = &self.traffic;
            let _end = traffic.end();
            traffic.flow(scope, members, seed);
            scope.spawn(|| traffic.pour(LOAD));
            // Lets the initial connections settle first.
            std::thread::sleep(Duration::from_secs(2));
            traffic.take_slowest();
            for n in 1..=DEATHS {
                std::thread::sleep(Duration::from_millis(4000 + random.next() % 1000));
                probe(members, n % COUNT, self.next + n);
            }
            calm = calm.max(traffic.take_slowest());
            self.next += DEATHS;
            for n in 0..DEATHS {
                std::thread::sleep(Duration::from_millis(4000 + random.next() % 1000));
                traffic.take_slowest();
                let began = kill(members, n);
                self.next += 1;
                probe(members, self.next % COUNT, self.next);
                times.push(began.elapsed().as_secs_f64());
                slowest = slowest.max(traffic.take_slowest());
                members.revive();
            }
        });
        self.members.settle();
        times.sort_by(f64::total_cmp);
        let longest = times[DEATHS - 1];
        let measured = format!("{longest:.1} s at most of {DEATHS}, median {:.1} s", times[DEATHS / 2]);
        let mut lines = vec![
            Line::timed(
                format!("{name}: counts are shared again"),
                &format!("<= {aim} s"),
                measured,
                longest <= aim,
            ),
            no_message_waits(name, slowest, calm),
        ];
        if let Err(wrong) = self.traffic.check(self.members) {
            lines.push(Line::new(name, "every count exact", wrong, Kept::Wrong));
        }
        lines
    }
}

/// Checks that no message waited during a kill, since messages are judged from memory.
fn no_message_waits(name: &str, slowest: Slowest, calm: Slowest) -> Line {
    let aim = format!(
        "slowest <= {} ms more than with nobody dying, {} ms at milters with a partial copy, which ask",
        LONGER.as_millis(),
        ASKING.as_millis()
    );
    let measured = format!(
        "slowest {} ms, with nobody dying {} ms; at milters with a partial copy {} ms and {} ms",
        slowest.full.as_millis(),
        calm.full.as_millis(),
        slowest.partial.as_millis(),
        calm.partial.as_millis()
    );
    let kept = slowest.full <= calm.full + LONGER && slowest.partial <= calm.partial + ASKING;
    Line::timed(format!("{name}: no message waits"), &aim, measured, kept)
}

/// The share of a core that all machines and the log's servers use without mail.
fn idle(log: &str, members: &Members) -> Line {
    members.settle();
    let [machines, servers] = processors_of(members);
    members.all().for_each(Member::terminate);
    let [_, alone] = processors_of(members);
    members.revive();
    members.settle();
    let measured = format!(
        "{:.2} %: {COUNT} milters, {PARTIAL} of them partial, and {} aggregators {machines:.2} %, the log's servers {servers:.2} % ({alone:.2} % \
         when no member runs)",
        machines + servers,
        members.aggregators.len()
    );
    Line::timed(format!("an idle fleet: {log}"), "< 1 % of a core", measured, machines + servers < 1.0)
}

/// The share of a core that the members and the log's servers use while idle, in percent.
fn processors_of(members: &Members) -> [f64; 2] {
    std::thread::sleep(Duration::from_secs(5));
    let (before, began) = (members.processors(), Instant::now());
    std::thread::sleep(IDLE);
    let (after, seconds) = (members.processors(), began.elapsed().as_secs_f64());
    [0, 1].map(|i| {
        let grown = after[i].iter().map(|(pid, now)| now - before[i].get(pid).unwrap_or(&0.0));
        100.0 * grown.sum::<f64>() / seconds
    })
}
