// SPDX-License-Identifier: GPL-3.0-or-later
//! An update: the growth of one origin's filters from one version to the next. docs/protocol.md describes its bytes.

use crate::history::fields::Fields;
use crate::history::vector::{Chain, Mark, Origin};
use crate::history::window::Window;
use bulkmark_filter::{Delta, Refined, Scaling};

/// The most cells that one update may change. A reader allocates no more; a server cuts before there are so many.
pub const MAX_CELLS: usize = 1 << 23;

/// The most changed cells per coded byte, beside the free ones. Reports give five in a filter as full as it gets; hundreds are possible
/// only if all cells grew alike, which no reports cause.
pub const CELLS_PER_BYTE: usize = 32;

/// Cells of an update that need no bytes. A client may make up signatures that together fill whole blocks, which are coded in almost no
/// bytes. A server cuts an update before it has more, so that no client can cause one that others refuse.
pub const FREE_CELLS: usize = 1 << 20;

/// The most parts of an update: the slices of all windows with reports since the last update.
const MAX_PARTS: usize = 1024;

/// The most slices of a window. Each is twice as large as the one before it.
pub const MAX_SLICES: u32 = 32;

/// The largest first slice of another server's window, in signatures, and the largest ratio to our own; the larger of both bounds holds.
const ANY_CAPACITY: u32 = 1 << 24;
const CAPACITY_FACTOR: u32 = 16;

/// Flag in a part's slice number: the part belongs to a limited client's own filter, which has one slice.
const OF_CLIENT: u32 = 1 << 31;

/// Replaces a part's window, capacity, slice and length: all reports of the origin are withdrawn.
const WITHDRAWN: [u8; 28] = {
    let mut bytes = [0; 28];
    let mut i = 20;
    while i < 24 {
        bytes[i] = 0xFF;
        i += 1;
    }
    bytes
};

/// The kind of origin that an update belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A server's community, whose counts are added to all others.
    Community,
    /// One limited client, whose counts are kept separate.
    Client,
    /// A limited client all of whose counts are withdrawn. Such an update has no parts.
    Withdrawn,
}

/// The largest capacity of other servers' windows that is accepted here.
pub fn most_capacity(ours: u32) -> u32 {
    ours.saturating_mul(CAPACITY_FACTOR).max(ANY_CAPACITY)
}

/// The growth of one slice of one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub(crate) window: Window,
    /// Signatures that the first slice of the window was made for; it determines the size of all slices.
    pub capacity: u32,
    pub(crate) slice: u32,
    pub(crate) delta: Delta,
}

/// One step of an origin's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub(crate) origin: Origin,
    /// The version after this update.
    pub version: u64,
    /// The hash of the previous update.
    pub before: Chain,
    pub(crate) scope: Scope,
    pub(crate) parts: Vec<Part>,
}

/// The bytes are not an update.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an update, at byte {offset}: {what}")]
pub struct UpdateError {
    offset: usize,
    what: String,
}

impl Update {
    /// The origin of the history.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The version after this update; it follows the one before.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The number of cells that it changes.
    pub fn cells(&self) -> usize {
        self.parts.iter().map(|part| part.delta.len()).sum()
    }

    /// The hash of the previous update.
    pub const fn before(&self) -> Chain {
        self.before
    }

    /// Its bytes: origin, version, previous hash; then for each part window, capacity, slice, length and coded delta. The slice number
    /// contains the scope.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.origin.0.to_le_bytes());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.before.0);
        if self.scope == Scope::Withdrawn {
            bytes.extend_from_slice(&WITHDRAWN);
            return bytes;
        }
        let of_client = if self.scope == Scope::Client { OF_CLIENT } else { 0 };
        for part in &self.parts {
            let delta = part.delta.encode();
            bytes.extend_from_slice(&part.window.to_bytes());
            bytes.extend_from_slice(&part.capacity.to_le_bytes());
            bytes.extend_from_slice(&(part.slice | of_client).to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(delta.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(&delta);
        }
        bytes
    }

    /// Reads the bytes of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`UpdateError`] for all other bytes. Time and memory are bounded: 2^20 cells and 32 for each byte, and 2^23 in all.
    pub fn decode(bytes: &[u8]) -> Result<Self, UpdateError> {
        Self::decode_within(bytes, MAX_CELLS)
    }

    /// Likewise, for an update that changes at most `most` cells.
    pub fn decode_within(bytes: &[u8], most: usize) -> Result<Self, UpdateError> {
        let mut reader = Fields(bytes);
        let fault = |reader: &Fields<'_>, what: &str| UpdateError {
            offset: bytes.len() - reader.0.len(),
            what: what.to_owned(),
        };
        let short = |_| UpdateError { offset: bytes.len(), what: "cut off".to_owned() };
        let origin = Origin(reader.u64().map_err(short)?);
        let version = reader.u64().map_err(short)?;
        let before = Chain(reader.take().map_err(short)?);
        if reader.0 == WITHDRAWN && version > 0 {
            return Ok(Self { origin, version, before, scope: Scope::Withdrawn, parts: Vec::new() });
        }
        let (mut parts, mut cells, mut free) = (Vec::new(), MAX_CELLS.min(most), FREE_CELLS);
        let mut scope = None;
        while !reader.0.is_empty() {
            if parts.len() == MAX_PARTS {
                return Err(fault(&reader, "more than 1,024 parts"));
            }
            let window = Window::from((reader.u64().map_err(short)?, reader.u64().map_err(short)?));
            let (capacity, slice) = (reader.u32().map_err(short)?, reader.u32().map_err(short)?);
            let length = reader.u32().map_err(short)? as usize;
            let (of_part, slice) =
                if slice == OF_CLIENT { (Scope::Client, 0) } else { (Scope::Community, slice) };
            if *scope.get_or_insert(of_part) != of_part {
                return Err(fault(&reader, "parts of a client and of a community"));
            }
            if capacity == 0 || slice >= MAX_SLICES || window.length == 0 {
                return Err(fault(&reader, "an impossible window or slice"));
            }
            let (_, blocks) = Scaling::<Refined>::shape(capacity, slice);
            let Some((coded, rest)) = reader.0.split_at_checked(length) else {
                return Err(fault(&reader, "cut off"));
            };
            let by_length = coded.len().saturating_mul(CELLS_PER_BYTE);
            let most = by_length.saturating_add(free).min(cells);
            let delta = Delta::decode(coded, blocks, most).map_err(|e| fault(&reader, &e.to_string()))?;
            cells -= delta.len();
            free -= delta.len().saturating_sub(by_length);
            reader = Fields(rest);
            parts.push(Part { window, capacity, slice, delta });
        }
        let Some(scope) = scope.filter(|_| version > 0) else {
            return Err(fault(&reader, "an empty update"));
        };
        Ok(Self { origin, version, before, scope, parts })
    }

    /// The mark of its origin after it. `bytes` are its own.
    pub fn mark(&self, bytes: &[u8]) -> Mark {
        Mark { version: self.version, chain: Chain::of(bytes) }
    }
}

/// Returns the origin and the mark of an update's bytes. `None` for bytes that are too short.
#[must_use]
pub fn mark_of(bytes: &[u8]) -> Option<(Origin, Mark)> {
    let (origin, rest) = bytes.split_first_chunk()?;
    let (version, _) = rest.split_first_chunk()?;
    let mark = Mark { version: u64::from_le_bytes(*version), chain: Chain::of(bytes) };
    Some((Origin(u64::from_le_bytes(*origin)), mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_filter::{CELLS_PER_BLOCK, Counting};

    /// The bytes of an update that raises all cells of the first `filled` blocks, in parts of `per_part` blocks.
    fn bytes_of_full_blocks(filled: usize, per_part: usize) -> Vec<u8> {
        let (capacity, slice) = (900_000, 0);
        let (_, blocks) = Scaling::<Refined>::shape(capacity, slice);
        let part = |(n, count): (u64, usize)| {
            let mut filter = Refined::new(blocks).unwrap();
            assert!(filter.restore(0..count, &vec![0x11; count * 64]));
            let delta = Delta::between(&Refined::new(blocks).unwrap(), &filter).unwrap();
            assert_eq!(delta.len(), count * CELLS_PER_BLOCK);
            Part { window: Window { start: n * 86_400, length: 86_400 }, capacity, slice, delta }
        };
        let counts = (0..filled).step_by(per_part).map(|from| per_part.min(filled - from));
        let parts = (0..).zip(counts).map(part).collect();
        let (origin, before) = (Origin(1), Chain::default());
        Update { origin, version: 1, before, scope: Scope::Community, parts }.encode()
    }

    /// Twelve thousand bytes can be a delta of nearly eight million cells.
    #[test]
    fn a_bomb_is_refused() {
        let bytes = bytes_of_full_blocks(60_000, 60_000);
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        let refusal = Update::decode(&bytes).unwrap_err().to_string();
        assert!(refusal.contains("its lengths do not fit one another or the filter"), "{refusal}");
    }

    /// A client may make up signatures that fill whole blocks: an update of a million such cells is accepted, in one part or many.
    #[test]
    fn a_million_cells_need_no_bytes() {
        let free = FREE_CELLS / CELLS_PER_BLOCK;
        for per_part in [free, 1024] {
            let bytes = bytes_of_full_blocks(free, per_part);
            assert!(
                bytes.len() * CELLS_PER_BYTE < FREE_CELLS / 2,
                "its bytes alone would not do: {}",
                bytes.len()
            );
            assert!(Update::decode(&bytes).is_ok());
            assert!(
                Update::decode(&bytes_of_full_blocks(2 * free, per_part)).is_err(),
                "they are free only once"
            );
        }
    }

    fn update(scope: Scope, parts: usize) -> Update {
        let delta = Delta::from_changes(Scaling::<Refined>::shape(1000, 0).1, [(7, 3)]).unwrap();
        let part = Part { window: Window { start: 86_400, length: 86_400 }, capacity: 1000, slice: 0, delta };
        let before = Chain([9; 16]);
        Update { origin: Origin(5), version: 6, before, scope, parts: vec![part; parts] }
    }

    /// What is written is read again, at its place in the history.
    #[test]
    fn updates_of_all_scopes_are_read_again() {
        let updates =
            [update(Scope::Community, MAX_PARTS), update(Scope::Client, 2), update(Scope::Withdrawn, 0)];
        for written in updates {
            let bytes = written.encode();
            let read = Update::decode(&bytes).unwrap();
            assert_eq!((&read, read.cells(), read.version()), (&written, written.parts.len(), 6));
            assert_eq!(mark_of(&bytes), Some((Origin(5), read.mark(&bytes))));
            assert_ne!(Chain::of(&bytes), Chain::of(&bytes[1..]));
        }
    }

    #[test]
    fn what_is_no_update_is_refused() {
        let bytes = update(Scope::Community, 1).encode();
        let of_client = [&bytes[..], &update(Scope::Client, 1).encode()[32..]].concat();
        let first = |update: Update| Update { version: 0, ..update }.encode();
        for (bytes, why) in [
            (bytes[..bytes.len() - 1].to_vec(), "cut off"),
            (of_client, "parts of a client and of a community"),
            (first(update(Scope::Community, 1)), "an empty update"),
            (first(update(Scope::Withdrawn, 0)), "an impossible window or slice"),
            (update(Scope::Community, 0).encode(), "an empty update"),
            (update(Scope::Community, MAX_PARTS + 1).encode(), "more than 1,024 parts"),
        ] {
            assert_eq!(Update::decode(&bytes).unwrap_err().what, why);
        }
        // The cells of all parts count together.
        let bytes = bytes_of_full_blocks(2, 1);
        let read = |most| Update::decode_within(&bytes, most).map(|update| update.cells());
        assert_eq!(read(2 * CELLS_PER_BLOCK), Ok(2 * CELLS_PER_BLOCK));
        assert!(read(2 * CELLS_PER_BLOCK - 1).is_err());
    }
}
