// SPDX-License-Identifier: GPL-3.0-or-later
//! Fleets under test: real daemons on a real log.

use super::postgres::{DATABASE, OWNER, OWNER_PASSWORD, Postgres};
use super::server::Server;
use super::{BULKMARK, Site};
use std::path::PathBuf;
use std::process::{Command, Output};

/// A fleet whose log is in PostgreSQL.
pub struct Fleet {
    pub log: Postgres,
}

/// The members of every fleet: three milters of one's own, a partner, and aggregators.
pub const MILTERS: [&str; 4] = ["mx1", "mx2", "mx3", "isp"];
pub const AGGREGATORS: [&str; 2] = ["agg1", "agg2"];

impl Fleet {
    /// One that is set up; none where there is no PostgreSQL.
    pub fn new() -> Option<Self> {
        let log = Postgres::start()?;
        log.secret("owner", OWNER_PASSWORD);
        let fleet = Self { log };
        let output = fleet.set_up(&fleet.members(&MILTERS, 0), &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(fleet)
    }

    /// The file of these members.
    pub fn members(&self, milters: &[&str], withdrawn: u32) -> PathBuf {
        let mut text = String::new();
        let secret = |name: &str| self.log.secret(name, &format!("{name}'s own")).display().to_string();
        for name in milters {
            let kind = if *name == "isp" {
                format!("kind = \"partner\"\nwithdrawn = {withdrawn}")
            } else {
                "kind = \"own\"".to_owned()
            };
            text += &format!("[[client]]\nname = \"{name}\"\n{kind}\npassword-file = \"{}\"\n", secret(name));
        }
        for name in AGGREGATORS {
            text += &format!("[[aggregator]]\nname = \"{name}\"\npassword-file = \"{}\"\n", secret(name));
        }
        self.log.secret("fleet.toml", &text)
    }

    pub fn url(&self) -> String {
        format!("postgres://127.0.0.1:{}/{DATABASE}", self.log.port)
    }

    /// Runs `bulkmark fleet setup`.
    pub fn set_up(&self, members: &PathBuf, more: &[&str]) -> Output {
        Command::new(BULKMARK)
            .args(["fleet", "setup", "--log", &self.url(), "--user", OWNER, "--password-file"])
            .arg(self.log.path("owner"))
            .arg("--clients")
            .arg(members)
            .args(more)
            .output()
            .unwrap()
    }

    /// The table of a member.
    pub fn table(&self, name: &str) -> String {
        let secret = self.log.path(name);
        format!(
            "[fleet]\nlog = \"{}\"\nuser = \"{name}\"\npassword-file = \"{}\"\n",
            self.url(),
            secret.display()
        )
    }

    /// A milter of the fleet.
    pub fn milter(&self, name: &str) -> Site {
        Site::new(&format!("exempt-loopback = false\n{}[sync]\ninterval = \"20ms\"\n", self.table(name)))
    }

    /// An aggregator.
    pub fn aggregator(&self, name: &str) -> Server {
        Server { sync: "interval = \"100ms\"".to_owned(), ..Server::new(&self.table(name)) }
    }
}
