// SPDX-License-Identifier: GPL-3.0-or-later
//! The merged counts of other writers, and how far each of them is in it.

use super::generations::{CHUNK_BLOCKS, Generation, blocks_of};
use super::shares::Share;
use super::update::{MAX_SLICES, Part, Refusal, Update};
use super::vector::Vector;
use super::window::{Calendar, Window};
use crate::filter::{Counting, Merged, ParameterError, Refined, Scaling};
use crate::signature::Signature;
use std::ops::Range;

/// Windows beside the live ones that a view may hold: those that a wrong clock somewhere brings.
const STRAY_WINDOWS: usize = 4;

/// Whether an update changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is in now.
    New,
    /// It was in before.
    Known,
}

/// The counts of one window, over all origins.
pub(super) struct Layer {
    pub(super) window: Window,
    /// Signatures that the first slice was made for.
    pub(super) capacity: u32,
    pub(super) slices: Vec<Merged>,
    /// For each slice and chunk, whether it changed since it was written.
    pub(super) dirty: Vec<Vec<bool>>,
}

impl Layer {
    const fn new(window: Window, capacity: u32) -> Self {
        Self { window, capacity, slices: Vec::new(), dirty: Vec::new() }
    }

    fn count(&self, signature: Signature) -> u32 {
        let counts = self.slices.iter().map(|slice| slice.count(&slice.probe(signature.bits())));
        counts.fold(0, u32::saturating_add)
    }

    /// Makes the slices up to this one.
    fn reach(&mut self, slice: u32) -> Result<(), ParameterError> {
        ParameterError::check("slice", slice.into(), 0, MAX_SLICES.into())?;
        for next in self.slices.len()..=slice as usize {
            let (_, blocks) =
                Scaling::<Refined>::shape(self.capacity, u32::try_from(next).unwrap_or(u32::MAX));
            self.slices.push(Merged::new(blocks)?);
            self.dirty.push(vec![false; blocks.div_ceil(CHUNK_BLOCKS)]);
        }
        Ok(())
    }
}

/// Cells that were merged, and always with them the vector that says of what.
pub(super) struct View {
    calendar: Calendar,
    layers: Vec<Layer>,
    vector: Vector,
}

impl View {
    pub(super) const fn new(calendar: Calendar) -> Self {
        Self { calendar, layers: Vec::new(), vector: Vector::new() }
    }

    pub(super) const fn vector(&self) -> &Vector {
        &self.vector
    }

    pub(super) fn vector_mut(&mut self) -> &mut Vector {
        &mut self.vector
    }

    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    pub(super) fn layers_mut(&mut self) -> &mut [Layer] {
        &mut self.layers
    }

    /// How often `signature` was reported to all origins in the windows that count at the time `now`.
    pub(super) fn count(&self, signature: Signature, now: u64) -> u32 {
        let live = self.layers.iter().filter(|layer| self.calendar.is_live(layer.window, now));
        live.map(|layer| layer.count(signature)).fold(0, u32::saturating_add)
    }

    /// The same, for each window in which it was counted.
    pub(super) fn count_by_window(&self, signature: Signature, now: u64) -> Vec<Share> {
        let live = self.layers.iter().filter(|layer| self.calendar.is_live(layer.window, now));
        let shares = live.map(|layer| Share { window: layer.window.start, count: layer.count(signature) });
        shares.filter(|share| share.count > 0).collect()
    }

    /// Applies an update whose bytes are these, if it is the next of its origin. One that is in already changes nothing.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub(super) fn apply(&mut self, update: &Update, bytes: &[u8], now: u64) -> Result<Applied, Refusal> {
        let (origin, version) = (update.origin, update.version);
        let known = self.vector.get(origin);
        if version <= known.version {
            return Ok(Applied::Known);
        }
        if version > known.version + 1 {
            return Err(Refusal::Gap { origin, have: known.version, version });
        }
        if update.before != known.chain {
            return Err(Refusal::Fork { origin, version });
        }
        let parameter = |error| Refusal::Parameter { origin, error };
        for part in &update.parts {
            let Some(at) = self.layer_for(part, now).map_err(|why| match why {
                Stray::Clock(why) => Refusal::Clock { origin, version, window: part.window.to_string(), why },
                Stray::Parameter(error) => parameter(error),
            })?
            else {
                continue;
            };
            self.layers[at].reach(part.slice).map_err(parameter)?;
        }
        for part in &update.parts {
            let Some(layer) = self.layers.iter_mut().find(|layer| layer.window == part.window) else {
                continue;
            };
            let slice = part.slice as usize;
            layer.slices[slice].apply(&part.delta).map_err(parameter)?;
            for (cell, _) in part.delta.changes() {
                layer.dirty[slice][cell / crate::filter::CELLS_PER_BLOCK / CHUNK_BLOCKS] = true;
            }
        }
        self.vector.set(origin, update.mark(bytes));
        Ok(Applied::New)
    }

    /// The layer of a part, which is made when it is missing; none when its window is over.
    fn layer_for(&mut self, part: &Part, now: u64) -> Result<Option<usize>, Stray> {
        ParameterError::same("window", self.calendar.length(), part.window.length)
            .map_err(Stray::Parameter)?;
        if self.calendar.is_over(part.window, now) {
            return Ok(None);
        }
        if let Some(at) = self.layers.iter().position(|layer| layer.window == part.window) {
            let ours = self.layers[at].capacity;
            ParameterError::same("capacity", ours.into(), part.capacity.into()).map_err(Stray::Parameter)?;
            return Ok(Some(at));
        }
        if self.layers.len() >= self.calendar.live() + STRAY_WINDOWS {
            return Err(Stray::Clock("and there are too many windows already"));
        }
        self.layers.push(Layer::new(part.window, part.capacity));
        Ok(Some(self.layers.len() - 1))
    }

    /// Adds a chunk of cells of a window's slice, as [`Merged::bytes`] gives them. False when it does not fit.
    pub(super) fn merge_chunk(
        &mut self,
        window: Window,
        capacity: u32,
        slice: u32,
        chunk: u32,
        bytes: &[u8],
    ) -> Result<bool, ParameterError> {
        let at = self.layers.iter().position(|layer| layer.window == window).unwrap_or_else(|| {
            self.layers.push(Layer::new(window, capacity));
            self.layers.len() - 1
        });
        let layer = &mut self.layers[at];
        ParameterError::same("capacity", layer.capacity.into(), capacity.into())?;
        layer.reach(slice)?;
        let target = &mut layer.slices[slice as usize];
        let range: Range<usize> = blocks_of(chunk as usize, target.blocks());
        let fits = target.merge_bytes(range, bytes);
        if fits {
            layer.dirty[slice as usize][chunk as usize] = true;
        }
        Ok(fits)
    }

    /// Adds all that a generation holds.
    ///
    /// # Errors
    /// When its filters are not of the size of ours, or there is no memory.
    pub(super) fn merge_generation(&mut self, generation: &Generation) -> Result<(), ParameterError> {
        let slices = generation.row.slices();
        let Some(capacity) = slices.first().map(|slice| slice.capacity) else { return Ok(()) };
        for (number, slice) in (0..).zip(slices) {
            let bytes = |range| slice.filter.bytes(range);
            self.merge_slice(generation.window, capacity, number, slice.filter.blocks(), bytes)?;
        }
        Ok(())
    }

    /// Adds a slice of so many blocks, whose `bytes` are as [`Merged::bytes`] gives them.
    ///
    /// # Errors
    /// When it is not of the size of ours, or there is no memory.
    pub(super) fn merge_slice(
        &mut self,
        window: Window,
        capacity: u32,
        number: u32,
        blocks: usize,
        bytes: impl Fn(Range<usize>) -> Vec<u8>,
    ) -> Result<(), ParameterError> {
        for (chunk, at) in (0..).zip(0..blocks.div_ceil(CHUNK_BLOCKS)) {
            // A slice of this number and capacity has this shape, so the bytes fit.
            self.merge_chunk(window, capacity, number, chunk, &bytes(blocks_of(at, blocks)))?;
        }
        Ok(())
    }

    /// Takes out the windows that are over, and returns them.
    pub(super) fn take_expired(&mut self, now: u64) -> Vec<Window> {
        let calendar = self.calendar;
        self.layers
            .extract_if(.., |layer| calendar.is_over(layer.window, now))
            .map(|layer| layer.window)
            .collect()
    }
}

/// Why a part has no place.
enum Stray {
    Clock(&'static str),
    Parameter(ParameterError),
}
