// SPDX-License-Identifier: GPL-3.0-or-later
//! Haraka of the npm registry, with its dcc plugin.

use crate::asking::{site, start};
use crate::guide::shown;
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::mta::{EX_UNAVAILABLE, free_port};
use bulkmark_testing::smtp::{Client, Origin};
use bulkmark_testing::{skip, wait_for_some};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The packages: Haraka itself, which needs Node 20 or newer, and the plugin.
const PACKAGES: [&str; 2] = ["Haraka@3.3.4", "haraka-plugin-dcc@1.1.1"];

/// A new enough Node; none if it cannot be fetched.
fn node() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mta/node");
    let fetched = Command::new(script).arg("fetch").output().unwrap();
    let told = String::from_utf8_lossy(&fetched.stderr);
    if fetched.status.code() == Some(EX_UNAVAILABLE) {
        skip(&format!("no Node 20 or newer: {told}"));
        return None;
    }
    assert!(fetched.status.success(), "{told}");
    Some(String::from_utf8(fetched.stdout).unwrap().trim_end().into())
}

/// The program; none if the npm registry cannot be reached.
fn haraka() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("haraka-3.3.4");
    let program = directory.join("node_modules/Haraka/bin/haraka");
    if directory.join("done").exists() {
        return Some(program);
    }
    fs::create_dir_all(&directory).unwrap();
    let options = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    let mut npm = Command::new("npm");
    npm.arg("install").args(options).args(PACKAGES).current_dir(&directory).stdin(Stdio::null());
    let why = match npm.output() {
        Ok(output) if output.status.success() => {
            fs::write(directory.join("done"), "").unwrap();
            return Some(program);
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(e) => e.to_string(),
    };
    skip(&format!("{} cannot be installed by npm: {why}", PACKAGES.join(" and ")));
    None
}

/// A running Haraka; killed when dropped.
struct Haraka {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Haraka {
    /// Starts it as in docs/interfaces.md, with a site's socket. It accepts mail for box.test, and writes it into files.
    fn start(socket: &Path) -> Option<Self> {
        let (node, program) = (node()?, haraka()?);
        let (port, directory) = (free_port(), tempfile::tempdir().unwrap());
        let write = |file: &str, text: &str| {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let dcc = shown("/etc/haraka/config/dcc.ini")
            .replace("/run/bulkmark/dccifd.sock", &socket.display().to_string());
        let plugins = shown("/etc/haraka/config/plugins");
        write("config/dcc.ini", &dcc);
        write("config/plugins", &format!("xclient\nrcpt_to.in_host_list\n{plugins}queue/test\n"));
        write("plugins/bulkmark_refuse.js", &shown("/etc/haraka/plugins/bulkmark_refuse.js"));
        write("config/smtp.ini", &format!("listen=127.0.0.1:{port}\nnodes=0\n"));
        write("config/host_list", "box.test\n");
        write("config/xclient.hosts", "127.0.0.1\n");
        write("config/me", "mx.test\n");
        let usual = program.parent().unwrap().join("../config/connection.ini");
        fs::copy(usual, directory.path().join("config/connection.ini")).unwrap();
        write("queue/nothing", "");
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new(node);
        command.arg(program).arg("-c").arg(directory.path()).env("TMPDIR", directory.path().join("queue"));
        command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
        let mut haraka = Self { child: command.spawn().unwrap(), port, directory };
        wait_for_some("Haraka", || {
            assert_eq!(haraka.child.try_wait().unwrap(), None, "{}", haraka.log());
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(haraka)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// The accepted messages, as they would be delivered.
    fn accepted(&self) -> Vec<String> {
        let files =
            fs::read_dir(self.directory.path().join("queue")).unwrap().map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|e| e == "eml"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect()
    }
}

impl Drop for Haraka {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each recipient counts, each message has the header line, and a message refused by the policy is refused while the client waits:
/// permanently, or temporarily.
#[test]
fn what_the_policy_refuses_is_refused() {
    let keys = "[thresholds]\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n\
                [[policy]]\nname = \"later\"\nmatch = { recipient = \"later@box.test\" }\nactions = { bulk = \"tempfail\", near = \"tempfail\" }\n";
    let site = site(keys, "", "");
    let daemon = start(&site);
    let Some(haraka) = Haraka::start(&site.path("dccifd.sock")) else { return };
    let mut client = Client::connect_as(haraka.port, Origin::default());
    for n in (2..20).step_by(2) {
        client.send("s@example.org", &["u@box.test", "v@box.test"], &letter(1)).expect(250);
        assert_eq!(count(&site, &letter(1)), n, "{}", haraka.log());
    }
    let line = daemon.log.wait_for(0, "interface=dccifd");
    for part in ["[192.0.2.25]", "from=<s@example.org>", "nrcpt=2"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let accepted = haraka.accepted();
    assert_eq!(accepted.len(), 9);
    for n in (2..20).step_by(2) {
        let field = format!("; Body={n} Fuz1=");
        let with =
            accepted.iter().filter(|mail| mail.contains("X-DCC-bulkmark-Metrics: ") && mail.contains(&field));
        assert_eq!(with.count(), 1, "{field} {accepted:?}");
    }
    // The nineteenth copy.
    client.send("s@example.org", &["u@box.test"], &letter(1)).expect(250);
    let refused = client.send("s@example.org", &["u@box.test"], &letter(1)).expect(550);
    assert!(refused.text.contains("bulk mail refused"), "{refused:?}");
    let later = client.send("s@example.org", &["later@box.test"], &letter(1)).expect(450);
    assert!(later.text.contains("try again later"), "{later:?}");
    // Without the interface, mail flows.
    daemon.kill();
    client.send("s@example.org", &["u@box.test"], &letter(1)).expect(250);
}
