// SPDX-License-Identifier: GPL-3.0-or-later
//! Constant databases, as `postmap cdb:` makes them (D. J. Bernstein's format), read from memory.

/// The length of the header: 256 pairs of position and length.
const HEADER: usize = 256 * 8;

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cdb(Vec<u8>);

impl Cdb {
    /// Returns `None` if this is too short. Records in other damaged parts are not found.
    pub(super) fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= HEADER).then_some(Self(bytes))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let hash = key.iter().fold(5381u32, |hash, &byte| hash.wrapping_mul(33) ^ u32::from(byte));
        let header = (hash & 255) as usize * 8;
        let (table, slots) = (self.number(header)?, self.number(header + 4)?);
        // Bounded by the size of the file, whatever the header has.
        let slots = slots.min(self.0.len() / 8);
        let first = (hash >> 8) as usize;
        for i in 0..slots {
            let slot = table.checked_add((first % slots + i) % slots * 8)?;
            let record = self.number(slot + 4)?;
            if record == 0 {
                return None;
            }
            if self.number(slot)? == hash as usize
                && let Some(value) = self.record(record, key)
            {
                return Some(value);
            }
        }
        None
    }

    /// The value of the record there, if it has this key.
    fn record(&self, at: usize, key: &[u8]) -> Option<&[u8]> {
        let (key_length, value_length) = (self.number(at)?, self.number(at.checked_add(4)?)?);
        let (key_at, value_at) = (at.checked_add(8)?, at.checked_add(8)?.checked_add(key_length)?);
        if self.0.get(key_at..value_at)? != key {
            return None;
        }
        self.0.get(value_at..value_at.checked_add(value_length)?)
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look-up in a damaged file finds nothing or existing bytes, and never panics.
    #[test]
    fn damage_is_no_panic() {
        assert!(Cdb::new(vec![0; HEADER - 1]).is_none());
        let mut seed = 1u32;
        for length in [HEADER, HEADER + 7, HEADER + 200] {
            for _ in 0..200 {
                let next = || {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // Include small numbers, which are valid positions.
                    if seed >> 30 == 0 { seed.to_le_bytes()[1] } else { seed.to_le_bytes()[2] & 15 }
                };
                let cdb = Cdb::new(std::iter::repeat_with(next).take(length).collect()).unwrap();
                for key in ["", "a", "example.org", "a@example.org"] {
                    let _ = cdb.get(key.as_bytes());
                }
            }
        }
        assert_eq!(Cdb::new(vec![0xff; HEADER]).unwrap().get(b"a"), None);
    }
}
