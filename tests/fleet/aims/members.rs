// SPDX-License-Identifier: GPL-3.0-or-later
//! The machines of a fleet: eight milters, some possibly with a partial copy, and two aggregators, with default settings; any of them may
//! be killed.

use super::traffic::{LETTERS, probe};
use bulkmark_counts::Shares;
use bulkmark_testing::fleet::{AGGREGATORS, Engine, Fleet, MILTERS};
use bulkmark_testing::holders::{body_of, shares, status_of, verify};
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, try_session};
use bulkmark_testing::process::processor;
use bulkmark_testing::server::Server;
use bulkmark_testing::{Daemon, Site, wait_until};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// The number of milters without the partner.
pub(crate) const COUNT: usize = MILTERS.len() - 1;

/// The number of milters with a partial copy, which ask the aggregators for other counts; these may be killed, too.
pub(crate) const PARTIAL: usize = 2;

/// The count from which a milter with a partial copy and default settings holds bulk: half of its threshold.
pub(crate) const BOUND: u32 = 10;

/// One machine.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    home: Home,
    /// Whether it has a partial copy.
    pub(crate) is_partial: bool,
    running: Mutex<Option<Daemon>>,
}

enum Home {
    Milter(Site),
    Aggregator(Server),
}

impl Member {
    fn site(&self) -> &Site {
        match &self.home {
            Home::Milter(site) => site,
            Home::Aggregator(server) => &server.site,
        }
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.site().path(match self.home {
            Home::Milter(_) => "control.sock",
            Home::Aggregator(_) => "server.sock",
        })
    }

    /// Starts it, if it does not run, and waits until it listens.
    pub(crate) fn start(&self) {
        let mut running = self.running.lock().unwrap();
        if running.is_none() {
            *running = Some(match &self.home {
                Home::Milter(site) => site.start(),
                Home::Aggregator(server) => server.start(),
            });
        }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&self) {
        let daemon = self.running.lock().unwrap().take();
        if let Some(daemon) = daemon {
            self.look_for_panics(&daemon);
            daemon.kill();
        }
    }

    /// Stops it in order.
    pub(crate) fn terminate(&self) {
        let daemon = self.running.lock().unwrap().take();
        if let Some(daemon) = daemon {
            self.look_for_panics(&daemon);
            assert!(daemon.terminate().success(), "{} did not end well", self.name);
        }
    }

    fn look_for_panics(&self, daemon: &Daemon) {
        let panicked = daemon.log.lines().into_iter().find(|line| line.contains("panicked"));
        assert_eq!(panicked, None, "{}", self.name);
    }

    /// The address on which it listens; `None` while it does not run.
    pub(crate) fn address(&self) -> Option<String> {
        self.running.lock().unwrap().as_ref().map(|daemon| daemon.address.clone())
    }

    fn pid(&self) -> Option<u32> {
        self.running.lock().unwrap().as_ref().map(Daemon::pid)
    }

    /// Its own counts of these letters.
    pub(crate) fn counts(&self, letters: impl Iterator<Item = usize>) -> Result<Vec<u32>, String> {
        let shares = self.shares(letters, false)?;
        Ok(shares.iter().map(Shares::total).collect())
    }

    /// The counts of these letters that an aggregator sends it; `bulkmark check` makes it ask.
    pub(crate) fn asked(&self, letters: impl Iterator<Item = usize>) -> Result<Vec<u32>, String> {
        let shares = self.shares(letters, true)?;
        let asked: Option<_> = shares.iter().map(|shares| shares.asked).collect();
        asked.ok_or_else(|| format!("{}: no aggregator answered", self.name))
    }

    fn shares(&self, letters: impl Iterator<Item = usize>, may_ask: bool) -> Result<Vec<Shares>, String> {
        let signatures: Vec<_> = letters.map(body_of).collect();
        shares(&self.control(), &signatures, may_ask).map_err(|e| format!("{}: {e}", self.name))
    }

    /// The number of its own steps that joined the chain.
    pub(crate) fn steps_won(&self) -> u64 {
        status_of(&self.control()).ok().and_then(|status| status.fleet).map_or(0, |fleet| fleet.steps_won)
    }
}

/// All machines.
pub(crate) struct Members {
    pub(crate) milters: Vec<Member>,
    pub(crate) aggregators: Vec<Member>,
    pub(crate) fleet: Fleet,
}

impl Members {
    /// Starts all. The last `partial` of the milters have a partial copy, and ask the aggregators for other counts.
    pub(crate) fn start(fleet: Fleet, partial: usize) -> Self {
        let member = |name, home, is_partial| Member { name, home, is_partial, running: Mutex::default() };
        let servers =
            AGGREGATORS.map(|name| Server { sync: String::new(), ..Server::new(&fleet.table(name)) });
        let milter = |(i, name): (usize, &&'static str)| {
            let is_partial = i >= COUNT - partial;
            let mut config = format!("exempt = [\"authenticated\"]\n{}", fleet.table(name));
            if is_partial {
                let entries = servers.each_ref().map(|server| server.entry(name, "read"));
                config += &format!("aggregators = [{}]\n[sync]\ncopy = \"partial\"\n", entries.join(", "));
            }
            member(name, Home::Milter(Site::new(&config)), is_partial)
        };
        let milters = MILTERS[..COUNT].iter().enumerate().map(milter).collect();
        let aggregators = AGGREGATORS.iter().zip(servers);
        let aggregators =
            aggregators.map(|(name, server)| member(name, Home::Aggregator(server), false)).collect();
        let new = Self { milters, aggregators, fleet };
        new.all().for_each(Member::start);
        new.partial().for_each(Self::have_bulk_told);
        new.settle();
        new
    }

    /// Waits until steps list bulk separately, which the first report of a milter with a partial copy requests. Its letter is not one of
    /// the counted ones.
    fn have_bulk_told(partial: &Member) {
        let address = partial.address().expect("it runs");
        try_session(&address).expect("it runs").message(&Mail::raw(&letter(2 * LETTERS)));
        wait_until("bulk that is separate", || {
            let status = status_of(&partial.control()).map_err(|e| e.to_string())?;
            if status.ledger.bulk.is_some_and(|bulk| bulk.bound == BOUND) {
                Ok(())
            } else {
                Err(partial.name.to_owned())
            }
        });
    }

    /// Starts all killed machines, and waits until all is well.
    pub(crate) fn revive(&self) {
        self.fleet.start_log();
        if let Engine::Nats(cluster, ..) = &self.fleet.log {
            cluster.wait_until_well();
        }
        self.all().for_each(Member::start);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Member> {
        self.milters.iter().chain(&self.aggregators)
    }

    /// The machines with a full copy.
    pub(crate) fn full(&self) -> impl Iterator<Item = &Member> {
        self.all().filter(|member| !member.is_partial)
    }

    /// The machines with a partial copy.
    pub(crate) fn partial(&self) -> impl Iterator<Item = &Member> {
        self.all().filter(|member| member.is_partial)
    }

    fn running(&self) -> impl Iterator<Item = &Member> {
        self.all().filter(|member| member.pid().is_some())
    }

    /// Waits until each report is in a step and all have that step. Fails with the reason if that does not happen.
    pub(crate) fn settle(&self) {
        let mut version = None;
        for member in self.running() {
            wait_until(member.name, || {
                let status = status_of(&member.control()).map_err(|e| e.to_string())?;
                let fleet = status.fleet.ok_or("it is of no fleet")?;
                let good = status.ledger.spool == 0 && fleet.in_step;
                if good { Ok(()) } else { Err(format!("spool {}: {fleet:?}", status.ledger.spool)) }
            });
        }
        // The last step may have arrived meanwhile.
        wait_until("all", || {
            for member in self.running() {
                let status = status_of(&member.control()).map_err(|e| e.to_string())?;
                let here = status.fleet.map(|fleet| fleet.version);
                if version != here {
                    let why = format!("{} is at step {here:?}, and another at {version:?}", member.name);
                    version = here;
                    return Err(why);
                }
            }
            Ok(())
        });
    }

    /// Stops all, and compares all cells of the full copies. Partial ones report networks a while after their messages, so they stop first;
    /// once all have a later report, none of these is on its way any longer.
    pub(crate) fn compare(&self) -> Result<String, String> {
        self.partial().for_each(Member::terminate);
        probe(self, 0, 2 * LETTERS + 1);
        self.settle();
        self.full().for_each(Member::terminate);
        verify(self.full().map(Member::site))
    }

    /// The processor seconds of machines and of the log's servers so far, by process id.
    pub(crate) fn processors(&self) -> [BTreeMap<u32, f64>; 2] {
        let log = match &self.fleet.log {
            Engine::Nats(cluster, ..) => cluster.nodes.iter().map(|node| node.pid()).collect(),
            Engine::Postgres(server) => server.processes(),
        };
        let machines: Vec<_> = self.all().filter_map(Member::pid).collect();
        [machines, log].map(|pids| pids.into_iter().map(|pid| (pid, processor(pid))).collect())
    }
}

/// Prints the daemons' logs, which help to find the cause of a failure.
impl Drop for Members {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for member in self.all() {
            let Ok(running) = member.running.lock() else { continue };
            let lines = running.as_ref().map(|daemon| daemon.log.lines()).unwrap_or_default();
            let others: Vec<_> = lines.iter().filter(|line| !line.contains("verdict=")).collect();
            let last = others.iter().skip(others.len().saturating_sub(40));
            println!("{}:", member.name);
            last.for_each(|line| println!("  {line}"));
        }
    }
}
