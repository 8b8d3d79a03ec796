// SPDX-License-Identifier: GPL-3.0-or-later
//! A real OpenDKIM, which signs messages and verifies them as a milter, with public keys from a file.

use super::mta::free_port;
use super::signer::Signer;
use super::{skip, wait_for_some};
use bulkmark_samples::encode::{base64_lines, from_base64};
use ring::signature::RsaKeyPair;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// The domain that signs.
pub const DOMAIN: &str = "shop.example";

/// OpenDKIM with a key of [`DOMAIN`]; stopped when dropped.
pub struct OpenDkim {
    /// The address, as in `smtpd_milters`.
    pub milter: String,
    /// The DNS record of its key.
    pub record: String,
    key: RsaKeyPair,
    /// Its files.
    _directory: tempfile::TempDir,
    child: Child,
}

impl OpenDkim {
    /// Starts a verifier under the name mx.test, with more lines of configuration. If OpenDKIM is missing, it says so and returns
    /// None.
    pub fn start(more: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let made = Command::new("opendkim-genkey")
            .args(["--bits=2048", "--selector=sel", "--domain", DOMAIN, "--directory"])
            .arg(directory.path())
            .stderr(Stdio::piped())
            .output();
        let Ok(made) = made else {
            skip("opendkim-genkey is missing; run tests/mta/install as root");
            return None;
        };
        assert!(made.status.success(), "{made:?}");
        // The record as DNS would have it: the text between quotation marks.
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
        wait_for_some("OpenDKIM", || TcpStream::connect(("127.0.0.1", port)).ok());
        let key = key(&fs::read_to_string(path("sel.private")).unwrap());
        Some(Self { milter: format!("inet:127.0.0.1:{port}"), key, record, _directory: directory, child })
    }

    /// The message with a signature of [`DOMAIN`]: RFC 6376, all fields, header relaxed and body simple.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(message).unwrap();
        let (header, body) = text.split_once("\n\n").unwrap();
        let body = body.trim_end_matches('\n').replace('\n', "\r\n") + "\r\n";
        let fields: Vec<_> = header.lines().map(|line| line.split_once(": ").unwrap()).collect();
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        let hash = base64(ring::digest::digest(&ring::digest::SHA256, body.as_bytes()).as_ref());
        let unsigned = format!(
            "v=1; a=rsa-sha256; c=relaxed/simple; d={DOMAIN}; s=sel; h={}; bh={hash}; b=",
            names.join(":")
        );
        let relaxed = |name: &str, value: &str| {
            let words: Vec<_> = value.split_whitespace().collect();
            format!("{}:{}", name.to_lowercase(), words.join(" "))
        };
        let mut signed: String = fields.iter().map(|(name, value)| relaxed(name, value) + "\r\n").collect();
        signed += &relaxed("DKIM-Signature", &unsigned);
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        self.key
            .sign(&ring::signature::RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
            .unwrap();
        format!("DKIM-Signature: {unsigned}{}\n{text}", base64(&signature)).into_bytes()
    }
}

/// In base64, on one line.
fn base64(bytes: &[u8]) -> String {
    base64_lines(bytes, usize::MAX).trim_end().to_owned()
}

/// The key in a PEM file.
fn key(pem: &str) -> RsaKeyPair {
    let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = from_base64(&lines);
    RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der)).unwrap()
}

/// An OpenDKIM that signs mail from 192.0.2.7; stopped when dropped.
pub struct Signing {
    /// The address, as in `smtpd_milters`.
    pub milter: String,
    /// Its files.
    _directory: tempfile::TempDir,
    child: Child,
}

impl Signing {
    /// Starts it with this key and `Canonicalization`.
    pub fn start(key: &Signer, form: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let settings = directory.path().join("opendkim.conf");
        let text = format!(
            "Socket inet:{port}@127.0.0.1\nMode s\nDomain {DOMAIN}\nSelector sel\nKeyFile {}\nInternalHosts 192.0.2.7\n\
             Canonicalization {form}\nSyslog no\nRequireSafeKeys no\n",
            key.file().display()
        );
        fs::write(&settings, text).unwrap();
        let Ok(child) =
            Command::new("opendkim").arg("-f").arg("-x").arg(settings).stdin(Stdio::null()).spawn()
        else {
            skip("opendkim is missing; run tests/mta/install as root");
            return None;
        };
        wait_for_some("OpenDKIM", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(Self { milter: format!("inet:127.0.0.1:{port}"), _directory: directory, child })
    }
}

impl Drop for Signing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for OpenDkim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
