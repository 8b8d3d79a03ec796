// SPDX-License-Identifier: GPL-3.0-or-later
//! Three engines that carry counts from one milter to others, with the same interface: a server over HTTP, or a fleet's aggregators with
//! their log in NATS or in PostgreSQL.

use bulkmark_testing::fleet::{AGGREGATORS, Engine as Log, Fleet, MILTERS};
use bulkmark_testing::gate::Gate;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, wait_until};
use serde_json::Value;
use std::cell::RefCell;
use std::fs;
use std::time::Duration;

/// The engine.
#[derive(Clone, Copy)]
pub(crate) enum Engine {
    Http,
    Nats,
    Postgres,
}

/// A running engine.
pub(crate) struct Rig {
    /// A fleet's log; `None` with a server.
    log: Option<Fleet>,
    /// Servers or aggregators, which count.
    servers: Vec<Server>,
    running: RefCell<Vec<Daemon>>,
    /// The gates between the first milter and the engine.
    gates: Vec<Gate>,
}

impl Rig {
    /// Starts it; `None` if the engine is missing.
    pub(crate) fn start(engine: Engine) -> Option<Self> {
        match engine {
            Engine::Http => Some(Self::of_servers(vec![Server::new("")])),
            Engine::Nats => Fleet::nats().map(Self::of_fleet),
            Engine::Postgres => Fleet::postgres().map(Self::of_fleet),
        }
    }

    /// The same with its counts in two places: a server has a peer. A fleet always keeps them so.
    pub(crate) fn start_double(engine: Engine) -> Option<Self> {
        match engine {
            Engine::Http => Some(Self::of_servers(Server::peers("").into())),
            _ => Self::start(engine),
        }
    }

    fn of_servers(mut servers: Vec<Server>) -> Self {
        for server in &mut servers {
            "interval = \"50ms\"\nkeep-updates = \"1s\"".clone_into(&mut server.sync);
        }
        let gates = vec![Gate::new(servers[0].port)];
        Self::running(None, servers, gates)
    }

    fn of_fleet(fleet: Fleet) -> Self {
        let ports = match &fleet.log {
            Log::Postgres(log) => vec![log.port],
            Log::Nats(cluster, ..) => cluster.nodes.iter().map(|node| node.port).collect(),
        };
        let servers = AGGREGATORS.iter().map(|name| fleet.aggregator(name)).collect();
        Self::running(Some(fleet), servers, ports.into_iter().map(Gate::new).collect())
    }

    fn running(log: Option<Fleet>, servers: Vec<Server>, gates: Vec<Gate>) -> Self {
        let rig = Self { log, servers, running: RefCell::default(), gates };
        rig.start_counting();
        rig
    }

    /// The n-th milter; the first one connects through the gates.
    pub(crate) fn milter(&self, n: usize) -> Site {
        let Some(fleet) = &self.log else {
            let server = &self.servers[n % self.servers.len()];
            let gate = format!("http://127.0.0.1:{}", self.gates[0].port);
            let url = if n == 0 { gate } else { server.url() };
            return milter(&[server.entry_by(&url, MILTERS[n], "report")]);
        };
        let mut site = fleet.milter(MILTERS[n]);
        if n == 0 {
            let ports: Vec<_> = match &fleet.log {
                Log::Postgres(log) => vec![log.port],
                Log::Nats(cluster, ..) => cluster.nodes.iter().map(|node| node.proxy.port).collect(),
            };
            for (port, gate) in ports.iter().zip(&self.gates) {
                let [from, to] = [*port, gate.port].map(|port| format!("127.0.0.1:{port}"));
                site.extra = site.extra.replace(&from, &to);
            }
        }
        site
    }

    /// Requests of the first milter reach the engine, but no answers come back.
    pub(crate) fn keep_answers(&self) {
        self.gates.iter().for_each(Gate::keep_answers);
    }

    pub(crate) fn let_answers_pass(&self) {
        self.gates.iter().for_each(Gate::let_answers_pass);
    }

    /// Kills the servers or aggregators.
    pub(crate) fn kill_counting(&self) {
        self.running.borrow_mut().drain(..).for_each(Daemon::kill);
    }

    /// Stops them in order.
    pub(crate) fn end_counting(&self) {
        self.running.borrow_mut().drain(..).for_each(|daemon| assert!(daemon.terminate().success()));
    }

    pub(crate) fn start_counting(&self) {
        *self.running.borrow_mut() = self.servers.iter().map(Server::start).collect();
    }

    /// Kills the engine: the server, or all servers of the log at the same time.
    pub(crate) fn kill(&self) {
        match self.log.as_ref().map(|fleet| &fleet.log) {
            None => self.kill_counting(),
            Some(Log::Postgres(log)) => log.kill_all(),
            Some(Log::Nats(cluster, ..)) => cluster.kill_all(),
        }
    }

    /// Restarts the killed servers.
    pub(crate) fn start_again(&self) {
        match self.log.as_ref().map(|fleet| &fleet.log) {
            None => self.start_counting(),
            Some(Log::Postgres(log)) => {
                log.run();
                log.wait_until_ready();
            }
            Some(Log::Nats(cluster, ..)) => {
                cluster.start_all();
                cluster.wait_until_well();
            }
        }
    }

    /// Copies the engine's data; of two servers, the first one's.
    pub(crate) fn save(&self) {
        match self.log.as_ref().map(|fleet| &fleet.log) {
            None => {
                self.end_counting();
                fs::copy(self.file(), self.servers[0].site.path("copy")).unwrap();
                self.start_counting();
            }
            Some(Log::Postgres(log)) => log.save(),
            Some(Log::Nats(cluster, ..)) => cluster.save(),
        }
    }

    /// Kills it, and restores the copy.
    pub(crate) fn put_back(&self) {
        match self.log.as_ref().map(|fleet| &fleet.log) {
            None => {
                self.kill_counting();
                fs::copy(self.servers[0].site.path("copy"), self.file()).unwrap();
                self.start_counting();
            }
            Some(Log::Postgres(log)) => log.put_back(),
            Some(Log::Nats(cluster, ..)) => cluster.put_back(),
        }
    }

    fn file(&self) -> std::path::PathBuf {
        self.servers[0].site.path("state/ledger.redb")
    }

    /// Whether there is a snapshot in the log.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot_put().is_some()
    }

    /// The last step whose snapshot the aggregators wrote.
    fn snapshot_put(&self) -> Option<u64> {
        let lines = self.running.borrow().iter().flat_map(|daemon| daemon.log.lines()).collect::<Vec<_>>();
        let line = lines.iter().rev().find(|line| line.contains("was put into the log"))?;
        let (_, rest) = line.split_once("a snapshot of step ")?;
        rest.split(' ').next()?.parse().ok()
    }

    /// Waits until a newcomer can begin with a snapshot, of this step if there are steps. A server makes its snapshot from its checkpoint,
    /// which it writes when it stops.
    pub(crate) fn snapshot(&self) -> u64 {
        if self.log.is_none() {
            self.end_counting();
            self.start_counting();
            return 0;
        }
        let mut found = None;
        wait_until("a snapshot", || {
            found = self.snapshot_put();
            found.map(drop).ok_or_else(|| "none was put into the log".to_owned())
        });
        found.unwrap()
    }

    /// Drops all single updates that a snapshot includes: in a log, the steps up to this one. Later ones stay.
    pub(crate) fn forget(&self, step: u64) {
        match &self.log {
            None => {
                // Updates are kept for a second, and nothing signals its end.
                std::thread::sleep(Duration::from_millis(2100));
                self.servers[0].report_until_checkpoint("many");
            }
            Some(fleet) if matches!(fleet.log, Log::Postgres(_)) => {
                fleet.sql(&format!("delete from bulkmark.steps where place <= {step}")).unwrap();
            }
            Some(fleet) => forget_steps(fleet, step),
        }
    }
}

/// Limits the stream of steps, for a moment, to those behind this one.
fn forget_steps(fleet: &Fleet, step: u64) {
    let before = fleet.jetstream("STREAM.INFO.BULKMARK_STEPS", &Value::Null);
    let behind = before["state"]["last_seq"].as_u64().unwrap() - step;
    let mut config = before["config"].clone();
    config["max_msgs"] = behind.into();
    fleet.jetstream("STREAM.UPDATE.BULKMARK_STEPS", &config);
    fleet.jetstream("STREAM.UPDATE.BULKMARK_STEPS", &before["config"]);
}

/// Prints the daemons' logs, which help to find the cause of a failure.
impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for daemon in self.running.borrow().iter() {
                println!("{}\n", daemon.log.lines().join("\n"));
            }
        }
    }
}
