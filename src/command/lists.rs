// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads white lists and their tables again when their files change.

use crate::config::read_bounded;
use crate::judging::Service;
use bulkmark_policy::{Traps, WhiteList};
use bulkmark_verdict::Rules;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_secs(2);

/// By what a changed file is known: its times and size, and which one it is. None when there is none.
type Stamp = Vec<(PathBuf, Option<(SystemTime, u64, u64)>)>;

/// Looks after all lists, for as long as the milter runs.
pub(super) async fn look_after(service: Arc<Service>) {
    let mut seen = Seen::default();
    loop {
        tokio::time::sleep(PAUSE).await;
        let rules = service.rules.load_full();
        let looked = tokio::task::spawn_blocking(move || {
            seen.look(&rules);
            seen
        });
        // A panic has told of itself; all is looked at anew.
        seen = looked.await.unwrap_or_default();
    }
}

/// The files as they were when they were read.
#[derive(Default)]
struct Seen {
    /// Whose they are: other rules have other lists.
    rules: usize,
    read: Vec<Stamp>,
    /// As they were found last. Whoever still writes has them changed again until the next look.
    found: Vec<Stamp>,
}

impl Seen {
    fn look(&mut self, rules: &Arc<Rules>) {
        let lists: Vec<List<'_>> =
            rules.lists().map(List::White).chain([List::Traps(&rules.traps)]).collect();
        let stamps: Vec<Stamp> = lists.iter().map(|list| stamp(list.files())).collect();
        let is_new = std::mem::replace(&mut self.rules, Arc::as_ptr(rules) as usize) != self.rules;
        let is_still = std::mem::replace(&mut self.found, stamps.clone()) == stamps;
        if is_new || is_still && self.read != stamps {
            for (n, list) in lists.iter().enumerate() {
                // New rules have read theirs, but a file may have changed since, before it was looked at.
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

/// Whether a file was changed so lately that the change may have come after it was read.
fn is_fresh(stamp: &Stamp) -> bool {
    let changed = stamp.iter().filter_map(|(_, found)| found.as_ref());
    changed.map(|(modified, ..)| modified.elapsed().unwrap_or_default()).any(|age| age <= 10 * PAUSE)
}

/// What has files.
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
        let (what, result) = match self {
            Self::White(list) => ("white list", list.reload(&read_bounded)),
            Self::Traps(traps) => ("list of traps", traps.reload(&read_bounded)),
        };
        match result {
            Ok(()) => log::info!("a {what} was read again, since its files have changed"),
            Err(e) => log::error!("{e}; the old entries of this {what} stay in force"),
        }
    }
}

fn stamp(files: Vec<PathBuf>) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let of = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len(), found.ino()))
    };
    let with_stamp = |path: PathBuf| {
        let stamp = of(&path);
        (path, stamp)
    };
    files.into_iter().map(with_stamp).collect()
}
