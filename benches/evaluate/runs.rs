// SPDX-License-Identifier: GPL-3.0-or-later
//! Shared parts of all sections: the mail, the program, the keys; and many streams at once, each to its own ledger.

use crate::counts::Counts;
use crate::milter::{self, Key};
use crate::stream::Message;
use bulkmark_testing::program;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// The arguments of this run.
#[derive(Debug)]
pub(crate) struct Bench {
    /// The directory of the mail.
    pub(crate) corpus: PathBuf,
    /// The first one is the public key.
    pub(crate) keys: Vec<Key>,
    /// The number of seeds of generated mail.
    pub(crate) seeds: usize,
    /// The number of messages to disguise and mutate.
    pub(crate) bases: usize,
    /// The directory for generated mail, for people to read.
    pub(crate) examples: Option<PathBuf>,
    binary: PathBuf,
    work: TempDir,
}

/// One stream for a milter with an empty ledger.
#[derive(Debug, Clone)]
pub(crate) struct Job<'a> {
    pub(crate) key: &'a Key,
    /// The messages, in order.
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

    /// The measured values.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(&self.binary).arg("--version").output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A section's own directory.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// The counts of all streams; as many run at a time as there are processors.
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

    /// The counts that decide the verdicts; and the same where messages that are only marked count as below the threshold.
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

    /// The file or directory of the mail, or an error that there is none.
    pub(crate) fn existing(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.corpus.join(name);
        if path.exists() { Ok(path) } else { Err(format!("there is no {name} in {}", self.corpus.display())) }
    }
}

fn variable(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
