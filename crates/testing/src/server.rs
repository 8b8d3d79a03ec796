// SPDX-License-Identifier: GPL-3.0-or-later
//! Signature servers under test, and their milters.

use super::mta::free_port;
use super::{Daemon, Site, program, wait_until};
use bulkmark_counts::Settings;
use bulkmark_sync::wire::Reports;
use bulkmark_sync::{Link, Parameters, Remote, Upstream};
use bulkmark_types::{FederationKey, Signature};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

/// After so many reports a server writes a checkpoint, and keeps only the updates that it must keep.
const CHECKPOINT_AFTER: u64 = 1_000_000;

/// A signature server in a directory of its own, on the same port at each start.
pub struct Server {
    /// The directory of its files.
    pub site: Site,
    /// TOML above the tables.
    pub extra: String,
    /// The table `[ledger]`.
    pub ledger: String,
    /// The table `[sync]`.
    pub sync: String,
    /// The table `[status]`.
    pub status: String,
    /// Its port on 127.0.0.1, unless `listen` names another address.
    pub port: u16,
    /// The `listen` of its configuration.
    pub listen: String,
}

impl Server {
    /// Makes a server, with `extra` above the tables of its configuration.
    pub fn new(extra: &str) -> Self {
        let port = free_port();
        let server = Self {
            site: Site::new(""),
            extra: extra.to_owned(),
            ledger: String::new(),
            sync: "interval = \"50ms\"".to_owned(),
            status: "listen = \"\"".to_owned(),
            port,
            listen: format!("127.0.0.1:{port}"),
        };
        std::fs::create_dir_all(server.site.path("state")).unwrap();
        server
    }

    /// Makes two servers that are peers of one another.
    pub fn peers(extra: &str) -> [Self; 2] {
        let mut servers = [Self::new(extra), Self::new(extra)];
        let entries = [servers[1].entry("one", "peer"), servers[0].entry("two", "peer")];
        for (server, entry) in servers.iter_mut().zip(entries) {
            server.extra += &format!("\npeer = [{entry}]");
        }
        servers
    }

    /// The server's address.
    pub fn url(&self) -> String {
        if self.listen.starts_with("unix:") { self.listen.clone() } else { format!("http://{}", self.listen) }
    }

    /// Writes the configuration file again and returns its path.
    pub fn config(&self) -> PathBuf {
        let path = self.site.path("server.toml");
        let text = format!(
            "listen = \"{}\"\ncontrol = \"{}\"\nstate-dir = \"{}\"\n{}\n[ledger]\n{}\n[sync]\n{}\n[status]\n{}\n[log]\ntarget = \"stderr\"\n",
            self.listen,
            self.site.path("server.sock").display(),
            self.site.path("state").display(),
            self.extra,
            self.ledger,
            self.sync,
            self.status,
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts it and waits until it listens.
    pub fn start(&self) -> Daemon {
        self.spawn().listening()
    }

    /// Starts it without waiting, for configurations that must fail.
    pub fn spawn(&self) -> Daemon {
        self.site.spawn_by(Command::new(program()).args(["server", "--config"]).arg(self.config()))
    }

    /// Runs `bulkmark client`, and returns its output.
    pub fn client(&self, arguments: &[&str]) -> String {
        let output = self.try_client(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, with any exit code.
    pub fn try_client(&self, arguments: &[&str]) -> Output {
        let config = self.config();
        Command::new(program()).arg("client").args(arguments).arg("--config").arg(config).output().unwrap()
    }

    /// Sends it reports under this name, of the same few signatures, until it has written a checkpoint.
    pub fn report_until_checkpoint(&self, name: &str) {
        self.entry(name, "report");
        let token_file = Some(self.site.path(name));
        let upstream = Upstream { url: self.url(), token_file, ca_file: None, plain_http_anywhere: false };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remote = Remote::new(&upstream, None, Arc::new(Link::new(&self.url()))).unwrap();
        let signature = |n: u64| Signature::from_bytes(super::random::element(n).to_be_bytes());
        let reports: Vec<_> = (0..8192).map(|n| (signature(n), 1)).collect();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // The last one is answered after the checkpoint.
        for number in 1..=CHECKPOINT_AFTER / 8192 + 2 {
            let reports = Reports { spool: 1, number, reports: reports.clone() };
            runtime.block_on(remote.report(&reports)).unwrap();
        }
    }

    /// An entry for a list of servers, with a new token.
    pub fn entry(&self, name: &str, role: &str) -> String {
        self.entry_by(&self.url(), name, role)
    }

    /// The same, with another address.
    pub fn entry_by(&self, url: &str, name: &str, role: &str) -> String {
        let token = self.client(&["add", "--own", name, "--role", role]);
        assert_eq!(token.lines().count(), 1, "{token}");
        let path = self.site.path(name);
        std::fs::write(&path, token).unwrap();
        format!("{{ url = \"{url}\", token-file = \"{}\" }}", path.display())
    }
}

/// The parameters that a server with default settings shares with its clients.
pub fn parameters() -> String {
    Parameters::new(&Settings::default(), &FederationKey::public()).to_string()
}

/// Waits until two servers, readable by everybody, have equal counts in so many windows, cell by cell.
pub fn wait_until_equal(one: &Server, two: &Server, windows: usize) {
    wait_until("two servers", || {
        let output =
            Command::new(program()).args(["ledger", "verify", &one.url(), &two.url()]).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let plural = if windows == 1 { "" } else { "s" };
        let equal = format!("all cells of {windows} window{plural} are equal");
        if text.contains(&equal) { Ok(()) } else { Err(text) }
    });
}

/// A milter of these servers.
pub fn milter(entries: &[String]) -> Site {
    Site::new(&format!(
        "exempt = [\"authenticated\"]\nupstream = [{}]\n[sync]\ninterval = \"20ms\"\n",
        entries.join(", ")
    ))
}
