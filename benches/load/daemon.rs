// SPDX-License-Identifier: GPL-3.0-or-later
//! The real program with a fresh ledger, and the system's data about a process.

use bulkmark_testing::{program, wait_until};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// User and system times in /proc are in hundredths of a second on Linux.
const TICKS: f64 = 100.0;

/// CPU seconds of a process so far, in user and system mode.
pub(crate) fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    [11, 12].iter().map(|&i| fields[i].parse::<f64>().expect("ticks")).sum::<f64>() / TICKS
}

/// On the disk of the project, not on a memory file system: a commit must reach a disk.
pub(crate) fn target_dir() -> &'static str {
    env!("CARGO_TARGET_TMPDIR")
}

pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
    /// The addresses of its interfaces, in the order in which it opened them.
    pub(crate) interfaces: Vec<String>,
    directory: tempfile::TempDir,
}

impl Daemon {
    /// `listen` is `unix` or `inet`; `extra` is further configuration with so many interfaces, in which `@` is the daemon's
    /// directory.
    pub(crate) fn start(listen: &str, extra: &str, interfaces: usize) -> Self {
        Self::start_by(Path::new(&program()), listen, extra, interfaces)
    }

    /// The same by this program.
    pub(crate) fn start_by(program: &Path, listen: &str, extra: &str, interfaces: usize) -> Self {
        let directory =
            tempfile::Builder::new().prefix("bulkmark-bench-").tempdir_in(target_dir()).expect("directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let listen =
            if listen == "unix" { format!("unix:{}", path("m")) } else { "inet:127.0.0.1:0".to_owned() };
        let config = format!(
            "listen = \"{listen}\"\ncontrol = \"{}\"\nstate-dir = \"{}\"\n[status]\nlisten = \"127.0.0.1:0\"\n\
             [log]\ntarget = \"stderr\"\n{}",
            path("control"),
            directory.path().display(),
            extra.replace('@', &directory.path().display().to_string())
        );
        std::fs::write(path("milter.toml"), config).expect("config");
        let mut child = Command::new(program)
            .args(["milter", "--config", &path("milter.toml")])
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines().map_while(Result::ok);
        let mut behind = |what: &str| {
            let line =
                lines.find(|line| line.contains(what)).unwrap_or_else(|| panic!("no line with {what:?}"));
            line.split(what)
                .nth(1)
                .and_then(|rest| rest.split([' ', ',']).next())
                .expect("address")
                .to_owned()
        };
        let address = behind(" listens on ");
        let interfaces = (0..interfaces).map(|_| behind(" is at ")).collect();
        std::thread::spawn(move || lines.count());
        Self { child, address, interfaces, directory }
    }

    /// The C filter that only accepts, which takes every event (`null_milter.c`); without a compiler or libmilter, the reason.
    pub(crate) fn null_milter() -> Result<Self, String> {
        let directory =
            tempfile::Builder::new().prefix("bulkmark-bench-").tempdir_in(target_dir()).expect("directory");
        let (program, socket) = (directory.path().join("null_milter"), directory.path().join("m"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/postfix/null_milter.c");
        let mut compiler = Command::new("cc");
        compiler.arg("-O2").arg("-o").arg(&program).args([source, "-lmilter", "-lpthread"]);
        let output = compiler.output().map_err(|e| format!("cc: {e}"))?;
        if !output.status.success() {
            return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let address = format!("unix:{}", socket.display());
        let child = Command::new(program).arg(&address).spawn().expect("start");
        let daemon = Self { child, address, interfaces: Vec::new(), directory };
        wait_until("the C filter", || UnixStream::connect(&socket).map_err(|e| e.to_string()));
        Ok(daemon)
    }

    /// A file in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its CPU seconds so far.
    pub(crate) fn cpu(&self) -> f64 {
        cpu(self.pid())
    }

    /// Megabytes in memory.
    pub(crate) fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("kB") / 1024.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
