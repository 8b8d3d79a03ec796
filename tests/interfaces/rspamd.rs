// SPDX-License-Identifier: GPL-3.0-or-later
//! rspamd with its own dcc module.

use crate::asking::{metrics, site, start};
use crate::guide::shown;
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::mta::free_port;
pub(crate) use bulkmark_testing::rspamd::Version;
use bulkmark_testing::verifiers::Verifier;
use bulkmark_testing::{Site, wait_until};
use bulkmark_testing::{http, rspamd};
use serde_json::Value;
use std::fs;

/// A running rspamd; stopped when dropped.
pub(crate) struct Rspamd {
    port: u16,
    program: Verifier,
}

impl Rspamd {
    /// Starts it with these files beside the usual ones; none if it is not installed.
    pub(crate) fn start(version: &Version, files: &[(&str, String)]) -> Option<Self> {
        let (port, directory) = (free_port(), tempfile::tempdir().unwrap());
        let worker = format!("enabled = true; bind_socket = \"127.0.0.1:{port}\";\ncount = 1;\n");
        let options = rspamd::options(directory.path(), "127.0.0.1:9", "0.1s", "");
        let usual = [("local.d/worker-normal.inc", worker), ("local.d/options.inc", options)];
        let command = rspamd::command(version, directory.path(), &[&usual, files].concat());
        Some(Self { port, program: Verifier::start("rspamd", command, port, directory)? })
    }

    /// Its answer for a message from a client, with more fields of a request.
    pub(crate) fn check(&self, fields: &str, message: &[u8]) -> Value {
        self.check_from("192.0.2.7", fields, message)
    }

    /// The same from a client with this address.
    pub(crate) fn check_from(&self, client: &str, fields: &str, message: &[u8]) -> Value {
        let envelope =
            format!("IP: {client}\r\nHostname: h.example\r\nHelo: h.example\r\nFrom: s@example.org{fields}");
        self.ask(&envelope, message)
    }

    /// The same with the whole envelope in these fields.
    pub(crate) fn ask(&self, envelope: &str, message: &[u8]) -> Value {
        let head = format!("POST /checkv2 HTTP/1.1\r\n{envelope}");
        let answer = http::ask(self.port, &head, message);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
    }

    /// The symbols of a message to two recipients.
    fn symbols(&self, message: &[u8]) -> Value {
        self.check("\r\nRcpt: u@box.test\r\nRcpt: v@box.test", message)["symbols"].clone()
    }

    /// Its whole log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.program.directory.path().join("log/log")).unwrap_or_default()
    }
}

/// As in docs/interfaces.md, with this site's socket, and these limits; counts below them are logged.
pub(crate) fn dcc(version: &Version, site: &Site, limit: u32) -> Option<Rspamd> {
    let socket = site.path("dccifd.sock").display().to_string();
    let text = shown("/etc/rspamd/local.d/dcc.conf").replace("/run/bulkmark/dccifd.sock", &socket);
    let text = text.replace("_max = 20;", &format!("_max = {limit};"));
    Rspamd::start(version, &[("local.d/dcc.conf", format!("{text}log_clean = true;\ntimeout = 60.0;\n"))])
}

/// A message checked by rspamd is counted for each recipient, bulk has its symbol from the limit on, and a message refused by the policy has the
/// other symbol. A bug of rspamd 3.12 suppresses the symbol (its issue 5451): there the log has the module's answer.
#[test]
fn bulk_has_the_symbol() {
    for version in Version::all() {
        let site = site("", "", "");
        let daemon = start(&site);
        let Some(rspamd) = dcc(&version, &site, 20) else { continue };
        let clean = rspamd.symbols(&letter(1));
        assert!(clean["DCC_BULK"].is_null() && clean["DCC_FAIL"].is_null(), "{clean}");
        let line = daemon.log.wait_for(0, "interface=dccifd");
        for part in ["client=h.example[192.0.2.7]", "from=<s@example.org>", "nrcpt=2"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert_eq!(count(&site, &letter(1)), 2, "{version:?}");
        for _ in 3..=19 {
            metrics(&site, "", &letter(1));
        }
        let bulk = rspamd.symbols(&letter(1));
        assert_eq!(count(&site, &letter(1)), 21, "{version:?}");
        if version.forgets_the_score() {
            wait_until("what it was told, in rspamd's log", || {
                let log = rspamd.log();
                let told = log.contains("returned result A - info: bulk body=21 fuz1=19 fuz2=19");
                if told { Ok(()) } else { Err(log) }
            });
        } else {
            let options = bulk["DCC_BULK"]["options"].to_string();
            assert!(options.contains("body=21"), "{version:?}: {bulk}");
        }
    }
}

#[test]
fn what_the_policy_refuses_has_the_other_symbol() {
    for version in Version::all() {
        let site = site(
            "[thresholds]\nbody = 2\nnear = 2\nmin-sources = 1\nmin-messages = 1\n[actions]\nbulk = \"reject\"\n",
            "",
            "",
        );
        let _daemon = start(&site);
        let Some(rspamd) = dcc(&version, &site, 20) else { continue };
        let refused = rspamd.symbols(&letter(1));
        assert!(!refused["DCC_REJECT"].is_null(), "{version:?}: {refused}");
    }
}
