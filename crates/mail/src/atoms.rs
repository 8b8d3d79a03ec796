// SPDX-License-Identifier: GPL-3.0-or-later
//! A cache of tag and attribute names: a page has few different ones.

use html5ever::LocalName;

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
