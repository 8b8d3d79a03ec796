// SPDX-License-Identifier: GPL-3.0-or-later
//! A database file that is read while its disk accepts no writes: written pages stay in memory and are lost.
//! redb must write even to open a file that was not closed, and a failed disk leaves such a file.

use parking_lot::Mutex;
use redb::StorageBackend;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const PAGE: usize = 4096;

/// The file, and the pages that were written since it was opened.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: File,
    /// The length of the file itself in bytes.
    file_length: u64,
    over: Mutex<Over>,
}

#[derive(Debug)]
struct Over {
    length: u64,
    pages: HashMap<u64, Box<[u8; PAGE]>>,
}

impl Overlay {
    /// Opens this file, which nobody may write meanwhile.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::new(File::open(path)?)
    }

    /// Puts an overlay on an open file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, file_length: length, over: Mutex::new(Over { length, pages: HashMap::new() }) })
    }

    /// Reads a page of the file; zeros beyond its end.
    fn page(&self, number: u64) -> io::Result<Box<[u8; PAGE]>> {
        let (mut page, start) = (Box::new([0; PAGE]), number * PAGE as u64);
        let there = self.file_length.saturating_sub(start).min(PAGE as u64);
        self.file.read_exact_at(&mut page[..usize::try_from(there).unwrap_or(PAGE)], start)?;
        Ok(page)
    }

    /// Calls `work` for every page that these bytes touch, with the page's number, the offset in the page and the range in the
    /// bytes.
    fn each_piece(
        offset: u64,
        length: usize,
        mut work: impl FnMut(u64, usize, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let start = usize::try_from(at % PAGE as u64).unwrap_or(0);
            let end = length.min(done + PAGE - start);
            work(at / PAGE as u64, start, done..end)?;
            done = end;
        }
        Ok(())
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.over.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let over = self.over.lock();
        if offset.saturating_add(out.len() as u64) > over.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Self::each_piece(offset, out.len(), |number, start, piece| {
            let piece = &mut out[piece];
            match over.pages.get(&number) {
                Some(page) => piece.copy_from_slice(&page[start..start + piece.len()]),
                None => piece.copy_from_slice(&self.page(number)?[start..start + piece.len()]),
            }
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.over.lock().length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut over = self.over.lock();
        Self::each_piece(offset, data.len(), |number, start, piece| {
            let piece = &data[piece];
            let page = match over.pages.entry(number) {
                std::collections::hash_map::Entry::Occupied(page) => page.into_mut(),
                std::collections::hash_map::Entry::Vacant(place) => place.insert(self.page(number)?),
            };
            page[start..start + piece.len()].copy_from_slice(piece);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_pages_are_read_and_the_file_stays() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..250u8).cycle().take(10_000).collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let shadow = Overlay::open(file.path()).unwrap();
        let (mut expected, mut found) = (bytes.clone(), vec![0; 10_000]);
        shadow.read(0, &mut found).unwrap();
        assert_eq!(found, expected);
        assert!(shadow.read(1, &mut found).is_err(), "beyond the end");

        shadow.write(4000, &[7; 5000]).unwrap();
        expected[4000..9000].fill(7);
        shadow.set_len(20_000).unwrap();
        shadow.write(15_000, &[9; 5000]).unwrap();
        expected.resize(15_000, 0);
        expected.resize(20_000, 9);
        found.resize(20_000, 1);
        shadow.read(0, &mut found).unwrap();
        assert!(found == expected);
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
    }
}
