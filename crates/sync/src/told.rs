// SPDX-License-Identifier: GPL-3.0-or-later
//! The frames of a stream of bulk; docs/protocol.md describes them. The first byte says which it is.

use bulkmark_counts::{BulkMark, Note, Origin, Section};
use bulkmark_filter::varint;

/// What a server tells of bulk.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// How far its list is.
    Alive(BulkMark),
    /// The whole list follows.
    Begins(Beginning),
    /// A part of the whole list.
    Row(Section),
    /// The next note.
    Note(Note, Vec<u8>),
}

/// What comes before a whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// Where the list stands.
    pub mark: BulkMark,
    /// The number of its rows.
    pub rows: u64,
    /// How far each origin is counted in it.
    pub versions: Vec<(Origin, u64)>,
}

/// A frame's content that says how far the list is.
#[must_use]
pub fn alive(mark: BulkMark) -> Vec<u8> {
    [&b"A"[..], &mark.encode()].concat()
}

/// A frame's content that begins a whole list.
#[must_use]
pub fn begins(beginning: &Beginning) -> Vec<u8> {
    let mut bytes = [&b"L"[..], &beginning.mark.encode()].concat();
    varint::put(&mut bytes, beginning.rows);
    for (Origin(origin), version) in &beginning.versions {
        bytes.extend_from_slice(&origin.to_le_bytes());
        varint::put(&mut bytes, *version);
    }
    bytes
}

/// A frame's content with a part of the list.
#[must_use]
pub fn row(section: &Section) -> Vec<u8> {
    let mut bytes = b"R".to_vec();
    section.encode(&mut bytes);
    bytes
}

/// A frame's content with a note.
#[must_use]
pub fn note(bytes: &[u8]) -> Vec<u8> {
    [&b"N"[..], bytes].concat()
}

impl Told {
    /// Reads the content of a frame. None for anything else.
    #[must_use]
    pub fn decode(content: &[u8]) -> Option<Self> {
        let (kind, rest) = content.split_first()?;
        match kind {
            b'A' => {
                BulkMark::decode(rest).filter(|(_, rest)| rest.is_empty()).map(|(mark, _)| Self::Alive(mark))
            }
            b'L' => Self::beginning(rest).map(Self::Begins),
            b'R' => {
                let mut rest = rest;
                let section = Section::decode(&mut rest, MAX_ROW)?;
                rest.is_empty().then_some(Self::Row(section))
            }
            b'N' => Some(Self::Note(Note::decode(rest)?, rest.to_vec())),
            _ => None,
        }
    }

    fn beginning(bytes: &[u8]) -> Option<Beginning> {
        let (mark, mut rest) = BulkMark::decode(bytes)?;
        let rows = varint::take(&mut rest)?;
        let mut versions = Vec::new();
        while let Some((origin, after)) = rest.split_first_chunk() {
            rest = after;
            versions.push((Origin(u64::from_le_bytes(*origin)), varint::take(&mut rest)?));
        }
        rest.is_empty().then_some(Beginning { mark, rows, versions })
    }
}

/// Entries of a row at most.
const MAX_ROW: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is told comes back, and whatever else comes makes no panic.
        #[test]
        fn what_is_told_comes_back(
            numbers in any::<(u64, u64, u64, u32, u32)>(),
            versions in prop::collection::vec(any::<(u64, u32)>(), 0..5),
            at: prop::sample::Index,
            byte: u8,
        ) {
            let (list, number, hash, bound, rows) = numbers;
            let mark = BulkMark { list, number, hash, bound };
            prop_assert_eq!(Told::decode(&alive(mark)), Some(Told::Alive(mark)));
            let versions = versions.into_iter().map(|(origin, version)| (Origin(origin), version.into())).collect();
            let beginning = Beginning { mark, rows: rows.into(), versions };
            let mut bytes = begins(&beginning);
            prop_assert_eq!(Told::decode(&bytes), Some(Told::Begins(beginning)));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Told::decode(&bytes);
            let _ = Told::decode(&bytes[..at]);
        }
    }
}
