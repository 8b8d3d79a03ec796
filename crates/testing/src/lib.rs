// SPDX-License-Identifier: GPL-3.0-or-later
//! Helpers for all tests: the real program as a child process, in a directory of its own.

#![allow(missing_docs, reason = "the tests beside which it stands show how it is used")]

pub mod authority;
pub mod browser;
pub mod clock;
pub mod counts;
pub mod dkim;
pub mod dns;
pub mod ends;
pub mod fleet;
pub mod gate;
pub mod held;
pub mod holders;
pub mod http;
pub mod letters;
pub mod members;
pub mod milter;
pub mod mount;
pub mod mta;
pub mod namespace;
pub mod nats;
pub mod networks;
pub mod page;
pub mod passed;
pub mod postgres;
pub mod process;
pub mod proxy;
#[path = "../../filter/tests/common/random.rs"]
pub mod random;
pub mod reports;
pub mod rig;
pub mod rspamd;
pub mod server;
pub mod signer;
pub mod smtp;
pub mod standin;
pub mod verifiers;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time that a test waits for an event before it fails: longer than any machine needs, however busy it is.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// The longest pause between two questions of [`wait_until`]. Each may start a process.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The program under test: the one that Cargo built for the test, or the one that `BINARY` names.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let named = std::env::var("BINARY").or_else(|_| std::env::var("CARGO_BIN_EXE_bulkmark"));
        named.expect("run the tests by cargo, which names the program in CARGO_BIN_EXE_bulkmark")
    });
    &PROGRAM
}

/// Logs why a test was skipped. Where everything must be installed, that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "this must not be skipped in CI: {why}");
    // This bypasses the test harness, which would capture the text.
    let _ = writeln!(std::io::stdout(), "SKIPPED: {}", why.trim_end());
}

/// The directory of the whole project.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The text of a project file, by its path from the project's directory.
#[track_caller]
pub fn text_of(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The lines that a child has written to its standard error so far.
#[derive(Clone, Default)]
pub struct Log(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Log {
    fn follow(&self, stream: impl std::io::Read + Send + 'static) {
        let log = self.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                log.0.0.lock().unwrap().push(line);
                log.0.1.notify_all();
            }
        });
    }

    /// Returns all lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until a line, after the first `skip` ones, contains `text`, and returns it.
    #[track_caller]
    pub fn wait_for(&self, skip: usize, text: &str) -> String {
        self.wait_for_any(skip, &[text])
    }

    /// Waits until a line, after the first `skip` ones, contains one of these texts, and returns it.
    #[track_caller]
    pub fn wait_for_any(&self, skip: usize, texts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.0.0.lock().unwrap();
        loop {
            let found = |line: &&String| texts.iter().any(|text| line.contains(text));
            if let Some(line) = lines.iter().skip(skip).find(found) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no line with {texts:?} came; the log is:\n{}", lines.join("\n"));
            lines = self.0.1.wait_timeout(lines, left).unwrap().0;
        }
    }
}

/// A state directory with a configuration, in which the daemon can be started many times.
pub struct Site {
    /// The directory of all its files.
    pub directory: TempDir,
    /// TOML below the fixed keys: tables, or keys that `Site` does not set.
    pub extra: String,
    /// The milter's listener: TOML, with or without quotes.
    pub listen: String,
    /// Variables of the daemon's environment.
    pub environment: Vec<(String, String)>,
}

impl Site {
    /// Makes a site on a port that the system chooses, with `extra` in the configuration.
    pub fn new(extra: &str) -> Self {
        Self {
            directory: tempfile::Builder::new().prefix("bulkmark-test-").tempdir().unwrap(),
            extra: extra.to_owned(),
            listen: "inet:127.0.0.1:0".to_owned(),
            environment: Vec::new(),
        }
    }

    /// The same, on a Unix socket in its directory.
    pub fn unix(extra: &str) -> Self {
        let mut site = Self::new(extra);
        site.listen = format!("unix:{}", site.path("m.sock").display());
        site
    }

    /// A file in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the configuration file again and returns its path.
    pub fn config(&self) -> PathBuf {
        let path = self.path("milter.toml");
        let state = self.path("state");
        fs::create_dir_all(&state).unwrap();
        let log = if self.extra.contains("[log]") { "" } else { "\n[log]\ntarget = \"stderr\"\n" };
        let page = if self.extra.contains("[status]") { "" } else { "\n[status]\nlisten = \"\"\n" };
        // The longest time that the option allows: even a busy machine judges a message within it.
        let deadline =
            if self.extra.contains("verdict-deadline") { "" } else { "verdict-deadline = \"4m\"\n" };
        let listen =
            if self.listen.starts_with('[') { self.listen.clone() } else { format!("{:?}", self.listen) };
        let text = format!(
            "listen = {}\nlisten-mode = \"0666\"\ncontrol = \"{}\"\nstate-dir = \"{}\"\nhostname = \"mx.test\"\n{deadline}{}{page}{log}",
            listen,
            self.path("control.sock").display(),
            state.display(),
            self.extra
        );
        fs::write(&path, text).unwrap();
        path
    }

    /// The same for interfaces alone, without a mail server.
    pub fn interfaces(&self) -> PathBuf {
        let text = fs::read_to_string(self.config()).unwrap();
        let path = self.path("interfaces.toml");
        let keys = text.lines();
        // Top-level keys come first, so those of tables are not at the beginning of the file.
        let (head, tables) = text.split_once("\n[").unwrap();
        assert!(head.starts_with("listen = "), "{head}");
        let kept = keys.take_while(|line| !line.starts_with('['));
        let kept: Vec<_> =
            kept.map(|line| if line.starts_with("listen = ") { "listen = \"none\"" } else { line }).collect();
        fs::write(&path, format!("{}\n[{tables}", kept.join("\n"))).unwrap();
        path
    }

    /// Starts the daemon and waits until it listens.
    pub fn start(&self) -> Daemon {
        self.spawn().listening()
    }

    /// Starts the daemon without waiting, for configurations that must fail.
    pub fn spawn(&self) -> Daemon {
        self.spawn_by(Command::new(program()).args(["milter", "--config"]).arg(self.config()))
    }

    /// Starts the daemon by the test's own command.
    pub fn spawn_by(&self, command: &mut Command) -> Daemon {
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.envs(self.environment.iter().cloned());
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Log::default();
        log.follow(child.stderr.take().unwrap());
        Daemon { child, log, address: String::new() }
    }

    /// Runs `bulkmark check --json` on a message and returns exit code and output.
    pub fn check(&self, message: &[u8]) -> (i32, String) {
        let file = self.path("check.eml");
        fs::write(&file, message).unwrap();
        let config = self.config();
        let output = Command::new(program())
            .args(["check", "--json", "--config"])
            .arg(config)
            .arg(file)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        // Without the surrounding list, which has only this element, and without the file's name.
        let one = text.strip_prefix("{\"messages\":[{").and_then(|rest| rest.split_once(",\"verdict\""));
        let one = one.map(|(_, rest)| format!("{{\"verdict\"{}\n", rest.trim_end().trim_end_matches("]}")));
        let error = text.strip_prefix("{\"messages\":[]}\n").unwrap_or(&text).to_owned();
        (output.status.code().unwrap(), one.unwrap_or(error))
    }
}

/// The first message in the output of `check`, `signature` and `report add` with `--json`.
#[track_caller]
pub fn first_message(output: &[u8]) -> serde_json::Value {
    let all = serde_json::from_slice::<serde_json::Value>(output);
    let all = all.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(output)));
    all["messages"][0].clone()
}

/// Returns the output of `bulkmark status --json` for a milter; null while it does not answer.
pub fn status(site: &Site) -> serde_json::Value {
    let output =
        Command::new(program()).args(["status", "--json", "--config"]).arg(site.config()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    /// The process.
    pub child: Child,
    /// Its standard error.
    pub log: Log,
    /// The address in Postfix's notation: `inet:127.0.0.1:12345` or `unix:/path`.
    pub address: String,
}

impl Daemon {
    /// Waits until the daemon listens.
    pub fn listening(mut self) -> Self {
        let line = self.log.wait_for(0, " listens on ");
        let (_, addresses) = line.split_once(" listens on ").unwrap();
        // The first of several; names are in brackets.
        self.address = addresses.split([',', ' ']).next().unwrap().to_owned();
        self
    }

    /// Returns the address of the listener of this name.
    pub fn listener(&self, name: &str) -> String {
        let line = self.log.wait_for(0, " listens on ");
        let (_, addresses) = line.split_once(" listens on ").unwrap();
        let suffix = format!(" ({name})");
        addresses.split(", ").find_map(|address| address.strip_suffix(&suffix)).unwrap().to_owned()
    }

    /// Returns host and port of a TCP listener.
    pub fn tcp(&self) -> &str {
        self.address.strip_prefix("inet:").unwrap()
    }

    /// Returns the path of a Unix listener.
    pub fn unix(&self) -> &Path {
        Path::new(self.address.strip_prefix("unix:").unwrap())
    }

    /// Returns the number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `HUP`. After `STOP` none of its threads runs.
    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status().unwrap();
        assert!(status.success());
        // A thread on another processor stops a little later, and on a busy machine still answers.
        if name == "STOP" {
            wait_for_some("the stop of all threads", || self.is_stopped().then_some(()));
        }
    }

    fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        // A thread that has ended has no file. The state follows the name, which is in parentheses.
        let mut stats =
            threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("stat")).ok());
        stats.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T')))
    }

    /// Sends SIGHUP and returns the line with the result of the reload.
    pub fn reload(&self) -> String {
        let skip = self.log.lines().len();
        self.signal("HUP");
        self.log.wait_for_any(skip, &["read again", "stays in force"])
    }

    /// Waits for the end of the process.
    pub fn wait(mut self) -> ExitStatus {
        wait_until("the daemon's end", || {
            self.child.try_wait().unwrap().ok_or_else(|| self.log.lines().join("\n"))
        })
    }

    /// Ends it with SIGTERM.
    pub fn terminate(self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Repeats a question until the answer is good, and returns it. Any other answer has the reason why it is not.
#[track_caller]
pub fn wait_until<T>(what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let (deadline, mut pause) = (Instant::now() + PATIENCE, Duration::from_millis(5));
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(why) => assert!(Instant::now() < deadline, "{what}: {why}"),
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// The same for answers without a reason.
#[track_caller]
pub fn wait_for_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    wait_until(what, || find().ok_or_else(|| "it did not come".to_owned()))
}

/// A message with CRLF line ends, from a text with LF.
pub fn crlf(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

/// The milter's header without its parts about near signatures and networks, unless these held the message back: for tests of
/// everything else.
pub fn without_near(header: &str) -> String {
    let is_left_out = |field: &&str| ["near", "sources=", "own="].iter().any(|name| field.starts_with(name));
    let fields = header.split("; ").filter(|field| !is_left_out(field));
    fields.collect::<Vec<_>>().join("; ")
}
