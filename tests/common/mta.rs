// SPDX-License-Identifier: GPL-3.0-or-later
//! Real mail servers, private to one test, and the daemon behind them.

use super::smtp::{Client, Origin, Reply};
use super::{Daemon, PATIENCE, Site, without_near};
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Ports below those that the system gives to clients, so that none is lost between two starts of a server.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Exit code of the scripts where something is missing on this machine.
const EX_UNAVAILABLE: i32 = 69;

/// Says why a test could not be made. Where everything has to be there, that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "this must not be skipped in CI: {why}");
    // Past the test harness, which would keep it to itself.
    let _ = writeln!(std::io::stdout(), "SKIPPED: {}", why.trim_end());
}

/// A port of 127.0.0.1 on which nobody listens. The same one is not given twice soon.
pub fn free_port() -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let random = RandomState::new().hash_one(std::process::id());
        AtomicU16::new(u16::try_from(random % u64::from(u16::MAX)).unwrap())
    });
    loop {
        let port = PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % (PORTS.end - PORTS.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Calls `find` until it finds something; panics with `what` when it does not in time.
#[track_caller]
pub fn wait_until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The mail servers that there are scripts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postfix,
    Sendmail,
}

/// A running mail server; stopped when dropped.
pub struct Mta {
    base: PathBuf,
    pub port: u16,
    script: Child,
    /// The script stops the server when this is closed, which also happens when the test process is killed.
    stdin: Option<ChildStdin>,
}

impl Mta {
    /// Starts a server that asks the milter at `milter`, with more settings (see tests/mta). None, and the reason is
    /// told, where something is missing.
    pub fn start(kind: Kind, milter: &str, settings: &[&str]) -> Option<Self> {
        let script = match kind {
            Kind::Postfix => "postfix",
            Kind::Sendmail => "sendmail",
        };
        // The script removes it, even where this process does not live to do so.
        let base = tempfile::Builder::new().prefix("bulkmark-mta-").tempdir().unwrap().keep();
        let port = free_port();
        let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mta").join(script))
            .arg("run")
            .arg(&base)
            .arg(port.to_string())
            .arg(milter)
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // An interrupt from the keyboard reaches it by the end of its standard input, once.
            .process_group(0)
            .spawn()
            .unwrap();
        let stdin = script.stdin.take();
        let mut first = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut first).unwrap();
        if first == "ready\n" {
            return Some(Self { base, port, script, stdin });
        }
        let mut told = String::new();
        script.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = script.wait().unwrap();
        assert_eq!(status.code(), Some(EX_UNAVAILABLE), "{kind:?} did not start: {told}");
        skip(&told);
        None
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// The messages that were delivered to `recipient` so far.
    pub fn delivered(&self, recipient: &str) -> Vec<Mail> {
        let to = format!("Delivered-To: {recipient}\n");
        let mut files: Vec<_> = fs::read_dir(self.path("maildir/all/new"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort_by_key(|file| fs::metadata(file).unwrap().modified().unwrap());
        files.iter().map(|file| Mail::read(file)).filter(|mail| mail.0.contains(&to)).collect()
    }

    /// Waits until `count` messages were delivered to `recipient`, and returns them.
    #[track_caller]
    pub fn wait_for_mail(&self, recipient: &str, count: usize) -> Vec<Mail> {
        let found = wait_until(&format!("mail number {count} for {recipient}"), || {
            Some(self.delivered(recipient)).filter(|mails| mails.len() >= count)
        });
        assert_eq!(found.len(), count, "more came than was sent");
        found
    }

    /// Waits for a line of Postfix's log that contains `text`.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> String {
        wait_until(&format!("{text:?} in the mail log"), || {
            self.log().lines().find(|line| line.contains(text)).map(str::to_owned)
        })
    }

    /// Postfix's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("mail.log")).unwrap_or_default()
    }

    /// The messages that Postfix holds back, as postcat(1) shows them.
    pub fn held(&self) -> Vec<Mail> {
        let show = |file: PathBuf| {
            let shown = Command::new("postcat")
                .arg("-c")
                .arg(self.path("etc"))
                .arg("-hb")
                .arg(file)
                .output()
                .unwrap();
            Mail(String::from_utf8_lossy(&shown.stdout).into_owned())
        };
        self.queue_files("queue/hold").into_iter().map(show).collect()
    }

    /// The files in a directory of the queue.
    pub fn queue_files(&self, directory: &str) -> Vec<PathBuf> {
        fs::read_dir(self.path(directory)).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Whether Postfix has no message on its way. (It hashes none of these directories by default.)
    pub fn is_idle(&self) -> bool {
        ["maildrop", "incoming", "active", "hold"]
            .iter()
            .all(|d| self.queue_files(&format!("queue/{d}")).is_empty())
    }
}

impl Drop for Mta {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // There is nothing more to be done if it fails; it has told why.
        let _ = self.script.wait();
    }
}

/// A message as it was delivered.
#[derive(Debug, Clone)]
pub struct Mail(pub String);

impl Mail {
    fn read(file: &Path) -> Self {
        Self(String::from_utf8_lossy(&fs::read(file).unwrap()).replace("\r\n", "\n"))
    }

    /// The values of all header fields of this name, unfolded.
    pub fn header(&self, name: &str) -> Vec<String> {
        let head = self.0.split("\n\n").next().unwrap_or_default();
        let unfolded = head.replace("\n\t", " ").replace("\n ", " ");
        let value = |line: &str| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        unfolded.lines().filter_map(value).collect()
    }

    /// The one header of the milter, without what it says of near signatures.
    #[track_caller]
    pub fn verdict(&self) -> String {
        let headers = self.header("X-Bulkmark");
        assert_eq!(headers.len(), 1, "one header was expected in:\n{}", self.0);
        without_near(&headers[0])
    }
}

/// A mail server with the daemon behind it.
pub struct Rig {
    /// Before the daemon in this list, and so stopped before it.
    pub mta: Mta,
    pub daemon: Daemon,
    pub site: Site,
}

impl Rig {
    /// On TCP; `extra` goes into the daemon's configuration. None where the mail server is missing.
    pub fn start(kind: Kind, extra: &str) -> Option<Self> {
        Self::start_with(kind, Self::tcp_site(extra), &[])
    }

    /// A site on a port that stays the same over restarts.
    pub fn tcp_site(extra: &str) -> Site {
        let mut site = Site::new(extra);
        site.listen = format!("inet:127.0.0.1:{}", free_port());
        site
    }

    /// With a site of one's own, and settings for the mail server.
    pub fn start_with(kind: Kind, site: Site, settings: &[&str]) -> Option<Self> {
        // The mail server's user must get to the socket.
        fs::set_permissions(site.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mta = Mta::start(kind, &site.listen, settings)?;
        let daemon = site.start();
        assert_eq!(daemon.address, site.listen);
        Some(Self { mta, daemon, site })
    }

    /// Kills the daemon, as a power loss would, and starts it again.
    pub fn kill_and_restart(&mut self) {
        self.daemon.child.kill().unwrap();
        self.daemon.child.wait().unwrap();
        self.daemon = self.site.start();
    }

    /// Has the daemon read a changed configuration.
    #[track_caller]
    pub fn reload(&mut self, extra: &str) {
        extra.clone_into(&mut self.site.extra);
        self.site.config();
        let told = self.daemon.reload();
        assert!(told.contains("read again"), "{told}");
    }

    /// Writes a file beside the configuration, and returns its path as it is to be named there.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.site.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A connection on which nothing is pretended.
    pub fn local(&self) -> Client {
        Client::connect(self.mta.port)
    }

    /// A connection from somewhere else (Postfix only).
    pub fn outside(&self) -> Client {
        self.from(Origin::default())
    }

    /// A connection from there.
    pub fn from(&self, origin: Origin<'_>) -> Client {
        Client::connect_as(self.mta.port, origin)
    }

    /// Sends a message from outside, which must be taken, and returns the header with which it is delivered to
    /// `recipient`, who gets no other.
    #[track_caller]
    pub fn verdict_for(&self, recipient: &str, message: &[u8]) -> String {
        self.outside().send("news@sender.test", &[recipient], message).expect(250);
        self.mta.wait_for_mail(recipient, 1)[0].verdict()
    }

    /// Sends twenty copies over `client`, to a recipient each: the twentieth is bulk.
    #[track_caller]
    pub fn expect_bulk_at_the_twentieth(&self, client: &mut Client) {
        for n in 1..=20 {
            let recipient = format!("reader{n}@box.test");
            client.send("news@sender.test", &[&recipient], &message("", NEWS)).expect(250);
            let verdict = if n < 20 { "clean" } else { "bulk" };
            let mail = &self.mta.wait_for_mail(&recipient, 1)[0];
            assert_eq!(mail.verdict(), format!("{verdict}; body={n}; threshold=20; host=mx.test"));
        }
    }

    /// Sends a message from outside; the reply.
    pub fn send(&self, recipient: &str, message: &[u8]) -> Reply {
        self.outside().send("news@sender.test", &[recipient], message)
    }
}

/// A body that says enough to be counted.
pub const NEWS: &str = "The harbour museum opens its new hall on Saturday with forty model ships,\n\
                        a tide clock and a reading corner. Tickets are at the old pilot house.\n";

/// A message with a Message-ID of its own; `fields` are whole lines.
pub fn message(fields: &str, body: &str) -> Vec<u8> {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let id = format!("{}.{}@sender.test", NUMBER.fetch_add(1, Ordering::Relaxed), std::process::id());
    message_with_id(&id, fields, body)
}

/// A message with this Message-ID.
pub fn message_with_id(id: &str, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "From: Harbour Museum <news@sender.test>\nTo: Friends <friends@sender.test>\nSubject: News {id}\n\
         Date: Sat, 21 Nov 2026 10:00:00 +0000\nMessage-ID: <{id}>\n{fields}\n{body}"
    )
    .into_bytes()
}
