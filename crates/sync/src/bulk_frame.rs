// SPDX-License-Identifier: GPL-3.0-or-later
//! The frames of a stream of bulk; docs/protocol.md describes them. The first byte is the kind of frame.

use bulkmark_counts::{BulkMark, Note, Origin, Section};
use bulkmark_filter::varint;

/// A frame of a stream of bulk.
#[derive(Debug, Clone, PartialEq)]
pub enum BulkFrame {
    /// The position of the server's list.
    Alive(BulkMark),
    /// The whole list follows.
    Head(ListHead),
    /// A part of the whole list.
    Row(Section),
    /// The next note.
    Note(Note, Vec<u8>),
}

/// The head of a whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListHead {
    /// The position of the list.
    pub mark: BulkMark,
    /// The number of its rows.
    pub rows: u64,
    /// The version of each origin that the list includes.
    pub versions: Vec<(Origin, u64)>,
}

/// Encodes the content of a frame with the position of the list.
#[must_use]
pub fn alive(mark: BulkMark) -> Vec<u8> {
    [&b"A"[..], &mark.encode()].concat()
}

/// Encodes the content of a frame with the head of a whole list.
#[must_use]
pub fn head(list_head: &ListHead) -> Vec<u8> {
    let mut bytes = [&b"L"[..], &list_head.mark.encode()].concat();
    varint::put(&mut bytes, list_head.rows);
    for (Origin(origin), version) in &list_head.versions {
        bytes.extend_from_slice(&origin.to_le_bytes());
        varint::put(&mut bytes, *version);
    }
    bytes
}

/// Encodes the content of a frame with a part of the list.
#[must_use]
pub fn row(section: &Section) -> Vec<u8> {
    let mut bytes = b"R".to_vec();
    section.encode(&mut bytes);
    bytes
}

/// Encodes the content of a frame with a note.
#[must_use]
pub fn note(bytes: &[u8]) -> Vec<u8> {
    [&b"N"[..], bytes].concat()
}

impl BulkFrame {
    /// Decodes the content of a frame. None for anything else.
    #[must_use]
    pub fn decode(content: &[u8]) -> Option<Self> {
        let (kind, rest) = content.split_first()?;
        match kind {
            b'A' => {
                BulkMark::decode(rest).filter(|(_, rest)| rest.is_empty()).map(|(mark, _)| Self::Alive(mark))
            }
            b'L' => Self::decode_head(rest).map(Self::Head),
            b'R' => {
                let mut rest = rest;
                let section = Section::decode(&mut rest, MAX_ROW)?;
                rest.is_empty().then_some(Self::Row(section))
            }
            b'N' => Some(Self::Note(Note::decode(rest)?, rest.to_vec())),
            _ => None,
        }
    }

    fn decode_head(bytes: &[u8]) -> Option<ListHead> {
        let (mark, mut rest) = BulkMark::decode(bytes)?;
        let rows = varint::take(&mut rest)?;
        let mut versions = Vec::new();
        while let Some((origin, after)) = rest.split_first_chunk() {
            rest = after;
            versions.push((Origin(u64::from_le_bytes(*origin)), varint::take(&mut rest)?));
        }
        rest.is_empty().then_some(ListHead { mark, rows, versions })
    }
}

/// Maximum of entries in a row.
const MAX_ROW: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Frames survive encoding and decoding, and no input panics.
        #[test]
        fn frames_come_back(
            numbers in any::<(u64, u64, u64, u32, u32)>(),
            versions in prop::collection::vec(any::<(u64, u32)>(), 0..5),
            at: prop::sample::Index,
            byte: u8,
        ) {
            let (list, number, hash, bound, rows) = numbers;
            let mark = BulkMark { list, number, hash, bound };
            prop_assert_eq!(BulkFrame::decode(&alive(mark)), Some(BulkFrame::Alive(mark)));
            let versions = versions.into_iter().map(|(origin, version)| (Origin(origin), version.into())).collect();
            let list_head = ListHead { mark, rows: rows.into(), versions };
            let mut bytes = head(&list_head);
            prop_assert_eq!(BulkFrame::decode(&bytes), Some(BulkFrame::Head(list_head)));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = BulkFrame::decode(&bytes);
            let _ = BulkFrame::decode(&bytes[..at]);
        }
    }
}
