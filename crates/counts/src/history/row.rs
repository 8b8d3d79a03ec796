// SPDX-License-Identifier: GPL-3.0-or-later
//! The rows of a snapshot.

use super::chunks::{MAX_CHUNK_BYTES, MAX_LAYER_BYTES};
use super::fields::Fields;
use super::update::MAX_SLICES;
use super::vector::Origin;
use super::window::Window;

/// A chunk of cells of one slice, of all origins or of some of them; rows of the same place are added up. Or a part of one limited client's
/// counts of a window, as a coded delta to an empty filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The window of the cells.
    pub window: Window,
    /// The capacity of the window's first slice, in signatures.
    pub capacity: u32,
    /// The number of the slice in its window; 0 for a client.
    pub slice: u32,
    /// The number of the chunk in its slice, or of the part of a client's layer.
    pub chunk: u32,
    /// The limited client that reported these counts, by its origin.
    pub client: Option<Origin>,
    /// The cells as `Refined::bytes` gives them, or a client's coded delta.
    pub bytes: Vec<u8>,
}

/// The number of the slice in a limited client's rows; the client's origin follows after the chunk.
const OF_CLIENT: u32 = 1 << 31;

/// The bytes of a row before its cells: window, capacity, slice, chunk.
const HEAD: usize = 16 + 3 * 4;

impl Row {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.bytes.len());
        bytes.extend_from_slice(&self.window.to_bytes());
        let slice = if self.client.is_some() { OF_CLIENT } else { self.slice };
        for field in [self.capacity, slice, self.chunk] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        if let Some(Origin(origin)) = self.client {
            bytes.extend_from_slice(&origin.to_le_bytes());
        }
        bytes.extend_from_slice(&self.bytes);
        bytes
    }

    /// Reads the bytes of [`encode`](Self::encode). `None` for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let window = Window::from((fields.u64().ok()?, fields.u64().ok()?));
        let (capacity, slice, chunk) = (fields.u32().ok()?, fields.u32().ok()?, fields.u32().ok()?);
        let client = if slice == OF_CLIENT { Some(Origin(fields.u64().ok()?)) } else { None };
        let (slice, most) = if client.is_some() { (0, MAX_LAYER_BYTES) } else { (slice, MAX_CHUNK_BYTES) };
        let valid = window.length > 0 && capacity > 0 && slice < MAX_SLICES && fields.0.len() <= most;
        valid.then(|| Self { window, capacity, slice, chunk, client, bytes: fields.0.to_vec() })
    }
}
