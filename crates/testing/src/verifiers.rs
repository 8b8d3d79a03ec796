// SPDX-License-Identifier: GPL-3.0-or-later
//! A real OpenDMARC and a real rspamd, as milters that tell what they verified, with the name server of a test.

use super::dns::Dns;
use super::mta::free_port;
use super::{repository, rspamd, skip, wait_for_some};
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A verifier, or another program that looks at mail; stopped when dropped.
pub struct Verifier {
    /// As `smtpd_milters` names it.
    pub milter: String,
    /// Its files.
    pub directory: tempfile::TempDir,
    child: Child,
}

impl Verifier {
    /// OpenDMARC as docs/authentication.md has it: behind an OpenDKIM that calls itself mx.test. It asks
    /// whom /etc/resolv.conf names, so it is shown another one.
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

    /// rspamd as a milter, with the modules that it has, of which milter_headers tells.
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

    /// Runs a command that will listen on a port; none where it is not installed.
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

/// The lines of a file that docs/authentication.md shows, for the mail server of a test.
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
        // rspamd has children, which it ends itself.
        let asked = Command::new("kill").arg(id.to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }
}
