// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts by Pyzor's digest, where `PYZOR` names a Python that has Pyzor.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// For each of these messages, the number of messages with the same digest so far; 0 without a digest.
pub(crate) fn counts(files: &[PathBuf]) -> Option<Vec<u32>> {
    let python = std::env::var_os("PYZOR").filter(|python| !python.is_empty())?;
    let mut seen: HashMap<String, u32> = HashMap::new();
    let count = |digest: String| {
        if digest.is_empty() {
            return 0;
        }
        let count = seen.entry(digest).or_default();
        *count += 1;
        *count
    };
    Some(digests(Path::new(&python), files).into_iter().map(count).collect())
}

fn digests(python: &Path, files: &[PathBuf]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/evaluate/pyzor_digests.py");
    let mut python =
        Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = python.stdin.take().unwrap();
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let writer = std::thread::spawn(move || {
        for name in names {
            writeln!(input, "{name}").unwrap();
        }
    });
    let lines = BufReader::new(python.stdout.take().unwrap()).lines().map_while(Result::ok);
    let digests: Vec<String> = lines.collect();
    writer.join().unwrap();
    assert!(python.wait().unwrap().success() && digests.len() == files.len(), "pyzor_digests.py failed");
    digests
}
