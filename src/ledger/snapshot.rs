// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots: the rows that travel, and the view that is put together from them.

use super::Settings;
use super::update::{Refusal, Update};
use super::vector::Vector;
use super::view::View;
use super::window::Window;
use bulkmark_filter::ParameterError;

/// Bytes of one row's cells at most: those of a chunk, and eight for each of its cells.
const MAX_ROW: usize = 640 * (64 + 128 * 8);

/// A chunk of cells of one slice, of all origins or of a part of them; rows of the same place are added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub(super) window: Window,
    /// Signatures that the first slice of the window was made for.
    pub(super) capacity: u32,
    pub(super) slice: u32,
    pub(super) chunk: u32,
    pub(super) bytes: Vec<u8>,
}

/// Bytes of a row before its cells: window, capacity, slice, chunk.
const HEAD: usize = 16 + 3 * 4;

impl Row {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.bytes.len());
        bytes.extend_from_slice(&self.window.to_bytes());
        for field in [self.capacity, self.slice, self.chunk] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&self.bytes);
        bytes
    }

    /// Reads what [`encode`](Self::encode) made. None for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = super::format::Reader(bytes);
        let window = Window::from((reader.u64().ok()?, reader.u64().ok()?));
        let (capacity, slice, chunk) = (reader.u32().ok()?, reader.u32().ok()?, reader.u32().ok()?);
        let valid = window.length > 0
            && capacity > 0
            && slice < super::update::MAX_SLICES
            && reader.0.len() <= MAX_ROW;
        valid.then(|| Self { window, capacity, slice, chunk, bytes: reader.0.to_vec() })
    }
}

/// A snapshot that is coming in.
pub struct Assembly {
    view: View,
    vector: Vector,
}

impl Assembly {
    /// Of nothing yet; `vector` is that of the snapshot.
    #[must_use]
    pub fn new(settings: &Settings, vector: Vector) -> Self {
        Self { view: View::new(settings), vector }
    }

    /// How far each origin is in it.
    #[must_use]
    pub fn vector(&self) -> &Vector {
        if self.view.vector().is_empty() { &self.vector } else { self.view.vector() }
    }

    /// Adds a row. False when it does not fit its place.
    ///
    /// # Errors
    /// When its slice has another size than ours, or one that there is no reason for, or there is no memory.
    pub fn add(&mut self, row: &Row) -> Result<bool, ParameterError> {
        self.view.admit(row.window, row.capacity, row.slice)?;
        self.view.merge_chunk(row.window, row.capacity, row.slice, row.chunk, &row.bytes)
    }

    /// Applies an update that came after the snapshot, whose bytes are these. One that is in already changes nothing.
    ///
    /// # Errors
    /// When it cannot be applied.
    pub fn apply(&mut self, update: &Update, bytes: &[u8], now: u64) -> Result<(), Refusal> {
        self.settle();
        self.view.apply(update, bytes, now).map(drop)
    }

    /// From here on the view holds what the vector says.
    fn settle(&mut self) {
        for (origin, mark) in std::mem::take(&mut self.vector).iter() {
            self.view.vector_mut().set(origin, mark);
        }
    }

    pub(super) fn into_view(mut self) -> View {
        self.settle();
        self.view
    }
}
