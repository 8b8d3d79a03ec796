// SPDX-License-Identifier: GPL-3.0-or-later
//! A directory of labelled mail, and near-replicas of some of it. docs/evaluation.md describes the directory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Replicas of each message and mutation.
pub const COPIES: usize = 10;

/// Bytes of a message that is made replicas of.
const LONG: u64 = 1500;

/// The messages, by what they are.
pub struct Corpus {
    directory: PathBuf,
    /// Ham that nothing else is like.
    pub ham: Vec<PathBuf>,
    pub campaigns: Vec<Vec<PathBuf>>,
    /// Spam in no campaign.
    pub alone: Vec<PathBuf>,
}

impl Corpus {
    pub fn read(directory: &Path) -> Self {
        let rows = |name: &str| table(&directory.join(name));
        let path = |row: &HashMap<String, String>| directory.join(&row["file"]);
        let mut campaigns: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for row in rows("campaigns.tsv") {
            campaigns.entry(row["cluster"].clone()).or_default().push(path(&row));
        }
        let mut others: HashSet<PathBuf> = rows("ham_groups.tsv").iter().map(path).collect();
        others.extend(campaigns.values().flatten().cloned());
        for row in rows("related.tsv") {
            others.extend(
                row.values().filter(|value| value.ends_with(".eml")).map(|value| directory.join(value)),
            );
        }
        let manifest = rows("manifest.tsv");
        let lone = |label: &str| {
            let rows = manifest.iter().filter(|row| row["label"] == label).map(path);
            rows.filter(|file| !others.contains(file)).collect::<Vec<_>>()
        };
        Self {
            ham: lone("ham"),
            alone: lone("spam"),
            campaigns: campaigns.into_values().collect(),
            directory: directory.to_owned(),
        }
    }

    /// The names of the mutations, and for each the replicas of some of the spam.
    pub fn replicas(&self, messages: usize, work: &Path) -> (Vec<String>, Vec<Vec<PathBuf>>) {
        if messages == 0 || !self.directory.join("mutate.py").exists() {
            return (Vec::new(), Vec::new());
        }
        let long =
            self.alone.iter().filter(|file| file.metadata().is_ok_and(|m| m.len() > LONG)).take(messages);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/evaluate/replicas.py");
        let mut python = Command::new("python3")
            .arg(script)
            .args([&self.directory, work])
            .arg(COPIES.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = python.stdin.take().unwrap();
        for file in long {
            writeln!(input, "{}", file.strip_prefix(&self.directory).unwrap().display()).unwrap();
        }
        drop(input);
        let names: Vec<String> =
            BufReader::new(python.stdout.take().unwrap()).lines().map_while(Result::ok).collect();
        assert!(python.wait().unwrap().success(), "replicas.py failed");
        let of = |name: &String| {
            let files = std::fs::read_dir(work.join(name)).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<PathBuf> = files.collect();
            files.sort();
            files
        };
        let replicas = names.iter().map(of).collect();
        (names, replicas)
    }
}

/// The rows of a table with tabs between its columns, whose first line names them.
fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let names: Vec<String> = lines.next().unwrap_or("").split('\t').map(str::to_owned).collect();
    lines.map(|line| names.iter().cloned().zip(line.split('\t').map(str::to_owned)).collect()).collect()
}
