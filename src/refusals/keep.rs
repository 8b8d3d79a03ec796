// SPDX-License-Identifier: GPL-3.0-or-later
//! Stores refusals: a thread writes them, so that no verdict waits for the disk.

use super::entry::Entry;
use super::segments::{list, name, prune};
use super::settings::Settings;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::now;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

/// Entries that may wait for the disk.
const WAITING: usize = 4096;

/// Readable by the daemon and its group, which may also read addresses in the log.
const MODE: u32 = 0o640;

/// Number of files that share the size limit; the oldest is deleted as a whole.
const FILES: u64 = 16;

/// A file covers at most a day, so that the age limit is exact to a day.
const DAY: u64 = 86_400;

/// The store of refusals, if the configuration wants one.
#[derive(Debug, Default)]
pub struct Refusals {
    to: Option<SyncSender<Entry>>,
    lost: Arc<AtomicU64>,
}

impl Refusals {
    /// Opens the store in this state directory with these settings. Deletes older entries of an earlier start.
    #[must_use]
    pub fn open(state_dir: &Path, settings: &Settings) -> Self {
        let most = u64::from(settings.max_size_mb) * 1_000_000;
        if settings.days == 0 {
            remove_all(state_dir);
            return Self::default();
        }
        let (to, from) = sync_channel(WAITING);
        let lost = Arc::default();
        let writer = Writer {
            state_dir: state_dir.to_owned(),
            days: settings.days,
            most,
            file: None,
            lost: Arc::clone(&lost),
        };
        let started = thread::Builder::new().name("refusals".to_owned()).spawn(move || writer.run(&from));
        if let Err(e) = &started {
            log::error!("refusals are not kept: {e}");
        }
        Self { to: started.is_ok().then_some(to), lost }
    }

    /// Whether refusals are stored.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.to.is_some()
    }

    /// Stores a refusal. If too many wait for the disk it is lost, and this is logged.
    pub fn keep(&self, entry: Entry) {
        let Some(to) = &self.to else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = to.try_send(entry) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Deletes all files when the configuration wants none.
fn remove_all(state_dir: &Path) {
    let removed = list(state_dir).and_then(|all| {
        let directory = StateDirectory::open(state_dir)?;
        all.iter().try_for_each(|segment| directory.remove(&segment.name))
    });
    if let Err(e) = removed {
        log::warn!("{}: earlier refusals are not removed: {e}", state_dir.display());
    }
}

/// The current file, its beginning, and its size.
type Open = (File, u64, u64);

struct Writer {
    state_dir: PathBuf,
    days: u32,
    most: u64,
    file: Option<Open>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, from: &Receiver<Entry>) {
        if let Err(e) = prune(&self.state_dir, self.days, self.most, now()) {
            log::warn!("{}: old refusals are not removed: {e}", self.state_dir.display());
        }
        while let Ok(first) = from.recv() {
            let mut lines = Vec::new();
            for entry in std::iter::once(first).chain(from.try_iter().take(WAITING)) {
                // A structure of texts and numbers can always be written as JSON.
                let _ = serde_json::to_writer(&mut lines, &entry);
                lines.push(b'\n');
            }
            if let Err(e) = self.write(&lines) {
                self.file = None;
                log::warn!("{}: refusals are not kept: {e}", self.state_dir.display());
            }
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                log::warn!("{lost} refusals are not kept, since the disk is too slow for them");
            }
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let now = now();
        let per_file = self.most / FILES;
        let is_full = |&(_, begun, size): &Open| size >= per_file || now / DAY != begun / DAY;
        if self.file.as_ref().is_none_or(is_full) {
            prune(&self.state_dir, self.days, self.most.saturating_sub(per_file), now)?;
            self.file = Some(self.begin(now)?);
        }
        if let Some((file, _, size)) = &mut self.file {
            file.write_all(lines)?;
            *size += lines.len() as u64;
        }
        Ok(())
    }

    /// Begins a new file. If this second has a file already, it gets the name of the next second.
    fn begin(&self, now: u64) -> io::Result<Open> {
        let directory = StateDirectory::open(&self.state_dir)?;
        let begun = list(&self.state_dir)?.last().map_or(now, |last| now.max(last.begun + 1));
        Ok((directory.create(&name(begun), MODE)?, begun, 0))
    }
}
