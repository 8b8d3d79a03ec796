// SPDX-License-Identifier: GPL-3.0-or-later
//! A real OpenDKIM, which signs messages and verifies them as a milter, with public keys from a file.

use super::mta::{free_port, skip, wait_until};
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The domain that signs.
pub const DOMAIN: &str = "shop.example";

/// OpenDKIM with a key of [`DOMAIN`]; stopped when dropped.
pub struct OpenDkim {
    pub milter: String,
    directory: tempfile::TempDir,
    child: Child,
}

impl OpenDkim {
    /// Starts a verifier that calls itself mx.test, with more lines of its configuration. None, and the reason is told, where it is
    /// missing.
    pub fn start(more: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let made = Command::new("opendkim-genkey")
            .args(["--bits=1024", "--hash-algorithms=*", "--selector=sel", "--domain", DOMAIN, "--directory"])
            .arg(directory.path())
            .stderr(Stdio::piped())
            .output();
        let Ok(made) = made else {
            skip("opendkim-genkey is missing; run tests/mta/install as root");
            return None;
        };
        assert!(made.status.success(), "{made:?}");
        // The record as DNS would have it: what stands between quotation marks.
        let record = fs::read_to_string(path("sel.txt")).unwrap();
        let record: String = record.split('"').skip(1).step_by(2).collect();
        fs::write(path("keys"), format!("sel._domainkey.{DOMAIN} {record}\n")).unwrap();
        let port = free_port();
        let settings = format!(
            "Socket inet:{port}@127.0.0.1\nMode v\nAuthservID mx.test\nTestPublicKeys {}\nSyslog no\n{more}",
            path("keys").display()
        );
        fs::write(path("opendkim.conf"), settings).unwrap();
        let mut command = Command::new("opendkim");
        let child =
            command.arg("-f").arg("-x").arg(path("opendkim.conf")).stdin(Stdio::null()).spawn().unwrap();
        wait_until("OpenDKIM", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(Self { milter: format!("inet:127.0.0.1:{port}"), directory, child })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The message as [`DOMAIN`] signs it.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let mut signer = Command::new("opendkim-testmsg")
            .args(["-d", DOMAIN, "-s", "sel", "-k"])
            .arg(self.path("sel.private"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let wire = String::from_utf8(message.to_vec()).unwrap().replace('\n', "\r\n");
        signer.stdin.take().unwrap().write_all(wire.as_bytes()).unwrap();
        let output = signer.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n").into_bytes()
    }
}

impl Drop for OpenDkim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
