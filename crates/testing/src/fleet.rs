// SPDX-License-Identifier: GPL-3.0-or-later
//! Fleets under test: real daemons on a real log.

use super::gate::Gate;
use super::nats::Cluster;
use super::postgres::{DATABASE, OWNER, OWNER_PASSWORD, Postgres};
use super::server::Server;
use super::{Site, program, wait_until};
use bulkmark_sync::log::Settings;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static TURN: Mutex<()> = Mutex::new(());
type Turn = MutexGuard<'static, ()>;

/// A fleet.
pub struct Fleet {
    /// The engine of its log.
    pub log: Engine,
}

/// The engine of its log.
pub enum Engine {
    /// PostgreSQL.
    Postgres(Postgres),
    /// Only one test at a time has these three nodes, which is enough load for two cores.
    Nats(Cluster, Turn),
}

/// The members of every fleet: own milters, a partner, and aggregators. A test need not run all of them.
pub const MILTERS: [&str; 9] = ["mx1", "mx2", "mx3", "mx4", "mx5", "mx6", "mx7", "mx8", "isp"];
/// The aggregators of every fleet.
pub const AGGREGATORS: [&str; 2] = ["agg1", "agg2"];

impl Fleet {
    /// Sets up a fleet in PostgreSQL. None where there is no PostgreSQL.
    pub fn postgres() -> Option<Self> {
        Self::on_postgres(Postgres::start()?)
    }

    /// The same on this running server.
    pub fn on_postgres(log: Postgres) -> Option<Self> {
        log.secret("owner", OWNER_PASSWORD);
        for name in MILTERS.iter().chain(&AGGREGATORS) {
            log.secret(name, &format!("{name}'s own"));
        }
        log.harden();
        let fleet = Self { log: Engine::Postgres(log) };
        let output = fleet.set_up(&fleet.members(&MILTERS, 0), &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(fleet)
    }

    /// Sets up a fleet on three nodes of NATS. None where there is no nats-server.
    pub fn nats() -> Option<Self> {
        Self::on_nats(|| Cluster::start(3, ""))
    }

    /// The same on these nodes.
    pub fn on_nats(start: impl Fn() -> Option<Cluster>) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = start()?;
        for name in MILTERS.iter().chain(&AGGREGATORS).chain(&["owner"]) {
            let output = Command::new(program())
                .args(["fleet", "key"])
                .arg(cluster.directory.join(name))
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            std::fs::write(cluster.directory.join(format!("{name}.public")), output.stdout).unwrap();
        }
        let accounts = cluster.accounts().display().to_string();
        cluster.wait_until_well();
        let fleet = Self { log: Engine::Nats(cluster, turn) };
        let members = fleet.members(&MILTERS, 0);
        let output = fleet.set_up(&members, &["--accounts", &accounts]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("reload"), "{told}");
        let Engine::Nats(cluster, ..) = &fleet.log else { unreachable!() };
        cluster.reload();
        // New nodes that do not accept one another as peers; see `Cluster::begin_anew`. Slow ones may still do so.
        let (mut began, mut patience) = (Instant::now(), Duration::from_secs(30));
        wait_until("a log that is set up", || {
            let output = fleet.set_up(&members, &[]);
            if output.status.success() {
                return Ok(());
            }
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            if told.contains("no suitable peers") && began.elapsed() > patience {
                cluster.begin_anew();
                (began, patience) = (Instant::now(), patience * 2);
            }
            Err(format!("{told}\n{}", cluster.logs()))
        });
        Some(fleet)
    }

    /// A file of the fleet.
    pub fn path(&self, name: &str) -> PathBuf {
        match &self.log {
            Engine::Postgres(log) => log.path(name),
            Engine::Nats(cluster, ..) => cluster.directory.join(name),
        }
    }

    /// The credentials in a member's entry.
    fn proof(&self, name: &str) -> String {
        match &self.log {
            Engine::Postgres(log) => format!("password-file = \"{}\"", log.path(name).display()),
            Engine::Nats(..) => {
                let public = std::fs::read_to_string(self.path(&format!("{name}.public"))).unwrap();
                format!("nkey = \"{}\"", public.trim())
            }
        }
    }

    /// Writes the file of these members.
    pub fn members(&self, milters: &[&str], withdrawn: u32) -> PathBuf {
        let mut text = String::new();
        for name in milters {
            let kind = if *name == "isp" {
                format!("kind = \"partner\"\nwithdrawn = {withdrawn}")
            } else {
                "kind = \"own\"".to_owned()
            };
            text += &format!("[[client]]\nname = \"{name}\"\n{kind}\n{}\n", self.proof(name));
        }
        for name in AGGREGATORS {
            text += &format!("[[aggregator]]\nname = \"{name}\"\n{}\n", self.proof(name));
        }
        let path = self.path("fleet.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The address of the log.
    pub fn url(&self) -> String {
        match &self.log {
            Engine::Postgres(log) => format!("postgres://127.0.0.1:{}/{DATABASE}", log.port),
            Engine::Nats(cluster, ..) => cluster.url(),
        }
    }

    /// Runs `bulkmark fleet setup`.
    pub fn set_up(&self, members: &Path, more: &[&str]) -> Output {
        let by = match &self.log {
            Engine::Postgres(_) => &["--user", OWNER][..],
            Engine::Nats(..) => &[],
        };
        Command::new(program())
            .args(["fleet", "setup", "--log", &self.url()])
            .args(by)
            .arg("--secret-file")
            .arg(self.path("owner"))
            .arg("--clients")
            .arg(members)
            .args(more)
            .output()
            .unwrap()
    }

    /// The configuration table of a member.
    pub fn table(&self, name: &str) -> String {
        let secret = self.path(name);
        let name = match &self.log {
            Engine::Nats(..) if AGGREGATORS.contains(&name) => String::new(),
            Engine::Postgres(_) | Engine::Nats(..) => format!("name = \"{name}\"\n"),
        };
        format!("[fleet]\nlog = \"{}\"\n{name}secret-file = \"{}\"\n", self.url(), secret.display())
    }

    /// The connection of a member's own program to the log.
    pub fn settings(&self, name: &str) -> Settings {
        let reports = MILTERS.contains(&name);
        let is_named = reports || matches!(self.log, Engine::Postgres(_));
        Settings {
            log: self.url(),
            name: is_named.then(|| name.to_owned()),
            reports,
            secret_file: Some(self.path(name)),
            ..Settings::default()
        }
    }

    /// Makes a milter of the fleet.
    pub fn milter(&self, name: &str) -> Site {
        Site::new(&format!("exempt = [\"authenticated\"]\n{}[sync]\ninterval = \"20ms\"\n", self.table(name)))
    }

    /// Makes an aggregator.
    pub fn aggregator(&self, name: &str) -> Server {
        Server { sync: "interval = \"100ms\"".to_owned(), ..Server::new(&self.table(name)) }
    }

    /// Kills the log's server; of several, the leader.
    pub fn kill_log(&self) {
        match &self.log {
            Engine::Postgres(log) => log.kill_all(),
            Engine::Nats(cluster, ..) => cluster.leader("BULKMARK_BATCHES").kill(),
        }
    }

    /// Starts the killed server.
    pub fn start_log(&self) {
        match &self.log {
            Engine::Postgres(log) => log.run(),
            Engine::Nats(cluster, ..) => cluster.start_all(),
        }
    }

    /// Runs SQL in the log's database.
    pub fn sql(&self, sql: &str) -> Result<String, String> {
        match &self.log {
            Engine::Postgres(log) => log.sql(sql),
            Engine::Nats(..) => Err("there is no SQL in NATS".to_owned()),
        }
    }

    /// Puts gates between a server of the fleet and its log.
    pub fn gates(&self, server: &mut Server) -> Vec<Gate> {
        let ports: Vec<[u16; 2]> = match &self.log {
            Engine::Postgres(log) => vec![[log.port; 2]],
            Engine::Nats(cluster, ..) => {
                cluster.nodes.iter().map(|node| [node.proxy.port, node.port]).collect()
            }
        };
        let gate = |[named, port]: [u16; 2]| {
            let gate = Gate::new(port);
            let [from, to] = [named, gate.port].map(|port| format!("127.0.0.1:{port}"));
            server.extra = server.extra.replace(&from, &to);
            gate
        };
        ports.into_iter().map(gate).collect()
    }

    /// Returns JetStream's answer to the administrator of a log in NATS.
    pub fn jetstream(&self, subject: &str, question: &Value) -> Value {
        let Engine::Nats(cluster, ..) = &self.log else { panic!("there is no JetStream in PostgreSQL") };
        let seed = std::fs::read_to_string(self.path("owner")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = async_nats::ConnectOptions::new().nkey(seed.trim().to_owned());
            let client = client.connect(format!("127.0.0.1:{}", cluster.nodes[0].port)).await.unwrap();
            let question = if question.is_null() { String::new() } else { question.to_string() };
            let answer = client.request(format!("$JS.API.{subject}"), question.into()).await.unwrap();
            let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
            assert!(answer["error"].is_null(), "{answer}");
            answer
        })
    }
}
