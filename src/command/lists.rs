// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads white lists and their tables again when their files change.

use crate::config::read_bounded;
use crate::judging::Service;
use bulkmark_policy::{Traps, WhiteList};
use bulkmark_verdict::Rules;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The time between two checks of the files.
const PAUSE: Duration = Duration::from_secs(2);

/// The identity of a file's content: its times, size and inode. None if there is no file.
type Stamp = Vec<(PathBuf, Option<(SystemTime, u64, u64)>)>;

/// Checks all lists while the milter runs. Never returns.
pub(super) async fn look_after(service: Arc<Service>) {
    let mut seen = Seen::default();
    loop {
        tokio::time::sleep(PAUSE).await;
        let rules = service.rules.load_full();
        let checked = tokio::task::spawn_blocking(move || {
            seen.check(&rules);
            seen
        });
        // A panic was logged; all files are checked again.
        seen = checked.await.unwrap_or_default();
    }
}

/// The files at the time when they were read.
#[derive(Default)]
struct Seen {
    /// The address of the rules: other rules have other lists.
    rules: usize,
    read: Vec<Stamp>,
    /// The files at the last check. A file is read only if it did not change between two checks, since it may still be written.
    found: Vec<Stamp>,
}

impl Seen {
    fn check(&mut self, rules: &Arc<Rules>) {
        let lists: Vec<List<'_>> =
            rules.lists().map(List::White).chain([List::Traps(&rules.traps)]).collect();
        let stamps: Vec<Stamp> = lists.iter().map(|list| stamp(list.files())).collect();
        let is_new = std::mem::replace(&mut self.rules, Arc::as_ptr(rules) as usize) != self.rules;
        let is_still = std::mem::replace(&mut self.found, stamps.clone()) == stamps;
        if is_new || is_still && self.read != stamps {
            for (n, list) in lists.iter().enumerate() {
                // New rules have read their files, but a file may have changed between then and the first check.
                let has_changed =
                    if is_new { is_fresh(&stamps[n]) } else { self.read.get(n) != stamps.get(n) };
                if has_changed {
                    list.reload();
                }
            }
            self.read = stamps;
        }
    }
}

/// Whether a file was changed so recently that the change may have come after it was read.
fn is_fresh(stamp: &Stamp) -> bool {
    let changed = stamp.iter().filter_map(|(_, found)| found.as_ref());
    changed.map(|(modified, ..)| modified.elapsed().unwrap_or_default()).any(|age| age <= 10 * PAUSE)
}

/// A list with files.
enum List<'a> {
    White(&'a WhiteList),
    Traps(&'a Traps),
}

impl List<'_> {
    fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::White(list) => list.files(),
            Self::Traps(traps) => traps.files(),
        }
    }

    fn reload(&self) {
        let (kind, result) = match self {
            Self::White(list) => ("white list", list.reload(&read_bounded)),
            Self::Traps(traps) => ("list of traps", traps.reload(&read_bounded)),
        };
        match result {
            Ok(()) => log::info!("a {kind} was read again, since its files have changed"),
            Err(e) => log::error!("{e}; the old entries of this {kind} stay in force"),
        }
    }
}

fn stamp(files: Vec<PathBuf>) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let read = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len(), found.ino()))
    };
    let with_stamp = |path: PathBuf| {
        let stamp = read(&path);
        (path, stamp)
    };
    files.into_iter().map(with_stamp).collect()
}
