// SPDX-License-Identifier: GPL-3.0-or-later
//! Makes DKIM signatures of every kind, valid and invalid (RFC 6376), with openssl(1).

use super::skip;
use bulkmark_samples::encode::base64_lines;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A private key.
pub struct Signer {
    directory: tempfile::TempDir,
    /// Its DNS record.
    pub record: String,
}

/// The content of a signature.
#[derive(Clone)]
pub struct Form<'a> {
    /// The signing domain.
    pub domain: &'a str,
    /// The selector of its key.
    pub selector: &'a str,
    /// The hash, by openssl's name.
    pub hash: &'a str,
    /// The covered fields.
    pub fields: &'a str,
    /// The number of covered bytes of the body (`l=`), if any.
    pub length: Option<usize>,
    /// Other tags.
    pub more: &'a str,
}

impl Default for Form<'_> {
    fn default() -> Self {
        let (domain, fields) = ("shop.example", "From:To:Subject:Date:Message-ID");
        Self { domain, selector: "sel", hash: "sha256", fields, length: None, more: "" }
    }
}

impl Signer {
    /// Makes a key of so many bits. If there is no openssl(1), it says so and returns None.
    pub fn new(bits: u32) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let mut make = Command::new("openssl");
        make.arg("genrsa").arg("-out").arg(file).arg(bits.to_string()).stderr(Stdio::null());
        let Ok(made) = make.status() else {
            skip("openssl is missing; run tests/mta/install as root");
            return None;
        };
        assert!(made.success());
        let mut signer = Self { directory, record: String::new() };
        let public = signer.openssl(&["rsa", "-pubout", "-outform", "DER", "-in"], b"");
        signer.record = format!("v=DKIM1; k=rsa; p={}", base64(&public));
        Some(signer)
    }

    /// The file of the private key.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("key")
    }

    /// Returns the program's output, with the key as its last argument.
    fn openssl(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(arguments)
            .arg(self.file())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "openssl {arguments:?}");
        output.stdout
    }

    /// Signs the message: header relaxed and body simple.
    pub fn sign(&self, message: &[u8], form: &Form<'_>) -> Vec<u8> {
        let Form { domain, selector, hash, fields, length, more } = form;
        let text = std::str::from_utf8(message).unwrap();
        let (header, body) = text.split_once("\n\n").unwrap();
        let body = body.trim_end_matches('\n').replace('\n', "\r\n") + "\r\n";
        let of_body = from_hex(&self.openssl_digest(hash, &body.as_bytes()[..length.unwrap_or(body.len())]));
        let length = length.map(|length| format!("l={length}; ")).unwrap_or_default();
        let unsigned = format!(
            "v=1; a=rsa-{hash}; c=relaxed/simple; d={domain}; s={selector}; {length}{more}h={fields}; bh={}; b=",
            base64(&of_body)
        );
        let relaxed = |name: &str, value: &str| {
            let words: Vec<_> = value.split_whitespace().collect();
            format!("{}:{}", name.to_lowercase(), words.join(" "))
        };
        let field = |name: &str| {
            let mut lines = header.lines().rev();
            lines.find_map(|line| line.split_once(": ").filter(|(found, _)| found.eq_ignore_ascii_case(name)))
        };
        let mut signed: String =
            fields.split(':').filter_map(field).map(|(name, value)| relaxed(name, value) + "\r\n").collect();
        signed += &relaxed("DKIM-Signature", &unsigned);
        let signature = self.openssl(&["dgst", &format!("-{hash}"), "-sign"], signed.as_bytes());
        format!("DKIM-Signature: {unsigned}{}\n{text}", base64(&signature)).into_bytes()
    }

    fn openssl_digest(&self, hash: &str, input: &[u8]) -> String {
        let mut child = Command::new("openssl")
            .args(["dgst", &format!("-{hash}"), "-r"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        output.split(' ').next().unwrap().to_owned()
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// In base64, on one line.
fn base64(bytes: &[u8]) -> String {
    base64_lines(bytes, usize::MAX).trim_end().to_owned()
}
