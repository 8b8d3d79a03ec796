// SPDX-License-Identifier: GPL-3.0-or-later
//! A real OpenDMARC and a real rspamd, as milters that add their results to the header, with a test's name server.

use super::dns::Dns;
use super::mta::free_port;
use super::{repository, rspamd, skip, wait_for_some};
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A verifier, or another program that reads mail; stopped when dropped.
pub struct Verifier {
    /// The address, as in `smtpd_milters`.
    pub milter: String,
    /// Its files.
    pub directory: tempfile::TempDir,
    child: Child,
}

impl Verifier {
    /// OpenDMARC as in docs/authentication.md: behind an OpenDKIM with the name mx.test. It uses the name servers in
    /// /etc/resolv.conf, so it gets another such file.
    pub fn opendmarc(dns: &Dns) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let server = dns.address.strip_suffix(":53").expect("a name server on the usual port");
        fs::write(path("resolv.conf"), format!("nameserver {server}\noptions timeout:30 attempts:1\n"))
            .unwrap();
        let settings = format!("Socket inet:{port}@127.0.0.1\nSyslog no\n{}", guide("opendmarc.conf"));
        fs::write(path("opendmarc.conf"), settings).unwrap();
        let script = format!(
            "mount --bind {} /etc/resolv.conf && exec opendmarc -f -c {}",
            path("resolv.conf"),
            path("opendmarc.conf")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]);
        Self::start("opendmarc", command, port, directory)
    }

    /// rspamd as a milter, with its modules, whose results milter_headers reports.
    pub fn rspamd(dns: &Dns) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let proxy = format!(
            "enabled = true; bind_socket = \"127.0.0.1:{port}\"; milter = yes; timeout = 300s;\n\
             upstream \"local\" {{ default = yes; self_scan = yes; }}\n"
        );
        let command = rspamd::command(
            &rspamd::Version::Installed,
            directory.path(),
            &[
                ("local.d/worker-proxy.inc", proxy),
                ("local.d/options.inc", rspamd::options(directory.path(), &dns.address, "10s", "dkim,spf")),
                ("local.d/actions.conf", "reject = null; add_header = null; greylist = null;\n".to_owned()),
                ("local.d/milter_headers.conf", guide("milter_headers.conf")),
            ],
        );
        Self::start("rspamd", command, port, directory)
    }

    /// Runs a command that listens on a port; none where it is not installed.
    pub fn start(name: &str, mut command: Command, port: u16, directory: tempfile::TempDir) -> Option<Self> {
        if Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            skip(&format!("{name} is missing; run tests/mta/install {name} as root"));
            return None;
        }
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        wait_for_some(name, || {
            assert_eq!(child.try_wait().unwrap(), None, "{name} ended");
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(Self { milter: format!("inet:127.0.0.1:{port}"), directory, child })
    }
}

/// The lines of a file in docs/authentication.md, adapted to a test's mail server.
fn guide(file: &str) -> String {
    let guide = repository().join("docs/authentication.md");
    let guide = fs::read_to_string(guide).unwrap();
    let mut lines = guide.lines().map(str::trim);
    assert!(
        lines.any(|line| line.starts_with("# ") && line.ends_with(file)),
        "the guide does not show {file}"
    );
    let shown = lines.take_while(|line| !line.is_empty());
    shown.map(|line| line.replace("mx.example.org", "mx.test") + "\n").collect()
}

impl Drop for Verifier {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).unwrap();
        // rspamd ends its own children.
        let asked = Command::new("kill").arg(id.to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }
}
