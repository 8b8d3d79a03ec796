// SPDX-License-Identifier: GPL-3.0-or-later
//! Tag and attribute names: a cache, since a page has few different ones, and their hashes.

use html5ever::LocalName;
use std::hash::Hasher;

/// Cached names, each in the slot of its hash.
const KEPT: usize = 64;

/// Bytes of the longest cached name.
const LONGEST: usize = 32;

/// The names of a page.
pub(super) struct Atoms {
    kept: [Option<LocalName>; KEPT],
}

impl Default for Atoms {
    fn default() -> Self {
        Self { kept: [const { None }; KEPT] }
    }
}

impl Atoms {
    /// The name in small letters; `None` if it is long or empty.
    pub(super) fn get(&mut self, name: &[u8]) -> Option<LocalName> {
        let mut buffer = [0; LONGEST];
        let small = buffer.get_mut(..name.len()).filter(|small| !small.is_empty())?;
        let mut place = 0usize;
        for (small, b) in small.iter_mut().zip(name) {
            *small = b.to_ascii_lowercase();
            place = place.wrapping_mul(31).wrapping_add(usize::from(*small));
        }
        let kept = &mut self.kept[place % KEPT];
        if kept.as_ref().is_none_or(|kept| kept.as_bytes() != small) {
            *kept = Some(LocalName::from(str::from_utf8(small).ok()?));
        }
        kept.clone()
    }
}

/// Uses the hash that each name has. Names constructed with equal hashes cost at most as many collisions as names are kept.
#[derive(Default)]
pub(super) struct ByOwnHash(u64);

impl Hasher for ByOwnHash {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = (self.0.rotate_left(32) ^ hash).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
