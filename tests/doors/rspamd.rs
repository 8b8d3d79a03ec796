// SPDX-License-Identifier: GPL-3.0-or-later
//! rspamd with its own dcc module.

use crate::asking::{metrics, site, start};
use crate::common::Site;
use crate::common::letters::{count, letter};
use crate::common::mta::free_port;
use crate::common::verifiers::Verifier;
use crate::common::{http, rspamd};
use crate::guide::shown;
use serde_json::Value;
use std::fs;

/// A running rspamd; stopped when dropped.
pub(crate) struct Rspamd {
    port: u16,
    program: Verifier,
}

impl Rspamd {
    /// With these files beside the usual ones; none where it is not installed.
    pub(crate) fn start(files: &[(&str, String)]) -> Option<Self> {
        let (port, directory) = (free_port(), tempfile::tempdir().unwrap());
        let worker = format!("enabled = true; bind_socket = \"127.0.0.1:{port}\";\ncount = 1;\n");
        let options = rspamd::options(directory.path(), "127.0.0.1:9", "0.1s", "");
        let usual = [("local.d/worker-normal.inc", worker), ("local.d/options.inc", options)];
        let command = rspamd::command(directory.path(), &[&usual, files].concat());
        Some(Self { port, program: Verifier::start("rspamd", command, port, directory)? })
    }

    /// What it says of a message from this client, with more fields of a request.
    pub(crate) fn check(&self, fields: &str, message: &[u8]) -> Value {
        let head = format!(
            "POST /checkv2 HTTP/1.1\r\nIP: 192.0.2.7\r\nHostname: h.example\r\nHelo: h.example\r\nFrom: s@example.org{fields}"
        );
        let answer = http::ask(self.port, &head, message);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
    }

    /// The symbols of a message to two recipients.
    fn symbols(&self, message: &[u8]) -> Value {
        self.check("\r\nRcpt: u@box.test\r\nRcpt: v@box.test", message)["symbols"].clone()
    }

    /// All that it logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.program.directory.path().join("log/log")).unwrap_or_default()
    }
}

/// As docs/doors.md tells, with the socket of this site.
fn dcc(site: &Site) -> Option<Rspamd> {
    let socket = site.path("dccifd.sock").display().to_string();
    let text = shown("/etc/rspamd/local.d/dcc.conf").replace("/run/bulkmark/dccifd.sock", &socket);
    Rspamd::start(&[("local.d/dcc.conf", text)])
}

/// What rspamd checks is counted for each recipient, bulk has its symbol from the limit on, and what the policy refuses the other one.
#[test]
fn bulk_has_the_symbol() {
    let site = site("", "", "");
    let daemon = start(&site);
    let Some(rspamd) = dcc(&site) else { return };
    let clean = rspamd.symbols(&letter(1));
    assert!(clean["DCC_BULK"].is_null() && clean["DCC_FAIL"].is_null(), "{clean}");
    let line = daemon.log.wait_for(0, "door=dccifd");
    assert!(
        line.contains("client=h.example[192.0.2.7]")
            && line.contains("from=<s@example.org>")
            && line.contains("nrcpt=2"),
        "{line}"
    );
    assert_eq!(count(&site, &letter(1)), 2);
    for _ in 3..=19 {
        metrics(&site, "", &letter(1));
    }
    let bulk = rspamd.symbols(&letter(1));
    assert_eq!(count(&site, &letter(1)), 21);
    let options = bulk["DCC_BULK"]["options"].to_string();
    assert!(options.contains("body=21"), "{bulk}");
}

#[test]
fn what_the_policy_refuses_has_the_other_symbol() {
    let site =
        site("[thresholds]\nbody = 2\nnear = 2\nmin-sources = 1\n[actions]\nbulk = \"reject\"\n", "", "");
    let _daemon = start(&site);
    let Some(rspamd) = dcc(&site) else { return };
    let refused = rspamd.symbols(&letter(1));
    assert!(!refused["DCC_REJECT"].is_null(), "{refused}");
}
