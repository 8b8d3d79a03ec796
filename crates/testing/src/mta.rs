// SPDX-License-Identifier: GPL-3.0-or-later
//! Real mail servers, private to one test.

use super::smtp::{Client, Origin};
use super::{repository, skip, wait_for_some, without_near};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports below those that the system gives to clients, so that none is lost between two starts of a server. Each process that runs tests
/// has a share of its own, so that none takes the port of another one's stopped server.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const SHARE: u16 = 1000;

/// The scripts' exit code for a program that is missing on this machine.
pub const EX_UNAVAILABLE: i32 = 69;

/// Returns a port of 127.0.0.1 on which nobody listens. It returns the same one again only after a long time.
pub fn free_port() -> u16 {
    static OWN: LazyLock<(u16, UnixListener)> = LazyLock::new(|| {
        wait_for_some("a free share of the ports", || {
            PORTS.step_by(SHARE.into()).find_map(|first| {
                // Binding the name takes the share until the process ends.
                let name = SocketAddr::from_abstract_name(format!("bulkmark-testing-{first}")).unwrap();
                Some((first, UnixListener::bind_addr(&name).ok()?))
            })
        })
    });
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = OWN.0 + NEXT.fetch_add(1, Ordering::Relaxed) % SHARE;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The mail servers with a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Postfix.
    Postfix,
    /// Sendmail.
    Sendmail,
}

impl Kind {
    /// An address (or network) of an external client, as this server can be made to see it. Postfix accepts any by XCLIENT.
    /// Sendmail uses the address of the connection, and so an address of loopback with the same last three numbers; see
    /// tests/mta/sendmail for addresses with a name.
    pub fn seen(self, address: &str) -> String {
        match self {
            Self::Postfix => address.to_owned(),
            Self::Sendmail => format!("127.{}", address.split_once('.').unwrap().1),
        }
    }
}

/// A running mail server; stopped when dropped.
pub struct Mta {
    kind: Kind,
    base: PathBuf,
    /// The address of its SMTP port.
    pub port: u16,
    script: Child,
    /// The script stops the server when this is closed, which also happens when the test process is killed.
    stdin: Option<ChildStdin>,
}

impl Mta {
    /// Starts a server with the milter at `milter` and more settings (see tests/mta). If a program is missing, it says so and
    /// returns None.
    pub fn start(kind: Kind, milter: &str, settings: &[&str]) -> Option<Self> {
        let script = match kind {
            Kind::Postfix => "postfix",
            Kind::Sendmail => "sendmail",
        };
        // The script removes the directory, even if this process is killed.
        let base = tempfile::Builder::new().prefix("bulkmark-mta-").tempdir().unwrap().keep();
        let port = free_port();
        let mut script = Command::new(repository().join("tests/mta").join(script))
            .arg("run")
            .arg(&base)
            .arg(port.to_string())
            .arg(milter)
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C reaches the script only through the end of its standard input, so only once.
            .process_group(0)
            .spawn()
            .unwrap();
        let stdin = script.stdin.take();
        let mut first = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut first).unwrap();
        if first == "ready\n" {
            return Some(Self { kind, base, port, script, stdin });
        }
        let mut told = String::new();
        script.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = script.wait().unwrap();
        assert_eq!(status.code(), Some(EX_UNAVAILABLE), "{kind:?} did not start: {told}");
        skip(&told);
        None
    }

    /// A file in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Returns the messages delivered to `recipient` so far.
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
        let found = wait_for_some(&format!("mail number {count} for {recipient}"), || {
            Some(self.delivered(recipient)).filter(|mails| mails.len() >= count)
        });
        assert_eq!(found.len(), count, "more came than was sent");
        found
    }

    /// Waits for a line of Postfix's log that contains `text`.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> String {
        wait_for_some(&format!("{text:?} in the mail log"), || {
            self.log().lines().find(|line| line.contains(text)).map(str::to_owned)
        })
    }

    /// Postfix's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("mail.log")).unwrap_or_default()
    }

    /// Connects as a client at this address.
    pub fn client(&self, origin: Origin<'_>) -> Client {
        match self.kind {
            Kind::Postfix => Client::connect_as(self.port, origin),
            Kind::Sendmail => {
                let mut client = Client::connect_from(self.port, &self.kind.seen(origin.ip));
                if let Some(login) = origin.login {
                    client.log_in(login);
                }
                client
            }
        }
    }

    /// Returns the quarantined messages.
    pub fn held(&self) -> Vec<Mail> {
        match self.kind {
            Kind::Postfix => self.queue_files("queue/hold").iter().map(|file| self.postcat(file)).collect(),
            Kind::Sendmail => {
                let files = self.queue_files("mqueue").into_iter();
                files.filter(|file| starts_with(file, "hf")).map(|file| envelope(&file)).collect()
            }
        }
    }

    /// Returns a message in Postfix's queue, in the format of postcat(1).
    fn postcat(&self, file: &Path) -> Mail {
        let shown =
            Command::new("postcat").arg("-c").arg(self.path("etc")).arg("-hb").arg(file).output().unwrap();
        Mail(String::from_utf8_lossy(&shown.stdout).into_owned())
    }

    /// The files in a directory of the queue.
    fn queue_files(&self, directory: &str) -> Vec<PathBuf> {
        fs::read_dir(self.path(directory)).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Whether no message is active or on hold. (Postfix hashes none of these directories by default.)
    pub fn is_idle(&self) -> bool {
        let directories: &[&str] = match self.kind {
            Kind::Postfix => &["queue/maildrop", "queue/incoming", "queue/active", "queue/hold"],
            Kind::Sendmail => &["mqueue"],
        };
        directories.iter().all(|directory| self.queue_files(directory).is_empty())
    }
}

fn starts_with(file: &Path, start: &str) -> bool {
    file.file_name().unwrap().to_str().unwrap().starts_with(start)
}

/// The header of a message in Sendmail's queue. In a queue file an H line is a header field, behind flags between two question
/// marks, and a q line the reason for a quarantine, which becomes a field of that name here.
fn envelope(file: &Path) -> Mail {
    let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    let mut header = String::new();
    for line in text.lines() {
        if let Some(field) = line.strip_prefix("H?") {
            header.push_str(field.split_once('?').unwrap().1);
        } else if let Some(reason) = line.strip_prefix('q') {
            header.push_str(&format!("Held: {reason}"));
        } else if line.starts_with('\t') {
            header.push_str(line);
        } else {
            continue;
        }
        header.push('\n');
    }
    Mail(header)
}

impl Drop for Mta {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // A failure needs no handling: the script has logged the reason.
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

    /// The milter's one header, without its parts about near signatures.
    #[track_caller]
    pub fn verdict(&self) -> String {
        let headers = self.header("X-Bulkmark");
        assert_eq!(headers.len(), 1, "one header was expected in:\n{}", self.0);
        without_near(&headers[0])
    }
}
