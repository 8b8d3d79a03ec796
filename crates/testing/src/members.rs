// SPDX-License-Identifier: GPL-3.0-or-later
//! The running machines of a fleet under test.

use super::fleet::Fleet;
use super::letters::{letter, send, wait_for};
use super::server::Server;
use super::{Daemon, Site, program, status, wait_until};
use std::process::Command;

/// Aggregators and milters of one fleet. Stopped ones can be started again.
pub struct Members {
    /// The aggregators.
    pub servers: Vec<Server>,
    /// Their daemons, if they run.
    pub aggregators: Vec<Option<Daemon>>,
    /// The milters.
    pub sites: Vec<Site>,
    /// Their daemons, if they run.
    pub milters: Vec<Option<Daemon>>,
}

impl Members {
    /// Starts these aggregators and milters.
    pub fn start(fleet: &Fleet, aggregators: &[&str], milters: &[&str]) -> Self {
        let servers = aggregators.iter().map(|name| fleet.aggregator(name)).collect();
        Self::of(servers, milters.iter().map(|name| fleet.milter(name)).collect())
    }

    /// Starts these aggregators and milters.
    pub fn of(servers: Vec<Server>, sites: Vec<Site>) -> Self {
        let aggregators = servers.iter().map(|server| Some(server.start())).collect();
        let milters = sites.iter().map(|site| Some(site.start())).collect();
        Self { servers, aggregators, sites, milters }
    }

    /// Returns the running daemon of a milter.
    pub fn milter(&self, milter: usize) -> &Daemon {
        self.milters[milter].as_ref().unwrap()
    }

    /// Returns the running daemon of an aggregator.
    pub fn aggregator(&self, aggregator: usize) -> &Daemon {
        self.aggregators[aggregator].as_ref().unwrap()
    }

    /// Kills all aggregators.
    pub fn kill_aggregators(&mut self) {
        self.aggregators.iter_mut().for_each(|daemon| daemon.take().unwrap().kill());
    }

    /// Starts all aggregators.
    pub fn start_aggregators(&mut self) {
        self.aggregators = self.servers.iter().map(|server| Some(server.start())).collect();
    }

    /// Sends a letter through a milter so many times.
    pub fn send(&self, milter: usize, n: usize, times: usize) {
        send(self.milter(milter), &letter(n), times);
    }

    /// Waits until all milters have this count.
    pub fn wait_for(&self, n: usize, expected: u64) {
        self.sites.iter().for_each(|site| wait_for(site, &letter(n), expected));
    }

    /// Waits until all reports of the milters are in steps, and all milters have these.
    pub fn settle(&self) {
        for site in &self.sites {
            wait_until("an empty spool", || {
                let status = status(site);
                let done = status["ledger"]["spool"] == 0 && status["fleet"]["in-step"] == true;
                if done { Ok(()) } else { Err(status.to_string()) }
            });
        }
    }

    /// Waits until `bulkmark status` of a milter prints one of these texts.
    pub fn wait_for_status(&self, milter: usize, texts: &[&str]) {
        wait_for_status(&["status", "--config"], &self.sites[milter].config(), texts);
    }

    /// Waits until `bulkmark status --server` prints this text.
    pub fn wait_for_server_status(&self, aggregator: usize, text: &str) {
        wait_for_status(&["status", "--server", "--config"], &self.servers[aggregator].config(), &[text]);
    }
}

/// Waits until a command prints one of these texts.
fn wait_for_status(command: &[&str], config: &std::path::Path, texts: &[&str]) {
    wait_until("a line of status", || {
        let output = Command::new(program()).args(command).arg(config).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        if texts.iter().any(|text| told.contains(text)) {
            Ok(())
        } else {
            Err(format!("none of {texts:?} in\n{told}"))
        }
    });
}

/// The daemons' logs help to find the cause of a failure.
impl Drop for Members {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for daemon in self.aggregators.iter().chain(&self.milters).flatten() {
                let lines = daemon.log.lines();
                let told: Vec<_> = lines.iter().filter(|line| !line.contains("verdict=")).cloned().collect();
                println!("{}\n", told.join("\n"));
            }
            for site in &self.sites {
                println!("{}\n", status(site));
            }
        }
    }
}
