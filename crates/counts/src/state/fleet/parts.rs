// SPDX-License-Identifier: GPL-3.0-or-later
//! The stream of a fleet's snapshot: entries, cut into parts that all engines of a log accept. docs/protocol.md describes it.

use crate::history::bulk::{MAX_ENTRIES, Section};
use crate::history::chunks::{MAX_CHUNK_BYTES, MAX_LAYER_BYTES};
use crate::history::fields::{CutOff, Fields};
use crate::history::fleet_mark::FleetMark;
use crate::history::row::Row;
use crate::history::sealed::{OtherForm, seal, unseal};
use crate::history::spool_mark::SpoolMark;
use crate::history::step::{MAX_STEP, take_name};
use crate::history::vector::{Chain, Origin, Vector};
use crate::state::fleet::marks::KnownMark;

/// The kind of a part, and the version of its form.
const MAGIC: &[u8; 5] = b"BMFP\x01";

/// Recognizes a part of another program version.
pub fn other_part(bytes: &[u8]) -> Option<OtherForm> {
    OtherForm::of(&[MAGIC], "a snapshot", bytes)
}

/// Bytes of a part's head, its number, and its checksum.
const OVERHEAD: usize = 5 + 4 + 4;

/// The most bytes of an entry: a row, or the head with the vector of thousands of limited clients.
const MAX_ENTRY: usize =
    if MAX_LAYER_BYTES > MAX_CHUNK_BYTES { MAX_LAYER_BYTES } else { MAX_CHUNK_BYTES } + 64;

/// The state of the chain in a snapshot, and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The state of the chain.
    pub mark: FleetMark,
    /// The origin of clients without limits.
    pub origin: Origin,
    /// The arrival time of the newest batch, in seconds since 1970.
    pub time: u64,
    /// The id of the fleet's federation key.
    pub key_id: u64,
    /// The length of a window in seconds.
    pub window: u64,
    /// The version up to which each origin is counted in the cells.
    pub vector: Vector,
}

/// The entries of a snapshot: first its head, then the data for all members, then the cells, at last its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The head, which comes first.
    Head(Head),
    /// A chunk of cells.
    Row(Row),
    /// The counted batches of one spool.
    Mark {
        /// The client of the spool.
        client: String,
        /// The random number of the spool.
        spool: u64,
        /// Its mark, with the version of the step that last set it.
        known: KnownMark,
    },
    /// A part of the list of bulk.
    Bulk(Section),
    /// The end of the data for milters with a partial copy: the numbers of marks and of parts of the list, and the list's bound (0 without
    /// a list).
    Partial {
        /// Entries of the kind `Mark` before this one.
        marks: u64,
        /// Entries of the kind `Bulk` before this one.
        sections: u64,
        /// The count from which on bulk is listed; 0 without a list.
        bound: u32,
    },
    /// The end, with the numbers of rows and marks.
    End {
        /// Entries of the kind `Row` in the snapshot.
        rows: u64,
        /// Entries of the kind `Mark` in the snapshot.
        marks: u64,
    },
}

impl Entry {
    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Head(head) => (0, head.encode()),
            Self::Row(row) => (1, row.encode()),
            Self::Mark { client, spool, known } => {
                let mut bytes = vec![u8::try_from(client.len()).unwrap_or(u8::MAX)];
                bytes.extend_from_slice(client.as_bytes());
                bytes.extend_from_slice(&spool.to_le_bytes());
                bytes.extend_from_slice(&known.at.to_le_bytes());
                known.mark.encode(&mut bytes);
                (2, bytes)
            }
            Self::Bulk(section) => {
                let mut bytes = Vec::new();
                section.encode(&mut bytes);
                (4, bytes)
            }
            Self::Partial { marks, sections, bound } => {
                let numbers = [marks.to_le_bytes(), sections.to_le_bytes()].concat();
                (5, [&numbers[..], &bound.to_le_bytes()].concat())
            }
            Self::End { rows, marks } => (3, [rows.to_le_bytes(), marks.to_le_bytes()].concat()),
        }
    }

    fn decode(kind: u8, bytes: &[u8]) -> Result<Option<Self>, CutOff> {
        let mut fields = Fields(bytes);
        let entry = match kind {
            0 => return Ok(Head::decode(bytes)?.map(Self::Head)),
            1 => return Ok(Row::decode(bytes).map(Self::Row)),
            2 => {
                let client = take_name(&mut fields)?;
                let (spool, at) = (fields.u64()?, fields.u64()?);
                let mark = SpoolMark::decode(&mut fields)?;
                let (Some(client), Some(mark)) = (client, mark) else { return Ok(None) };
                Self::Mark { client, spool, known: KnownMark { at, mark } }
            }
            3 => Self::End { rows: fields.u64()?, marks: fields.u64()? },
            4 => match Section::decode(&mut fields.0, MAX_ENTRIES) {
                Some(section) => Self::Bulk(section),
                None => return Ok(None),
            },
            5 => Self::Partial { marks: fields.u64()?, sections: fields.u64()?, bound: fields.u32()? },
            _ => return Ok(None),
        };
        Ok(fields.0.is_empty().then_some(entry))
    }
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { mark, origin, time, key_id, window, vector } = self;
        let FleetMark { version, chain, epoch, made, covers, place } = *mark;
        let mut bytes = [origin.0, version, epoch, made, covers, place, *time, *key_id, *window]
            .map(u64::to_le_bytes)
            .concat();
        bytes.extend_from_slice(&chain.0);
        bytes.extend_from_slice(vector.to_string().as_bytes());
        bytes
    }

    /// The inner value is `None` if the vector cannot be read.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, CutOff> {
        let mut fields = Fields(bytes);
        let origin = Origin(fields.u64()?);
        let (version, epoch, made) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (covers, place, time) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (key_id, window) = (fields.u64()?, fields.u64()?);
        let mark = FleetMark { version, chain: Chain(fields.take()?), epoch, made, covers, place };
        let vector = std::str::from_utf8(fields.0).ok().and_then(|text| text.parse().ok());
        Ok(vector.map(|vector| Self { mark, origin, time, key_id, window, vector }))
    }
}

/// Cuts entries into parts.
#[derive(Default)]
pub struct Packer {
    waiting: Vec<u8>,
    parts: u32,
}

/// Bytes of a part's content.
const CONTENT: usize = MAX_STEP - OVERHEAD;

impl Packer {
    /// Appends an entry to the stream.
    pub fn push(&mut self, entry: &Entry) {
        let (kind, bytes) = entry.encode();
        self.waiting.push(kind);
        self.waiting.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.waiting.extend_from_slice(&bytes);
    }

    /// Returns a part if there is enough for one; with `last`, also for the rest.
    pub fn take(&mut self, last: bool) -> Option<Vec<u8>> {
        let length = self.waiting.len().min(CONTENT);
        if length < CONTENT && !(last && length > 0) {
            return None;
        }
        let rest = self.waiting.split_off(length);
        let content = std::mem::replace(&mut self.waiting, rest);
        let part = [&MAGIC[..], &self.parts.to_le_bytes(), &content].concat();
        self.parts += 1;
        Some(seal(part))
    }
}

/// Joins parts again.
#[derive(Default)]
pub struct Unpacker {
    waiting: Vec<u8>,
    parts: u32,
}

impl Unpacker {
    /// Returns the entries that this part completes. `None` if it is not the next part of a snapshot.
    pub fn push(&mut self, part: &[u8]) -> Option<Vec<Entry>> {
        let (number, content) = unseal(MAGIC, part)?.split_first_chunk()?;
        if u32::from_le_bytes(*number) != self.parts {
            return None;
        }
        self.parts += 1;
        self.waiting.extend_from_slice(content);
        let (mut entries, mut rest) = (Vec::new(), &self.waiting[..]);
        while let Some((&[kind, a, b, c, d], behind)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            if length > MAX_ENTRY {
                return None;
            }
            let Some((bytes, behind)) = behind.split_at_checked(length) else { break };
            entries.push(Entry::decode(kind, bytes).ok().flatten()?);
            rest = behind;
        }
        self.waiting = rest.to_vec();
        Some(entries)
    }

    /// Whether no bytes are left over.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::bulk::Print;
    use crate::history::window::Window;

    fn row(chunk: u32, length: usize) -> Entry {
        let window = Window { start: 0, length: 60 };
        let bytes = (0..length).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect();
        Entry::Row(Row { window, capacity: 10, slice: 0, chunk, client: Some(Origin(3)), bytes })
    }

    fn entries() -> Vec<Entry> {
        let mut mark = SpoolMark::default();
        mark.take(3, 1);
        let mut vector = Vector::new();
        vector.set(Origin(5), crate::history::vector::Mark { version: 2, chain: Chain([9; 16]) });
        let at = FleetMark { version: 7, chain: Chain([1; 16]), epoch: 2, made: 3, covers: 4, place: 5 };
        let head = Head { mark: at, origin: Origin(5), time: 6, key_id: 7, window: 60, vector };
        let section = Section {
            window: Window { start: 0, length: 60 },
            entries: vec![(Print::from_bits(77).unwrap(), 12)],
        };
        vec![
            Entry::Head(head),
            Entry::Mark { client: "mx1".to_owned(), spool: 8, known: KnownMark { at: 7, mark } },
            Entry::Bulk(section),
            Entry::Partial { marks: 1, sections: 1, bound: 10 },
            row(0, 100),
            row(1, 3 * MAX_STEP),
            row(2, 0),
            Entry::End { rows: 3, marks: 1 },
        ]
    }

    fn parts() -> Vec<Vec<u8>> {
        let (mut packer, mut parts) = (Packer::default(), Vec::new());
        for entry in entries() {
            packer.push(&entry);
            parts.extend(std::iter::from_fn(|| packer.take(false)));
        }
        parts.extend(packer.take(true));
        assert_eq!(packer.take(true), None);
        parts
    }

    /// Entries larger than a part are split over several, none of which is too large.
    #[test]
    fn a_stream_is_put_together() {
        let parts = parts();
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.len() <= MAX_STEP));
        let mut unpacker = Unpacker::default();
        let found: Vec<_> = parts.iter().flat_map(|part| unpacker.push(part).unwrap()).collect();
        assert_eq!(found, entries());
        assert!(unpacker.is_empty());
    }

    #[test]
    fn missing_or_changed_parts_are_refused() {
        let parts = parts();
        let mut unpacker = Unpacker::default();
        assert!(unpacker.push(&parts[1]).is_none(), "not the first");
        unpacker.push(&parts[0]).unwrap();
        assert!(unpacker.push(&parts[0]).is_none() && unpacker.push(&parts[2]).is_none());
        assert!(!unpacker.is_empty());
        let mut changed = parts[1].clone();
        changed[100] ^= 1;
        assert!(unpacker.push(&changed).is_none());
        let long = [&MAGIC[..], &0u32.to_le_bytes(), &[1], &u32::MAX.to_le_bytes()].concat();
        assert!(Unpacker::default().push(&seal(long)).is_none(), "no room is made for what is claimed");
    }
}
