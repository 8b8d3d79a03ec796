// SPDX-License-Identifier: GPL-3.0-or-later
//! Lists of bulk: the fingerprints of frequent signatures, with their count in each window. Such counts are merged by their maximum, so
//! that they may arrive in any order and repeatedly.
//!
//! A [`Note`] is a server's message about one interval; a [`Section`] of it is about one window. docs/protocol.md describes the bytes.

use super::bits::{BitReader, BitWriter};
use super::fields::Fields;
use super::vector::{Chain, Origin};
use super::window::Window;
use bulkmark_filter::varint;
use bulkmark_types::Signature;

/// Bits of a fingerprint. With 14 million on the list, one in twenty million other signatures is mistaken for one of them.
pub const PRINT_BITS: u32 = 48;

/// The most entries of a note, in all its sections.
pub const MAX_ENTRIES: usize = 1 << 20;

/// The most sections of a note: windows that may be live at a time.
const MAX_SECTIONS: u64 = 1024;

/// The most origins that move in a note.
const MAX_MOVED: u64 = 1 << 16;

/// The lowest bits of a count, coded as they are: most counts of bulk are between ten and a hundred.
const PLAIN_BITS: u32 = 3;

/// The fewest bits of an entry: the end of its distance, and a count.
const LEAST_BITS: usize = 2 + PLAIN_BITS as usize;

/// The first 48 bits of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Print(u64);

impl Print {
    pub(crate) fn of(signature: Signature) -> Self {
        Self(u64::try_from(signature.bits() >> (128 - PRINT_BITS)).unwrap_or(0))
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// `None` if the number has more bits.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits >> PRINT_BITS == 0 { Some(Self(bits)) } else { None }
    }
}

/// The counts of one window: prints in ascending order, each once, and no count is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The window in which the signatures were counted.
    pub window: Window,
    /// Each print with its count, ascending.
    pub entries: Vec<(Print, u32)>,
}

impl Section {
    /// Appends window, length and coded entries.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let coded = encode_entries(&self.entries);
        varint::put(bytes, self.window.start);
        varint::put(bytes, self.window.length);
        varint::put(bytes, coded.len() as u64);
        bytes.extend_from_slice(&coded);
    }

    /// Takes a section with at most `most` entries from the front of `bytes`. `None` for anything else.
    pub fn decode(bytes: &mut &[u8], most: usize) -> Option<Self> {
        let window = Window::from((varint::take(bytes)?, varint::take(bytes)?));
        let length = usize::try_from(varint::take(bytes)?).ok()?;
        let (coded, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let entries = decode_entries(coded, most).filter(|_| window.length > 0)?;
        Some(Self { window, entries })
    }
}

/// Codes the number of entries; the number of plain bits of a distance; the first print; then for each entry the distance from the one
/// before (Rice code) and the count (exponential Golomb code).
pub fn encode_entries(entries: &[(Print, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, entries.len() as u64);
    let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else { return bytes };
    let mean = (last.0 - first.0) / entries.len() as u64;
    let width = mean.checked_ilog2().unwrap_or(0);
    bytes.push(u8::try_from(width).unwrap_or(0));
    let (mut bits, mut before) = (BitWriter::default(), None);
    for &(print, count) in entries {
        match before {
            None => bits.put(print.0, PRINT_BITS),
            Some(before) => {
                let distance = print.0 - before - 1;
                bits.put_unary(distance >> width);
                bits.put(distance, width);
            }
        }
        before = Some(print.0);
        let count = u64::from(count) - 1;
        let upper = (count >> PLAIN_BITS) + 1;
        bits.put_unary(u64::from(upper.ilog2()));
        bits.put(upper, upper.ilog2());
        bits.put(count, PLAIN_BITS);
    }
    bytes.extend_from_slice(&bits.into_bytes());
    bytes
}

/// Reads the bytes of [`encode_entries`], with at most `most` entries. `None` for anything else. Allocates no more memory than the bytes
/// can fill.
pub fn decode_entries(bytes: &[u8], most: usize) -> Option<Vec<(Print, u32)>> {
    let mut rest = bytes;
    let number = usize::try_from(varint::take(&mut rest)?).ok()?;
    if number == 0 {
        return rest.is_empty().then(Vec::new);
    }
    let (&width, rest) = rest.split_first()?;
    if number > most || number > rest.len().saturating_mul(8) / LEAST_BITS || u32::from(width) > PRINT_BITS {
        return None;
    }
    let (mut bits, mut entries) = (BitReader::new(rest), Vec::with_capacity(number));
    let mut before = None;
    for _ in 0..number {
        let print = match before {
            None => bits.take(PRINT_BITS)?,
            Some(before) => {
                let upper = bits.take_unary().filter(|&upper| upper <= (1 << PRINT_BITS) >> width)?;
                (upper << width | bits.take(width.into())?) + before + 1
            }
        };
        before = Some(print);
        let width = u32::try_from(bits.take_unary()?).ok().filter(|&width| width < 32)?;
        let upper = (1u64 << width | bits.take(width)?) - 1;
        let count = (upper << PLAIN_BITS | bits.take(PLAIN_BITS)?) + 1;
        entries.push((Print::from_bits(print)?, u32::try_from(count).ok()?));
    }
    bits.is_at_end().then_some(entries)
}

/// A server's message about one interval: the versions up to which it counted, and the counts of bulk that rose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// Its number in its list: 1, 2, 3 and so on.
    pub number: u64,
    /// The version of each origin that moved: all counts that rose up to it are in this note, or in an earlier one.
    pub moved: Vec<(Origin, u64)>,
    /// The counts that rose, one section per window.
    pub sections: Vec<Section>,
}

impl Note {
    /// Its number in its list.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Its bytes: number, origins with their versions, sections.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        encode_moved(&self.moved, &mut bytes);
        encode_sections(&self.sections, &mut bytes);
        bytes
    }

    /// Reads the bytes of [`encode`](Self::encode), with at most 2^20 entries. `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let number = fields.u64().ok().filter(|&number| number > 0)?;
        let mut rest = fields.0;
        let moved = decode_moved(&mut rest)?;
        let sections = decode_sections(&mut rest)?;
        rest.is_empty().then_some(Self { number, moved, sections })
    }
}

/// Appends their number, and each origin with its version.
pub fn encode_moved(moved: &[(Origin, u64)], bytes: &mut Vec<u8>) {
    varint::put(bytes, moved.len() as u64);
    for (origin, version) in moved {
        bytes.extend_from_slice(&origin.0.to_le_bytes());
        varint::put(bytes, *version);
    }
}

/// Takes the bytes of [`encode_moved`] from the front.
pub fn decode_moved(bytes: &mut &[u8]) -> Option<Vec<(Origin, u64)>> {
    let number = varint::take(bytes).filter(|&number| number <= MAX_MOVED)?;
    let mut moved = Vec::new();
    for _ in 0..number {
        let (origin, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        moved.push((Origin(u64::from_le_bytes(*origin)), varint::take(bytes)?));
    }
    Some(moved)
}

/// Appends their number, and each of them.
pub fn encode_sections(sections: &[Section], bytes: &mut Vec<u8>) {
    varint::put(bytes, sections.len() as u64);
    sections.iter().for_each(|section| section.encode(bytes));
}

/// Takes the bytes of [`encode_sections`] from the front; 2^20 entries at most.
pub fn decode_sections(bytes: &mut &[u8]) -> Option<Vec<Section>> {
    let number = varint::take(bytes).filter(|&number| number <= MAX_SECTIONS)?;
    let (mut sections, mut left) = (Vec::new(), MAX_ENTRIES);
    for _ in 0..number {
        let section = Section::decode(bytes, left)?;
        left -= section.entries.len();
        sections.push(section);
    }
    Some(sections)
}

/// The first eight bytes of the SHA-256 of a note.
pub fn hash_of(note: &[u8]) -> u64 {
    let Chain(hash) = Chain::of(note);
    hash.first_chunk().map_or(0, |half| u64::from_le_bytes(*half))
}

/// The state of a list of bulk: its number, its last note, and its lowest count. The default stands for no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkMark {
    /// A random number; zero if there is no list.
    pub list: u64,
    /// The number of its last note.
    pub number: u64,
    /// Tells that note from another one with this number, which a server restored from an old copy may have made; zero before the first.
    pub hash: u64,
    /// The count from which on a signature is on the list.
    pub bound: u32,
}

impl BulkMark {
    /// Whether there is such a list.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.list != 0
    }

    /// The state after a note with these bytes.
    #[must_use]
    pub fn after(self, number: u64, bytes: &[u8]) -> Self {
        Self { number, hash: hash_of(bytes), ..self }
    }

    /// Its bytes: list, number, hash, bound.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.list, self.number, self.hash].map(u64::to_le_bytes).concat();
        [&numbers[..], &self.bound.to_le_bytes()].concat()
    }

    /// Takes the bytes of [`encode`](Self::encode) from the front. `None` if they are too few.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = Fields(bytes);
        let (list, number, hash) = (fields.u64().ok()?, fields.u64().ok()?, fields.u64().ok()?);
        Some((Self { list, number, hash, bound: fields.u32().ok()? }, fields.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn notes() -> impl Strategy<Value = Note> {
        let entries = prop::collection::btree_map(0u64..1 << PRINT_BITS, 1u32.., 0..50);
        let narrow = prop::collection::btree_map(0u64..200, 1u32..300, 0..50);
        let entries = prop_oneof![entries, narrow];
        let of_window = |(start, entries): (u64, BTreeMap<u64, u32>)| Section {
            window: Window { start, length: 86_400 },
            entries: entries.into_iter().map(|(print, count)| (Print(print), count)).collect(),
        };
        let sections = prop::collection::vec((0u64..1 << 40, entries).prop_map(of_window), 0..4);
        let moved = prop::collection::vec((any::<u64>().prop_map(Origin), 0u64..1 << 62), 0..4);
        (1u64.., moved, sections).prop_map(|(number, moved, sections)| Note { number, moved, sections })
    }

    proptest! {
        #[test]
        fn notes_come_back(note in notes()) {
            prop_assert_eq!(Note::decode(&note.encode()), Some(note));
        }

        /// Any bytes are a note or none, without a panic.
        #[test]
        fn junk_is_refused(note in notes(), at: prop::sample::Index, byte: u8, junk: Vec<u8>) {
            let mut bytes = note.encode();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Note::decode(&bytes);
            bytes.truncate(at);
            prop_assert_eq!(Note::decode(&bytes), None);
            let _ = Note::decode(&junk);
        }
    }

    /// A few bytes that claim many entries allocate no memory.
    #[test]
    fn claims_are_refused() {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, 1 << 19);
        bytes.extend_from_slice(&[0; 1000]);
        assert_eq!(decode_entries(&bytes, MAX_ENTRIES), None);
    }
}
