// SPDX-License-Identifier: GPL-3.0-or-later
//! rspamd with its own dcc module.

use crate::asking::{metrics, site, start};
use crate::common::Site;
use crate::common::http;
use crate::common::letters::{count, letter};
use crate::common::mta::{free_port, skip, wait_until};
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// What docs/doors.md tells to write into local.d/dcc.conf, with the path of this site.
const DCC: &str = "enabled = true;\nsocket = \"SOCKET\";\nbody_max = 20;\nfuz1_max = 20;\nfuz2_max = 20;\n";

/// A running rspamd; stopped when dropped.
struct Rspamd {
    port: u16,
    child: Child,
}

impl Rspamd {
    /// With the files in a directory of the site; none where it is not installed.
    fn start(site: &Site) -> Option<Self> {
        if Command::new("rspamd")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
        {
            skip("rspamd is missing; run tests/mta/install rspamd as root");
            return None;
        }
        let (port, directory) = (free_port(), site.path("rspamd"));
        let path = |name: &str| directory.join(name).display().to_string();
        for name in ["local.d", "db", "run", "log"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        // The list of all domains below which anybody may have one takes a long time to be read.
        fs::write(path("tld"), "example\ntest\n").unwrap();
        let off = || "enabled = false;\n".to_owned();
        for (file, text) in [
            ("worker-normal.inc", format!("bind_socket = \"127.0.0.1:{port}\";\ncount = 1;\n")),
            ("worker-proxy.inc", off()),
            ("worker-controller.inc", off()),
            ("worker-fuzzy.inc", off()),
            ("rbl.conf", off()),
            ("logging.inc", format!("type = \"file\"; filename = \"{}\";\n", path("log/log"))),
            (
                "options.inc",
                format!(
                    "dns {{ nameserver = [\"127.0.0.1:9\"]; timeout = 0.1s; }}\nurl_tld = \"{}\";\nfilters = \"\";\n",
                    path("tld")
                ),
            ),
            ("dcc.conf", DCC.replace("SOCKET", &site.path("dccifd.sock").display().to_string())),
        ] {
            fs::write(path(&format!("local.d/{file}")), text).unwrap();
        }
        let mut command = Command::new("rspamd");
        command.args(["-i", "-f", "-u", "root", "-g", "root", "-c", "/etc/rspamd/rspamd.conf"]);
        for (name, value) in [
            ("LOCAL_CONFDIR", path("")),
            ("DBDIR", path("db")),
            ("RUNDIR", path("run")),
            ("LOGDIR", path("log")),
        ] {
            command.arg(format!("--var={name}={value}"));
        }
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        wait_until("rspamd", || {
            assert_eq!(child.try_wait().unwrap(), None, "rspamd ended");
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(Self { port, child })
    }

    /// What it finds of a message from this client to two recipients.
    fn symbols(&self, message: &[u8]) -> Value {
        let head = "POST /checkv2 HTTP/1.1\r\nIP: 192.0.2.7\r\nHostname: h.example\r\nHelo: h.example\r\nFrom: s@example.org\r\n\
                    Rcpt: u@box.test\r\nRcpt: v@box.test";
        let answer = http::ask(self.port, head, message);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str::<Value>(body).unwrap_or_else(|e| panic!("{e}: {answer}"))["symbols"].clone()
    }
}

impl Drop for Rspamd {
    fn drop(&mut self) {
        // It has children, which it ends itself.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }
}

/// What rspamd checks is counted for each recipient, bulk has its symbol from the limit on, and what the policy refuses the other one.
#[test]
fn bulk_has_the_symbol() {
    let site = site("", "", "");
    let daemon = start(&site);
    let Some(rspamd) = Rspamd::start(&site) else { return };
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
    let Some(rspamd) = Rspamd::start(&site) else { return };
    let refused = rspamd.symbols(&letter(1));
    assert!(!refused["DCC_REJECT"].is_null(), "{refused}");
}
