// SPDX-License-Identifier: GPL-3.0-or-later
//! What all sections need: the mail, the program, the keys; and many streams at once, each to a ledger of its own.

use crate::counts::Counts;
use crate::milter::{self, Key};
use crate::stream::Message;
use bulkmark_testing::program;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// How this run was called.
#[derive(Debug)]
pub(crate) struct Bench {
    /// The directory of the mail.
    pub(crate) corpus: PathBuf,
    /// The first one is the public key.
    pub(crate) keys: Vec<Key>,
    /// How many seeds of generated mail there are.
    pub(crate) seeds: usize,
    /// How many messages are disguised and mutated.
    pub(crate) bases: usize,
    /// Where generated mail is written for people to look at.
    pub(crate) examples: Option<PathBuf>,
    binary: PathBuf,
    work: TempDir,
}

/// One stream for a milter that has seen nothing.
#[derive(Debug, Clone)]
pub(crate) struct Job<'a> {
    pub(crate) key: &'a Key,
    /// In a row.
    pub(crate) parts: Vec<&'a [Message]>,
}

impl Bench {
    /// None without `CORPUS`.
    pub(crate) fn from_environment() -> Option<Self> {
        let corpus = std::env::var_os("CORPUS")?.into();
        let work = tempfile::Builder::new().prefix("bulkmark-evaluate-").tempdir().unwrap();
        let key = |n: usize| {
            let path = work.path().join(format!("key-{n}"));
            std::fs::write(&path, format!("key number {n} of the evaluation")).unwrap();
            path
        };
        let keys = (0..variable("KEYS", 3)).map(|n| (n > 0).then(|| key(n))).collect();
        let binary = PathBuf::from(program());
        let examples = std::env::var_os("EXAMPLES").filter(|path| !path.is_empty()).map(PathBuf::from);
        let (seeds, bases) = (variable("SEEDS", 3), variable("MUTATE", 12));
        Some(Self { corpus, keys, seeds, bases, examples, binary, work })
    }

    /// What is measured.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(&self.binary).arg("--version").output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A directory of a section's own.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// The counts of all streams, as many at a time as there are processors.
    pub(crate) fn counts(&self, jobs: &[Job<'_>]) -> Vec<Vec<Counts>> {
        let results: Vec<_> = jobs.iter().map(|_| Mutex::new(Vec::new())).collect();
        let next = AtomicUsize::new(0);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            while let Some((job, result)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((jobs.get(n)?, results.get(n)?)))
            {
                let messages = job.parts.iter().flat_map(|part| part.iter());
                *result.lock().unwrap() = milter::count(&self.binary, job.key, messages);
            }
        };
        std::thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(work))));
        results.into_iter().map(|result| result.into_inner().unwrap()).collect()
    }

    /// The counts on which the verdicts stand; and the same where what is only marked counts as below the threshold.
    pub(crate) fn highest(&self, jobs: &[Job<'_>]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let counts = self.counts(jobs);
        let of = |way: fn(Counts) -> u32| {
            counts.iter().map(|counts| counts.iter().copied().map(way).collect()).collect()
        };
        (of(Counts::highest), of(Counts::refused))
    }

    /// One stream under each key.
    pub(crate) fn under_each_key<'a>(&'a self, messages: &'a [Message]) -> Vec<Job<'a>> {
        self.keys.iter().map(|key| Job { key, parts: vec![messages] }).collect()
    }

    /// The file or directory of the mail, or that there is none.
    pub(crate) fn existing(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.corpus.join(name);
        if path.exists() { Ok(path) } else { Err(format!("there is no {name} in {}", self.corpus.display())) }
    }
}

fn variable(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
