// SPDX-License-Identifier: GPL-3.0-or-later
//! `pyzord` of PyPI.

use crate::load::daemon::target_dir;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The newest version.
const VERSION: &str = "1.1.2";

/// A running one.
pub(crate) struct Pyzord {
    child: Child,
    pub(crate) address: String,
    /// The engine of its records.
    pub(crate) name: String,
    _directory: tempfile::TempDir,
}

impl Pyzord {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// The reason why it is not available.
    pub(crate) fn start() -> Result<Self, String> {
        let programs = install()?;
        let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
        let access = "check report ping : anonymous : allow\n";
        std::fs::write(directory.path().join("pyzord.access"), access).map_err(|e| e.to_string())?;
        // No other process has this port, and the socket that had it is closed.
        let port =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("port").port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/interfaces/pyzord.py");
        let mut child = Command::new(programs.join("python"))
            .arg(script)
            .arg(programs.join("pyzord"))
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "--cleanup-age=0", "--homedir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut keeps = String::new();
        let told = child.stdout.take().map(BufReader::new);
        let read = told.map(|mut told| told.read_line(&mut keeps));
        let (address, name) = (format!("127.0.0.1:{port}"), format!("pyzord {VERSION}, {}", keeps.trim()));
        let mut pyzord = Self { child, address, name, _directory: directory };
        if read.is_none_or(|read| read.is_err()) || !pyzord.answers() {
            return Err("it was started and does not answer".to_owned());
        }
        Ok(pyzord)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it answers; false when it ended, or does not answer for a minute.
    fn answers(&mut self) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        socket.connect(&self.address).expect("connect");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("timeout");
        let ping = b"Op: ping\nThread: 1024\nPV: 2.1\nUser: anonymous\nTime: 1\nSig: 0\n\n";
        (0..600).any(|_| {
            // If nobody listens yet, this fails at once.
            let is_there = socket.send(ping).and_then(|_| socket.recv(&mut [0; 1024])).is_ok();
            if !is_there {
                std::thread::sleep(Duration::from_millis(100));
            }
            is_there
        })
    }
}

impl Drop for Pyzord {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of its programs, in a separate environment.
fn install() -> Result<PathBuf, String> {
    let directory = Path::new(target_dir()).join(format!("pyzor-{VERSION}"));
    let run = |program: &Path, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(text)
    };
    let (programs, pip) = (directory.join("bin"), directory.join("bin/pip"));
    if !programs.join("pyzord").exists() {
        run(Path::new("python3"), &["-m", "venv", &directory.display().to_string()])?;
        // Its setup needs an older setuptools.
        run(&pip, &["install", "-q", "setuptools<58", "wheel"])?;
        run(&pip, &["install", "-q", "--no-build-isolation", "--no-deps", &format!("pyzor=={VERSION}")])?;
    }
    Ok(programs)
}
