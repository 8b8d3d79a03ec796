// SPDX-License-Identifier: GPL-3.0-or-later
//! Exim built with its DCC condition, and Exim with SpamAssassin and the plugin of this package.

use crate::asking::{judge, site, start};
use crate::guide::shown_below;
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::smtp::Client;
use bulkmark_testing::{Site, skip, wait_for_some};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The clients' address: mail from the first address of loopback itself may be taken for the machine's own.
const OUTSIDE: &str = "127.9.9.9";

/// The program; none if its source cannot be fetched.
fn exim() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mta/exim");
    let output = Command::new(script).stdin(Stdio::null()).output().unwrap();
    if output.status.success() {
        return Some(String::from_utf8(output.stdout).unwrap().trim().into());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{told}");
    skip(&told);
    None
}

/// The blocks of docs/exim.md below a heading: for the main part of the configuration, and for the ACL.
fn guide(heading: &str) -> (String, String) {
    let shown = |file| shown_below("exim.md", heading, file);
    (shown("/etc/exim4/exim4.conf.localmacros"), shown("/etc/exim4/bulkmark.acl"))
}

/// A running Exim; killed when dropped.
struct Exim {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Exim {
    /// Starts it with these lines of the main part, and of the ACL for DATA. It accepts mail for box.test, into one mailbox.
    fn start(main: &str, acl: &str) -> Option<Self> {
        let (program, port, directory) = (exim()?, free_port(), tempfile::tempdir().unwrap());
        // It runs itself as another user, who may not reach the place where it was built.
        let own = directory.path().join("exim");
        fs::copy(program, &own).unwrap();
        let here = directory.path().display();
        for name in ["spool", "log", "mail"] {
            fs::create_dir(directory.path().join(name)).unwrap();
            fs::set_permissions(directory.path().join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let text = format!(
            "exim_path = {}\nprimary_hostname = mx.test\nspool_directory = {here}/spool\nlog_file_path = {here}/log/%s\nlocal_interfaces = 127.0.0.1\n\
             daemon_smtp_ports = {port}\nexim_user = nobody\nexim_group = nogroup\nnever_users =\nhost_lookup =\nrfc1413_hosts =\n\
             domainlist local_domains = box.test\nacl_smtp_rcpt = acl_rcpt\nacl_smtp_data = acl_data\nkeep_environment =\n{main}\n\
             begin acl\nacl_rcpt:\naccept\nacl_data:\n{acl}accept\n\
             begin routers\nall:\ndriver = accept\ntransport = file\n\
             begin transports\nfile:\ndriver = appendfile\nfile = {here}/mail/inbox\nuser = nobody\ngroup = nogroup\n",
            own.display()
        );
        let config = directory.path().join("exim.conf");
        fs::write(&config, text).unwrap();
        let mut command = Command::new(&own);
        command.arg("-bdf").arg("-C").arg(&config).stdin(Stdio::null());
        let mut exim = Self { child: command.spawn().unwrap(), port, directory };
        wait_for_some("Exim", || {
            assert_eq!(exim.child.try_wait().unwrap(), None, "{}", exim.log());
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(exim)
    }

    fn log(&self) -> String {
        let files =
            fs::read_dir(self.directory.path().join("log")).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }

    fn client(&self) -> Client {
        Client::connect_from(self.port, OUTSIDE)
    }

    /// The mailbox, once it has so many complete messages.
    fn inbox(&self, messages: usize) -> String {
        wait_for_some(&format!("mail in Exim's mailbox ({})", self.log()), || {
            let text = fs::read_to_string(self.directory.path().join("mail/inbox")).unwrap_or_default();
            (text.matches("kappa lambda mu\n").count() >= messages).then_some(text)
        })
    }
}

impl Drop for Exim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each message has the header line with its counts, uncut, and a message refused by the policy is refused while the client waits; without
/// the interface, mail flows.
#[test]
fn the_dcc_condition_refuses_bulk() {
    let keys = "exempt = [\"authenticated\"]\n[thresholds]\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";
    let site = site(keys, "", "");
    let daemon = start(&site);
    let socket = site.path("dccifd.sock").display().to_string();
    let (main, acl) = guide("## Exim's DCC condition");
    let main = main.replace("/run/bulkmark/dccifd.sock", &socket);
    let Some(exim) = Exim::start(&main, &acl) else { return };
    let mut client = exim.client();
    for n in 1..10 {
        client.send("s@example.org", &["u@box.test", "v@box.test"], &letter(1)).expect(250);
        assert_eq!(count(&site, &letter(1)), 2 * n, "{}", exim.log());
    }
    client.send("", &["u@box.test"], &letter(1)).expect(250);
    let refused = client.send("s@example.org", &["u@box.test"], &letter(1)).expect(550);
    assert!(refused.text.contains("bulk mail refused"), "{refused:?}");
    let line = daemon.log.wait_for(0, "interface=dccifd");
    for part in [OUTSIDE, "from=<s@example.org>", "nrcpt=2"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let inbox = exim.inbox(19);
    let fields: Vec<_> = inbox.lines().filter(|line| line.starts_with("X-DCC-bulkmark-Metrics: ")).collect();
    for n in [2, 18, 19] {
        let counts = format!("; Body={n} Fuz1=");
        assert!(fields.iter().any(|field| field.contains(&counts)), "{counts}: {fields:?}\n{inbox}");
    }
    daemon.kill();
    client.send("s@example.org", &["u@box.test"], &letter(1)).expect(250);
}

/// A running spamd; killed when dropped.
pub(crate) struct Spamd(Child);

impl Spamd {
    /// Starts it with the files written into the site's directories for it.
    pub(crate) fn start(site: &Site, port: u16) -> Option<Self> {
        if Command::new("spamd").arg("--version").output().is_err() {
            skip("spamd is not installed");
            return None;
        }
        let (rules, own) = (site.path("rules"), site.path("spamassassin"));
        fs::create_dir(site.path("home")).unwrap();
        let mut command = Command::new("spamd");
        command.arg("-x").arg("-C").arg(rules).arg(format!("--siteconfigpath={}", own.display()));
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--max-children=1", "--syslog=stderr"]);
        command.args(["--username=nobody", &format!("--helper-home-dir={}", site.path("home").display())]);
        let child = command.env("HOME", site.directory.path()).stdin(Stdio::null()).spawn().unwrap();
        let mut spamd = Self(child);
        wait_for_some("spamd", || {
            assert_eq!(spamd.0.try_wait().unwrap(), None, "spamd ended");
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(spamd)
    }
}

impl Drop for Spamd {
    fn drop(&mut self) {
        // It has children, which it ends itself.
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.0.wait();
        }
    }
}

/// Debian's own Exim has this condition: SpamAssassin's result for a message, with the plugin's result.
#[test]
fn the_spam_condition_knows_bulk() {
    let site = site("exempt = [\"authenticated\"]\n", "", "");
    let _daemon = start(&site);
    let port = free_port();
    crate::spamassassin_plugin::files(&site, "clear_report_template\nreport _TESTS_\n");
    let Some(_spamd) = Spamd::start(&site, port) else { return };
    let (main, acl) = guide("## Exim and SpamAssassin");
    let main = main.replace("127.0.0.1 783", &format!("127.0.0.1 {port}"));
    let Some(exim) = Exim::start(&main, &acl) else { return };
    let mut client = exim.client();
    client.send("s@example.org", &["u@box.test"], &letter(1)).expect(250);
    assert_eq!(count(&site, &letter(1)), 1, "{}", exim.log());
    for _ in 2..20 {
        judge(&site, "?ip=192.0.2.7", &letter(1));
    }
    client.send("s@example.org", &["u@box.test"], &letter(1)).expect(250);
    let inbox = exim.inbox(2);
    assert_eq!(inbox.matches("BULKMARK_BULK").count(), 1, "{inbox}\n{}", exim.log());
    assert_eq!(count(&site, &letter(1)), 20);
}
