// SPDX-License-Identifier: GPL-3.0-or-later
//! LMDB files, as `postmap lmdb:` makes them, read from memory: the main database of the last transaction, without duplicates.
//!
//! A reader of a white list does not need the other features of LMDB's library (locks, writing, other databases in the file), and the library
//! is in C.

use std::cmp::Ordering;

const MAGIC: u64 = 0xbeef_c0de;
/// The version of the data format; there is no other.
const VERSION: u64 = 1;
/// Bytes before the content of a page.
const PAGE_HEADER: usize = 16;
/// Bytes before the key of a node.
const NODE_HEADER: usize = 8;
/// LMDB's own bound on the depth of its trees (`CURSOR_STACK`).
const MAX_DEPTH: usize = 32;
const BRANCH: u64 = 0x01;
const LEAF: u64 = 0x02;
/// The value is on its own pages.
const BIG: u64 = 0x01;
/// The value is a database, or several values.
const NO_VALUE: u64 = 0x02 | 0x04;
/// No root: an empty database.
const NONE: u64 = u64::MAX;

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lmdb {
    bytes: Vec<u8>,
    page: usize,
    root: u64,
}

impl Lmdb {
    /// Returns `None` if this is no LMDB file. Records in other damaged parts are not found.
    pub(super) fn new(bytes: Vec<u8>) -> Option<Self> {
        let mut lmdb = Self { bytes, page: 0, root: NONE };
        let first = lmdb.meta(0)?;
        lmdb.page = usize::try_from(lmdb.number(40, 4)?).ok().filter(|&size| size >= 256)?;
        let last = lmdb.meta(lmdb.page).filter(|last| last.0 > first.0).unwrap_or(first);
        lmdb.root = last.1;
        Some(lmdb)
    }

    /// The transaction number of the meta page there, and the root of its main database.
    fn meta(&self, at: usize) -> Option<(u64, u64)> {
        let is_meta = self.number(at + 16, 4)? == MAGIC && self.number(at + 20, 4)? == VERSION;
        is_meta.then_some((self.number(at + 144, 8)?, self.number(at + 128, 8)?))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut number = Some(self.root).filter(|&root| root != NONE)?;
        for _ in 0..MAX_DEPTH {
            let page = usize::try_from(number).ok()?.checked_mul(self.page)?;
            let flags = self.number(page.checked_add(10)?, 2)?;
            let nodes = usize::try_from(self.number(page + 12, 2)?).ok()?.checked_sub(PAGE_HEADER)? / 2;
            if flags & LEAF != 0 {
                let node = self.search(page, 0..nodes, key).ok()?;
                return self.value(self.node(page, node)?);
            }
            if flags & BRANCH == 0 || nodes == 0 {
                return None;
            }
            // The first node of a branch has no key: it covers all keys below the second's.
            let child = self.search(page, 1..nodes, key).unwrap_or_else(|after| after - 1);
            let node = self.node(page, child)?;
            number = self.number(node, 4)? | self.number(node + 4, 2)? << 32;
        }
        None
    }

    /// The node of this key, or else the index at which it would be inserted.
    fn search(&self, page: usize, nodes: std::ops::Range<usize>, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (nodes.start, nodes.end.max(nodes.start));
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.node(page, middle).and_then(|node| self.key(node)).map(|found| found.cmp(key)) {
                Some(Ordering::Equal) => return Ok(middle),
                Some(Ordering::Less) => low = middle + 1,
                Some(Ordering::Greater) | None => high = middle,
            }
        }
        Err(low)
    }

    /// The position of a node of a page.
    fn node(&self, page: usize, index: usize) -> Option<usize> {
        let offset = self.number(page.checked_add(PAGE_HEADER + 2 * index)?, 2)?;
        page.checked_add(usize::try_from(offset).ok()?)
    }

    fn key(&self, node: usize) -> Option<&[u8]> {
        let length = usize::try_from(self.number(node + 6, 2)?).ok()?;
        self.bytes.get(node + NODE_HEADER..node + NODE_HEADER + length)
    }

    fn value(&self, node: usize) -> Option<&[u8]> {
        let length = usize::try_from(self.number(node, 4)?).ok()?;
        let flags = self.number(node + 4, 2)?;
        if flags & NO_VALUE != 0 {
            return None;
        }
        let mut at = node + NODE_HEADER + self.key(node)?.len();
        if flags & BIG != 0 {
            at = usize::try_from(self.number(at, 8)?)
                .ok()?
                .checked_mul(self.page)?
                .checked_add(PAGE_HEADER)?;
        }
        self.bytes.get(at..at.checked_add(length)?)
    }

    /// A little-endian number of `bytes` bytes.
    fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one leaf, written by hand after `lmdb.h`; tests/tables.rs has real ones.
    fn file() -> Vec<u8> {
        let mut bytes = vec![0u8; 3 * 4096];
        for (page, transaction) in [(0, 1u8), (4096, 2)] {
            bytes[page + 16..page + 20].copy_from_slice(&[0xde, 0xc0, 0xef, 0xbe]);
            bytes[page + 20] = 1;
            bytes[page + 41] = 16;
            bytes[page + 128] = transaction;
            bytes[page + 144] = transaction;
        }
        let page = 2 * 4096;
        bytes[page + 10] = 2;
        bytes[page + 12] = 20;
        for (index, key, at) in [(0, b"a", 100u8), (1, b"c", 120)] {
            bytes[page + 16 + 2 * index] = at;
            let node = page + usize::from(at);
            bytes[node] = 2;
            bytes[node + 6] = 1;
            bytes[node + 8..node + 11].copy_from_slice(&[key[0], b'o', b'k']);
        }
        bytes
    }

    #[test]
    fn the_last_transaction_is_read() {
        let lmdb = Lmdb::new(file()).unwrap();
        assert_eq!((lmdb.get(b"a"), lmdb.get(b"c")), (Some(&b"ok"[..]), Some(&b"ok"[..])));
        for none in ["", "b", "d", "aa"] {
            assert_eq!(lmdb.get(none.as_bytes()), None, "{none}");
        }
        let mut older = file();
        older[4096 + 144] = 0;
        assert_eq!(Lmdb::new(older).unwrap().get(b"a"), None, "the root of the other one is page 1");
    }

    #[test]
    fn damage_is_no_panic() {
        let good = file();
        for at in (0..200).chain(4096..4300).chain(8192..8340) {
            for damage in [0, 1, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[at] = damage;
                if let Some(lmdb) = Lmdb::new(bad) {
                    let _ = (lmdb.get(b"a"), lmdb.get(b"c"), lmdb.get(b""));
                }
            }
        }
        for end in (0..good.len()).step_by(13) {
            if let Some(lmdb) = Lmdb::new(good[..end].to_vec()) {
                let _ = lmdb.get(b"c");
            }
        }
    }
}
