// SPDX-License-Identifier: GPL-3.0-or-later
//! A directory of labelled mail, and near-replicas of some of it. docs/evaluation.md describes the directory.
//!
//! `benches/evaluate` includes this file, too: the program's package does not depend on the study's.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Replicas of each message and mutation.
const COPIES: usize = 10;

/// The size from which replicas of a message are made.
const LONG: u64 = 1500;

/// Makes the replicas, by `mutate.py` of the directory.
const SCRIPT: &str = include_str!("labelled/replicas.py");

/// Labelled mail cannot be read, or replicas cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LabelledError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A table lacks a column.
    #[error("{}: its first line names no column \"{column}\"", path.display())]
    Column {
        /// The table.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// No text can be rewritten, or no text can stand before it.
    #[error("no spam in plain text has 80 to 400 words, or no ham has a sentence")]
    NoText,
    /// The replicas cannot be made.
    #[error("cannot make replicas by {}: {reason}", path.display())]
    Replicas {
        /// The mutations.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// The messages, by their labels.
#[derive(Debug)]
pub struct Labelled {
    directory: PathBuf,
    /// Ham without similar messages.
    pub ham: Vec<PathBuf>,
    /// Spam in campaigns.
    pub campaigns: Vec<Vec<PathBuf>>,
    /// Spam in no campaign.
    pub alone: Vec<PathBuf>,
}

/// Replicas of some of the spam, by mutation.
#[derive(Debug, Default)]
pub struct Replicas {
    /// The names of the mutations.
    pub names: Vec<String>,
    /// The files of each mutation.
    pub files: Vec<Vec<PathBuf>>,
}

impl Labelled {
    /// Reads the tables of a directory.
    ///
    /// # Errors
    /// When a table cannot be read or lacks a column.
    pub fn read(directory: &Path) -> Result<Self, LabelledError> {
        let rows = |name: &str| Table::read(directory.join(name));
        let mut campaigns: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        let mut others = HashSet::new();
        let table = rows("campaigns.tsv")?;
        for row in &table.rows {
            let file = directory.join(table.field(row, "file")?);
            others.insert(file.clone());
            campaigns.entry(table.field(row, "cluster")?.to_owned()).or_default().push(file);
        }
        let table = rows("ham_groups.tsv")?;
        for row in &table.rows {
            others.insert(directory.join(table.field(row, "file")?));
        }
        for row in rows("related.tsv")?.rows {
            let files = row.values().filter(|value| value.ends_with(".eml"));
            others.extend(files.map(|value| directory.join(value)));
        }
        let (mut ham, mut alone) = (Vec::new(), Vec::new());
        let table = rows("manifest.tsv")?;
        for row in &table.rows {
            let file = directory.join(table.field(row, "file")?);
            match table.field(row, "label")? {
                _ if others.contains(&file) => (),
                "ham" => ham.push(file),
                "spam" => alone.push(file),
                _ => (),
            }
        }
        let campaigns = campaigns.into_values().collect();
        Ok(Self { directory: directory.to_owned(), ham, campaigns, alone })
    }

    /// Makes replicas of so many messages of the spam in no campaign, in files below `work`. None where the directory has no
    /// `mutate.py`.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn replicas(&self, messages: usize, work: &Path) -> Result<Replicas, LabelledError> {
        let path = self.directory.join("mutate.py");
        if messages == 0 || !path.exists() {
            return Ok(Replicas::default());
        }
        let failed = |reason: String| LabelledError::Replicas { path: path.clone(), reason };
        let long = |file: &&PathBuf| file.metadata().is_ok_and(|m| m.len() > LONG);
        let files = self.alone.iter().filter(long).take(messages);
        let files: String = files
            .filter_map(|file| Some(format!("{}\n", file.strip_prefix(&self.directory).ok()?.display())))
            .collect();
        let names = mutations(&self.directory, work, &files).map_err(|e| failed(format!("python3: {e}")))?;
        let names = names.ok_or_else(|| failed("it failed".to_owned()))?;
        let files = names.iter().map(|name| {
            let directory = work.join(name);
            let files = std::fs::read_dir(&directory)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
            let mut files = files.map_err(|error| LabelledError::Read { path: directory, error })?;
            files.sort();
            Ok(files)
        });
        Ok(Replicas { files: files.collect::<Result<_, _>>()?, names })
    }
}

/// The names of the mutations; none when the script failed.
fn mutations(directory: &Path, work: &Path, files: &str) -> std::io::Result<Option<Vec<String>>> {
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .args([directory, work])
        .arg(COPIES.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = python.stdin.take() {
        // The exit code shows whether the script ended early.
        let _ = input.write_all(files.as_bytes());
    }
    let output = python.stdout.take().map(BufReader::new);
    let names = output.into_iter().flat_map(|output| output.lines().map_while(Result::ok)).collect();
    Ok(python.wait()?.success().then_some(names))
}

/// A table with tabs between its columns and their names in the first line.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    /// The values of each line below the first, by column.
    pub rows: Vec<HashMap<String, String>>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(path: PathBuf) -> Result<Self, LabelledError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return Err(LabelledError::Read { path, error }),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let names: Vec<String> = lines.next().unwrap_or("").split('\t').map(str::to_owned).collect();
        let row = |line: &str| names.iter().cloned().zip(line.split('\t').map(str::to_owned)).collect();
        let rows = lines.map(row).collect();
        Ok(Self { path, rows })
    }

    /// Returns the value in a column of a row.
    ///
    /// # Errors
    /// When the table has no such column.
    pub fn field<'a>(
        &self,
        row: &'a HashMap<String, String>,
        column: &'static str,
    ) -> Result<&'a str, LabelledError> {
        let field = row.get(column).map(String::as_str);
        field.ok_or_else(|| LabelledError::Column { path: self.path.clone(), column })
    }
}
