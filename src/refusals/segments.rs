// SPDX-License-Identifier: GPL-3.0-or-later
//! The files, each named by its first second: `refusals-1780000000.jsonl`.

use bulkmark_ledger::directory::StateDirectory;
use std::io;
use std::path::Path;

const DAY: u64 = 86_400;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    /// Its beginning, in seconds since 1970.
    pub(super) begun: u64,
    pub(super) name: String,
    pub(super) size: u64,
}

/// Returns the name of a file that begins then.
pub(super) fn name(begun: u64) -> String {
    format!("refusals-{begun:010}.jsonl")
}

/// Returns all files in this state directory, the oldest first.
pub(super) fn list(state_dir: &Path) -> io::Result<Vec<Segment>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(state_dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let begun = name.strip_prefix("refusals-").and_then(|rest| rest.strip_suffix(".jsonl"));
        let Some(begun) = begun.and_then(|begun| begun.parse().ok()) else { continue };
        // A file that was deleted meanwhile has no size.
        let size = entry.metadata().map_or(0, |metadata| metadata.len());
        all.push(Segment { begun, name, size });
    }
    all.sort();
    Ok(all)
}

/// Deletes the files that ended before the last `days`, and then the oldest until all take at most `most` bytes.
pub(super) fn prune(state_dir: &Path, days: u32, most: u64, now: u64) -> io::Result<()> {
    let directory = StateDirectory::open(state_dir)?;
    let all = list(state_dir)?;
    let mut size: u64 = all.iter().map(|segment| segment.size).sum();
    let oldest = now.saturating_sub(u64::from(days) * DAY);
    for (i, segment) in all.iter().enumerate() {
        // A file ends where the next one begins.
        let is_old = all.get(i + 1).is_some_and(|next| next.begun <= oldest);
        if !is_old && size <= most {
            break;
        }
        directory.remove(&segment.name)?;
        size = size.saturating_sub(segment.size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_bounded_by_age_and_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let begin = |day: u64| std::fs::write(path.join(name(day * DAY)), vec![b'x'; 100]).unwrap();
        (10..20).for_each(begin);
        std::fs::write(path.join("refusals-x.jsonl"), "").unwrap();
        std::fs::write(path.join("ledger.redb"), "").unwrap();
        let days = || list(path).unwrap().iter().map(|segment| segment.begun / DAY).collect::<Vec<_>>();
        prune(path, 5, 1_000, 20 * DAY).unwrap();
        assert_eq!(days(), [15, 16, 17, 18, 19]);
        prune(path, 5, 250, 20 * DAY).unwrap();
        assert_eq!(days(), [18, 19]);
        prune(path, 0, 250, 20 * DAY).unwrap();
        assert_eq!(days(), [19], "the last is written to");
        assert!(path.join("ledger.redb").exists() && path.join("refusals-x.jsonl").exists());
    }
}
