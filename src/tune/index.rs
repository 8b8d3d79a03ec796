// SPDX-License-Identifier: GPL-3.0-or-later
//! The messages of an archive, in the order of their arrival.

use super::archive::{Archive, Faults};
use bulkmark_ledger::directory::open_regular;
use bulkmark_mail::mbox::{self, SEPARATOR, Shape, delivered};
use bulkmark_mail::{MAX_BODY, Stored};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::UNIX_EPOCH;

/// Bytes of a file that are read at a time.
const BUFFER: usize = 256 << 10;

/// The bytes of a message that are read: the body that the milter reads, and header fields that it would not keep.
const MAX_MESSAGE: usize = MAX_BODY + (4 << 20);

/// Signatures that a message reports at most: its `body` signature and eight `near` ones, and as many strays of these.
const SIGNATURES: u64 = 16;

/// The place of a message, and the time of its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// Seconds since 1970.
    pub(super) time: u64,
    pub(super) file: u32,
    /// Saturated, since a longer message is not read.
    length: u32,
    at: u64,
}

/// All messages of an archive in order of their times.
pub struct Index<'a> {
    archive: &'a Archive,
    pub(super) entries: Vec<Entry>,
    pub(super) faults: Faults,
    /// The number of files that are no mail.
    pub(super) no_mail: u64,
}

/// The messages found by one thread.
#[derive(Default)]
struct Part {
    entries: Vec<Entry>,
    faults: Faults,
    no_mail: u64,
}

impl<'a> Index<'a> {
    /// Finds the messages in all files, on all cores. The time of a message is that of its first Received field, or else of its Date, or else of
    /// its file; never later than `now`. `progress` is called with numbers of bytes read.
    #[must_use]
    pub fn make(archive: &'a Archive, now: u64, progress: &(dyn Fn(u64) + Sync)) -> Self {
        let next = AtomicUsize::new(0);
        let parts = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..threads() {
                scope.spawn(|| {
                    let mut part = Part::default();
                    while let Some(file) = u32::try_from(next.fetch_add(1, Ordering::Relaxed))
                        .ok()
                        .filter(|&file| (file as usize) < archive.files.len())
                    {
                        part.file(archive, file, now, progress);
                    }
                    parts.lock().push(part);
                });
            }
        });
        let mut index = Self { archive, entries: Vec::new(), faults: archive.faults.clone(), no_mail: 0 };
        for part in parts.into_inner() {
            index.entries.extend(part.entries);
            index.no_mail += part.no_mail;
            index.faults.join(part.faults);
        }
        index.entries.sort_unstable_by_key(|entry| (entry.time, entry.file, entry.at));
        index
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the archive.
    pub(super) const fn archive(&self) -> &Archive {
        self.archive
    }

    /// Returns the average number of signatures in a window of so many seconds: the capacity that a filter needs. Archives of years have
    /// thousands of windows with a few messages, for each of which the milter's filter would be much too large.
    #[must_use]
    pub fn signatures_by_window(&self, window: u64) -> u64 {
        let windows = self.entries.chunk_by(|a, b| a.time / window.max(1) == b.time / window.max(1)).count();
        (self.entries.len() as u64 * SIGNATURES).div_ceil((windows as u64).max(1))
    }
}

impl Part {
    fn file(&mut self, archive: &Archive, number: u32, now: u64, progress: &dyn Fn(u64)) {
        let path = archive.path(number);
        let file = &archive.files[number as usize];
        let mut reported = 0;
        match self.messages(&path, number, now, &mut |bytes| {
            reported += bytes;
            progress(bytes);
        }) {
            Ok(Shape::Mbox | Shape::Message) => (),
            Ok(Shape::Compressed) => self.faults.add(&path, &"it is compressed; unpack it first"),
            Ok(Shape::Other) if file.is_named => {
                self.faults.add(&path, &"it begins neither with a header field nor with \"From \"");
            }
            Ok(Shape::Other) => self.no_mail += 1,
            Err(e) => self.faults.add(&path, &e),
        }
        progress(file.size.saturating_sub(reported));
    }

    fn messages(
        &mut self,
        path: &Path,
        file: u32,
        now: u64,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<Shape> {
        let open = open_regular(path)?;
        let metadata = open.metadata()?;
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut reader = BufReader::with_capacity(BUFFER, Progress { inner: open, progress });
        let entries = &mut self.entries;
        mbox::scan(&mut reader, metadata.len(), &mut |message| {
            // Spam often has a date in the future.
            let date =
                catch_unwind(|| Stored::of(message.head).time).ok().flatten().filter(|&time| time <= now);
            entries.push(Entry {
                time: date.unwrap_or(changed),
                file,
                length: u32::try_from(message.length).unwrap_or(u32::MAX),
                at: message.at,
            });
        })
    }
}

/// A reader that calls `progress` with the number of bytes of each read.
struct Progress<'a, R> {
    inner: R,
    progress: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for Progress<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}

pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Reads messages, one after the other; keeps the file of the last one open.
pub(super) struct Source<'a> {
    archive: &'a Archive,
    open: Option<(u32, File)>,
    bytes: Vec<u8>,
}

impl<'a> Source<'a> {
    pub(super) const fn new(archive: &'a Archive) -> Self {
        Self { archive, open: None, bytes: Vec::new() }
    }

    /// Returns the message as it was delivered, as much of it as the milter reads.
    pub(super) fn read(&mut self, entry: &Entry) -> io::Result<Cow<'_, [u8]>> {
        let length = MAX_MESSAGE.min(entry.length as usize);
        let file = match self.open.take() {
            Some((number, file)) if number == entry.file => file,
            _ => open_regular(&self.archive.path(entry.file))?,
        };
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.bytes.resize(length, 0);
        file.read_exact_at(&mut self.bytes, entry.at)?;
        self.open = Some((entry.file, file));
        if entry.at > 0 && !self.bytes.starts_with(SEPARATOR) {
            return Err(io::Error::other("it changed while it was read"));
        }
        Ok(delivered(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::Label;
    use rustix::fs::{CWD, Mode, mkfifoat};

    /// The owner of an archive can replace its files while root reads them; a pipe without a writer would block for ever.
    #[test]
    fn a_pipe_in_the_place_of_a_file_hangs_nobody() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("letter.eml");
        let swap = || {
            std::fs::remove_file(&path).unwrap();
            mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        };
        std::fs::write(&path, "Subject: a\n\nb\n").unwrap();
        let archive = Archive::find(&[(place.path().to_owned(), Label::None)]);
        let index = Index::make(&archive, 0, &|_| ());
        assert_eq!((index.len(), index.faults.number()), (1, 0));
        swap();
        let refused = Source::new(&archive).read(&index.entries[0]).unwrap_err();
        assert!(refused.to_string().contains("no regular file"), "{refused}");
        let again = Index::make(&archive, 0, &|_| ());
        assert_eq!((again.len(), again.faults.number()), (0, 1));
    }
}
