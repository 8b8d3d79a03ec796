// SPDX-License-Identifier: GPL-3.0-or-later
//! An update: what the filters of one origin grew by from one version to the next. Its bytes are described in
//! docs/protocol.md.

use super::format::Reader;
use super::vector::{Chain, Mark, Origin};
use super::window::Window;
use bulkmark_filter::{CELLS_PER_BLOCK, Delta, ParameterError, Refined, Scaling};

/// Cells that one update may change. A reader makes room for no more; a server cuts before there are so many.
pub(super) const MAX_CELLS: usize = 1 << 23;

/// Cells that change for each coded byte at most, beside a block's. Reports give five where a filter is as full as it gets;
/// hundreds come from nothing but cells that all grew alike, which no reports make.
const CELLS_PER_BYTE: usize = 32;

/// Parts of an update: the slices of all windows in which something was counted since the last one.
const MAX_PARTS: usize = 1024;

/// Slices of a row at most. Each is twice as large as the one before it.
pub(super) const MAX_SLICES: u32 = 32;

/// What one slice of one window grew by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) window: Window,
    /// Signatures that the first slice of the window was made for; it tells the size of all of them.
    pub(super) capacity: u32,
    pub(super) slice: u32,
    pub(super) delta: Delta,
}

/// One step of an origin's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub(super) origin: Origin,
    /// The version that it makes.
    pub(super) version: u64,
    /// The hash of the update before.
    pub(super) before: Chain,
    pub(super) parts: Vec<Part>,
}

/// Bytes are no update.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an update, at byte {offset}: {what}")]
pub struct UpdateError {
    offset: usize,
    what: String,
}

impl Update {
    /// Whose step it is.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The version that it makes; it follows the one before.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The hash of the update before.
    pub(super) const fn before(&self) -> Chain {
        self.before
    }

    /// Its bytes: origin, version, hash before; then for each part window, capacity, slice, length and coded delta.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.origin.0.to_le_bytes());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.before.0);
        for part in &self.parts {
            let delta = part.delta.encode();
            bytes.extend_from_slice(&part.window.to_bytes());
            bytes.extend_from_slice(&part.capacity.to_le_bytes());
            bytes.extend_from_slice(&part.slice.to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(delta.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(&delta);
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// [`UpdateError`] for all other bytes. Time and memory are bounded by their number: 32 cells for each, and 2^23 in all.
    pub fn decode(bytes: &[u8]) -> Result<Self, UpdateError> {
        let mut reader = Reader(bytes);
        let fault = |reader: &Reader<'_>, what: &str| UpdateError {
            offset: bytes.len() - reader.0.len(),
            what: what.to_owned(),
        };
        let short = |_| UpdateError { offset: bytes.len(), what: "cut off".to_owned() };
        let origin = Origin(reader.u64().map_err(short)?);
        let version = reader.u64().map_err(short)?;
        let before = Chain(reader.take().map_err(short)?);
        let (mut parts, mut cells) = (Vec::new(), MAX_CELLS);
        while !reader.0.is_empty() {
            if parts.len() == MAX_PARTS {
                return Err(fault(&reader, "more than 1,024 parts"));
            }
            let window = Window::from((reader.u64().map_err(short)?, reader.u64().map_err(short)?));
            let (capacity, slice) = (reader.u32().map_err(short)?, reader.u32().map_err(short)?);
            let length = reader.u32().map_err(short)? as usize;
            if capacity == 0 || slice >= MAX_SLICES || window.length == 0 {
                return Err(fault(&reader, "a window or slice that cannot be"));
            }
            let (_, blocks) = Scaling::<Refined>::shape(capacity, slice);
            let Some((coded, rest)) = reader.0.split_at_checked(length) else {
                return Err(fault(&reader, "cut off"));
            };
            let most = coded.len().saturating_mul(CELLS_PER_BYTE).saturating_add(CELLS_PER_BLOCK).min(cells);
            let delta = Delta::decode(coded, blocks, most).map_err(|e| fault(&reader, &e.to_string()))?;
            cells -= delta.len();
            reader = Reader(rest);
            parts.push(Part { window, capacity, slice, delta });
        }
        if version == 0 || parts.is_empty() {
            return Err(fault(&reader, "an update of nothing"));
        }
        Ok(Self { origin, version, before, parts })
    }

    /// Where its origin's history stands after it. `bytes` are its own.
    pub(super) fn mark(&self, bytes: &[u8]) -> Mark {
        Mark { version: self.version, chain: Chain::of(bytes) }
    }
}

/// Whose history these bytes of an update continue, and where it stands after them. None for bytes that are too short.
#[must_use]
pub fn mark_of(bytes: &[u8]) -> Option<(Origin, Mark)> {
    let (origin, rest) = bytes.split_first_chunk()?;
    let (version, _) = rest.split_first_chunk()?;
    let mark = Mark { version: u64::from_le_bytes(*version), chain: Chain::of(bytes) };
    Some((Origin(u64::from_le_bytes(*origin)), mark))
}

/// An update cannot be applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Updates before it are missing.
    #[error(
        "origin {origin}: version {version} came, but only {have} is known here; those between are missing"
    )]
    Gap {
        /// The origin.
        origin: Origin,
        /// The version that is known.
        have: u64,
        /// The version that came.
        version: u64,
    },
    /// It continues another history than the one that is known.
    #[error(
        "origin {origin}: version {version} continues another history than the one known here; was a server \
         restored from an old backup?"
    )]
    Fork {
        /// The origin.
        origin: Origin,
        /// The version that came.
        version: u64,
    },
    /// Its windows are so many or so far away that a clock must be wrong.
    #[error("origin {origin}: version {version} counts in the window {window}, {why}; is a clock wrong?")]
    Clock {
        /// The origin.
        origin: Origin,
        /// The version that came.
        version: u64,
        /// The window, as start and length in seconds.
        window: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A snapshot has what this server counted itself.
    #[error(
        "the snapshot has what this server counted itself (origin {origin}), so that it would count twice; a server that \
         was away for longer than updates are kept has to begin with a new state directory"
    )]
    Own {
        /// This server's origin.
        origin: Origin,
    },
    /// It is of filters of another size, or there is no memory.
    #[error("origin {origin}: {error}")]
    Parameter {
        /// The origin.
        origin: Origin,
        /// What does not go together.
        error: ParameterError,
    },
}

#[cfg(test)]
mod tests {
    use super::super::generations::Generations;
    use super::super::own::Own;
    use super::super::{Settings, window};
    use super::*;
    use crate::signature::Signature;
    use bulkmark_filter::Counting;

    /// What reports make stays far below the bound, however small and full the filters are.
    #[test]
    fn updates_of_reports_are_far_from_the_bound() {
        for (capacity, signatures) in [(1, 1), (1, 5000), (100, 5000), (1000, 8192), (100_000, 100_000)] {
            let settings = Settings { capacity: capacity.try_into().unwrap(), ..Settings::default() };
            let mut own = Own::recording(Generations::new(&settings), Origin(1), Mark::default());
            for n in 0..signatures {
                let half = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
                let mixed = (half ^ half >> 60).wrapping_mul(0xBF58_476D_1CE4_E5B9_94D0_49BB_1331_11EB);
                let signature = Signature::from_bytes((mixed ^ mixed >> 64).to_le_bytes());
                own.add(own.generations.window_at(window::now()), n, signature, 1).unwrap();
            }
            let (update, bytes) = own.cut().unwrap();
            for delta in update.parts.iter().map(|part| &part.delta) {
                assert!(delta.len() < CELLS_PER_BLOCK + delta.encode().len() * CELLS_PER_BYTE / 5);
            }
            assert_eq!(Update::decode(&bytes), Ok(update));
        }
    }

    /// Twelve thousand bytes that are a delta of nearly eight million cells.
    #[test]
    fn a_bomb_is_refused() {
        let (capacity, slice) = (900_000, 0);
        let (_, blocks) = Scaling::<Refined>::shape(capacity, slice);
        let mut filter = Refined::new(blocks).unwrap();
        assert!(filter.restore(0..blocks, &vec![0x11; blocks * 64]));
        let delta = Delta::between(&Refined::new(blocks).unwrap(), &filter).unwrap();
        assert!((7 << 20..MAX_CELLS).contains(&delta.len()), "no other bound is to be the one that holds");
        let window = Window { start: 0, length: 86_400 };
        let parts = vec![Part { window, capacity, slice, delta }];
        let bytes = Update { origin: Origin(1), version: 1, before: Chain::default(), parts }.encode();
        assert!(bytes.len() < 20_000, "{}", bytes.len());
        let refusal = Update::decode(&bytes).unwrap_err().to_string();
        assert!(refusal.contains("its lengths do not fit one another or the filter"), "{refusal}");
    }
}
