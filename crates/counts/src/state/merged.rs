// SPDX-License-Identifier: GPL-3.0-or-later
//! The merged counts of other writers, with their version vector.

use crate::history::chunks::{CHUNK_BLOCKS, blocks_of};
use crate::history::refusal::Refusal;
use crate::history::update::{Part, Scope, Update, most_capacity};
use crate::history::vector::Vector;
use crate::history::window::{Calendar, MAX_SIZES, NotAdmitted, Window};
use crate::settings::Settings;
use crate::state::generations::Generation;
use crate::state::layer::Layer;
use crate::state::layers::Layers;
use crate::state::merged_window::MergedWindow;
use crate::state::shares::{Share, add_up};
use bulkmark_filter::{CELLS_PER_BLOCK, Counting, Merged, ParameterError, Refined, Scaling};
use bulkmark_types::Signature;
use std::collections::BTreeSet;
use std::ops::Range;

/// A slice with more blocks (64 MB) is made only if the previous one is used. An update that begins such a slice cannot have filled the
/// previous one alone.
const UNPROVEN_BLOCKS: usize = 1 << 20;

/// The lowest share of nonzero cells in a used slice. At its capacity it is at least three times that.
const USED: f64 = 1.0 / 16.0;

/// Whether an update changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is now included.
    New,
    /// It was included before.
    Known,
}

/// Merged cells, and the version vector that always belongs to them.
pub struct MergedCounts {
    calendar: Calendar,
    capacity: u32,
    windows: Vec<MergedWindow>,
    /// The layers of other servers' limited clients, which are kept separate.
    layers: Layers,
    vector: Vector,
}

impl MergedCounts {
    /// Empty counts.
    pub fn new(settings: &Settings) -> Self {
        let (calendar, capacity) = (Calendar::new(settings), settings.capacity.get());
        Self { calendar, capacity, windows: Vec::new(), layers: Layers::new(settings), vector: Vector::new() }
    }

    /// The version up to which each origin is counted.
    pub const fn vector(&self) -> &Vector {
        &self.vector
    }

    /// The vector, to change together with the cells.
    pub fn vector_mut(&mut self) -> &mut Vector {
        &mut self.vector
    }

    /// The layers of others' limited clients.
    pub const fn layers(&self) -> &Layers {
        &self.layers
    }

    /// The layers, to change together with the vector.
    pub const fn layers_mut(&mut self) -> &mut Layers {
        &mut self.layers
    }

    /// The cells by window; filters of different sizes are separate.
    pub fn windows(&self) -> &[MergedWindow] {
        &self.windows
    }

    /// The windows, to mark their chunks as written.
    pub fn windows_mut(&mut self) -> &mut [MergedWindow] {
        &mut self.windows
    }

    /// The filters of a window with this size.
    pub fn of_size(&self, window: Window, capacity: u32) -> Option<&MergedWindow> {
        self.windows.iter().find(|merged| merged.is(window, capacity))
    }

    /// The number of sizes of a window's filters.
    fn sizes(&self, window: Window) -> usize {
        self.windows.iter().filter(|merged| merged.window == window).count()
    }

    /// Makes place for filters from the file, with their number. Returns false if the number or the size is taken.
    pub fn restore(&mut self, window: Window, capacity: u32, size: u32) -> bool {
        let mut known = self.windows.iter().filter(|merged| merged.window == window);
        match known.find(|merged| merged.size == size || merged.capacity == capacity) {
            Some(merged) => merged.size == size && merged.capacity == capacity,
            None => {
                self.windows.push(MergedWindow::new(window, capacity, size));
                true
            }
        }
    }

    /// Makes place for filters of a new size in the window.
    fn begin(&mut self, window: Window, capacity: u32) -> usize {
        let taken =
            |size: &u32| self.windows.iter().any(|merged| merged.window == window && merged.size == *size);
        let size = (0..).find(|size| !taken(size)).unwrap_or_default();
        self.windows.push(MergedWindow::new(window, capacity, size));
        self.windows.len() - 1
    }

    /// Whether there are user reports.
    pub fn has_user_reports(&self) -> bool {
        self.windows.iter().any(|window| window.window.is_user_report()) || self.layers.has_user_reports()
    }

    /// The number of reports of `signature` at all origins, in the windows that count at the time `now`.
    pub fn count(&self, signature: Signature, now: u64) -> u32 {
        self.layers.prefetch(signature);
        self.count_of_all(signature, now).saturating_add(self.layers.count(signature, now))
    }

    /// An upper bound of it, with one lookup for all limited clients.
    pub fn bound(&self, signature: Signature, now: u64) -> u32 {
        self.count_of_all(signature, now).saturating_add(self.layers.bound(signature, now))
    }

    /// The count without the layers.
    fn count_of_all(&self, signature: Signature, now: u64) -> u32 {
        let live = self.windows.iter().filter(|w| self.calendar.counts(w.window, signature, now));
        live.map(|w| w.count(signature)).fold(0, u32::saturating_add)
    }

    /// Likewise, for each window in which it was counted.
    pub fn count_by_window(&self, signature: Signature, now: u64) -> Vec<Share> {
        let live = self.windows.iter().filter(|w| self.calendar.counts(w.window, signature, now));
        let shares = live.map(|window| Share { window: window.window.start, count: window.count(signature) });
        add_up(shares.chain(self.layers.count_by_window(signature, now)))
    }

    /// Applies an update with its bytes, if it is the next of its origin. An update that is included already changes nothing.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub fn apply(&mut self, update: &Update, bytes: &[u8], now: u64) -> Result<Applied, Refusal> {
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
        if known.version == 0 {
            self.vector.check_room(1).map_err(|error| Refusal::Parameter { origin, error })?;
        }
        match update.scope {
            Scope::Community => self.apply_parts(update, now)?,
            Scope::Client => self.layers.apply(update, now)?,
            Scope::Withdrawn => self.layers.withdraw(origin),
        }
        self.vector.set(origin, update.mark(bytes));
        Ok(Applied::New)
    }

    /// Adds the parts of an update to the common cells.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub fn apply_parts(&mut self, update: &Update, now: u64) -> Result<(), Refusal> {
        let before: Vec<usize> = self.windows.iter().map(|w| w.slices.len()).collect();
        if let Err(refusal) = self.make_room(update, now) {
            self.windows.truncate(before.len());
            self.windows.iter_mut().zip(before).for_each(|(window, slices)| window.cut_back(slices));
            return Err(refusal);
        }
        for part in &update.parts {
            let Some(window) = self.windows.iter_mut().find(|w| w.is(part.window, part.capacity)) else {
                continue;
            };
            let slice = part.slice as usize;
            // The slice has the size in the part, and its delta was read for that size.
            let parameter = |error| Refusal::Parameter { origin: update.origin, error };
            window.slices[slice].apply(&part.delta).map_err(parameter)?;
            for (cell, _) in part.delta.changes() {
                window.dirty[slice][cell / CELLS_PER_BLOCK / CHUNK_BLOCKS] = true;
            }
        }
        Ok(())
    }

    /// Makes the windows and slices for the parts of an update.
    fn make_room(&mut self, update: &Update, now: u64) -> Result<(), Refusal> {
        let (origin, version) = (update.origin, update.version);
        let parameter = |error| Refusal::Parameter { origin, error };
        for part in &update.parts {
            let at = self.window_for(part, now).map_err(|why| match why {
                NotAdmitted::Clock(why) => {
                    Refusal::Clock { origin, version, window: part.window.to_string(), why }
                }
                NotAdmitted::Parameter(error) => parameter(error),
            })?;
            if let Some(at) = at {
                self.admit(part.window, part.capacity, part.slice).map_err(parameter)?;
                self.windows[at].reach(part.slice).map_err(parameter)?;
            }
        }
        Ok(())
    }

    /// The index of a part's window, made if it is missing; `None` if the window is over.
    fn window_for(&mut self, part: &Part, now: u64) -> Result<Option<usize>, NotAdmitted> {
        self.calendar.check_length(part.window.length).map_err(NotAdmitted::Parameter)?;
        if self.calendar.is_over(part.window, now) {
            return Ok(None);
        }
        if let Some(at) = self.windows.iter().position(|w| w.is(part.window, part.capacity)) {
            return Ok(Some(at));
        }
        let known: BTreeSet<Window> = self.windows.iter().map(|w| w.window).collect();
        if !known.contains(&part.window) {
            self.calendar.admit(part.window, known.into_iter(), now).map_err(NotAdmitted::Clock)?;
        }
        self.admit(part.window, part.capacity, part.slice).map_err(NotAdmitted::Parameter)?;
        Ok(Some(self.begin(part.window, part.capacity)))
    }

    /// Checks whether others may add cells to this slice. A filter has the size of its capacity and number, however few bytes claim these;
    /// so there must be reason to believe them before it is allocated.
    ///
    /// # Errors
    /// If there is no reason.
    pub fn admit(&self, window: Window, capacity: u32, slice: u32) -> Result<(), ParameterError> {
        let slices = self.of_size(window, capacity).map(|window| &window.slices);
        let known = slices.map_or(0, Vec::len);
        if (slice as usize) < known {
            return Ok(());
        }
        if slices.is_none() {
            let most = self.calendar.most() as u64;
            ParameterError::check("the number of windows", self.windows.len() as u64 + 1, 0, most)?;
            let sizes = self.sizes(window) as u64 + 1;
            ParameterError::check("the number of capacities in a window", sizes, 0, MAX_SIZES as u64)?;
        }
        ParameterError::check("capacity", capacity.into(), 1, most_capacity(self.capacity).into())?;
        let (_, blocks) = Scaling::<Refined>::shape(capacity, slice);
        let is_used = |before: &Merged| before.gauge(1).fill >= USED;
        let proven = blocks <= UNPROVEN_BLOCKS || slices.and_then(|all| all.last()).is_none_or(is_used);
        let next = if proven { known } else { known - 1 };
        ParameterError::check("slice", slice.into(), 0, next as u64)
    }

    /// Adds a chunk of cells of a window's slice, in the form of [`Merged::bytes`]. Returns false if it does not fit.
    pub fn merge_chunk(
        &mut self,
        window: Window,
        capacity: u32,
        slice: u32,
        chunk: u32,
        bytes: &[u8],
    ) -> Result<bool, ParameterError> {
        let at = self.windows.iter().position(|w| w.is(window, capacity));
        let at = at.unwrap_or_else(|| self.begin(window, capacity));
        let merged = &mut self.windows[at];
        merged.reach(slice)?;
        let target = &mut merged.slices[slice as usize];
        let range: Range<usize> = blocks_of(chunk as usize, target.blocks());
        let fits = target.merge_bytes(range, bytes);
        if fits {
            merged.dirty[slice as usize][chunk as usize] = true;
        }
        Ok(fits)
    }

    /// Adds all counts of a generation.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn merge_generation(&mut self, generation: &Generation) -> Result<(), ParameterError> {
        let slices = generation.row.slices();
        let Some(capacity) = slices.first().map(|slice| slice.capacity) else { return Ok(()) };
        for (number, slice) in (0..).zip(slices) {
            let bytes = |range| slice.filter.bytes(range);
            self.merge_slice(generation.window, capacity, number, slice.filter.blocks(), bytes)?;
        }
        Ok(())
    }

    /// Adds a slice of so many blocks; `bytes` returns them in the form of [`Merged::bytes`].
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn merge_slice(
        &mut self,
        window: Window,
        capacity: u32,
        number: u32,
        blocks: usize,
        bytes: impl Fn(Range<usize>) -> Vec<u8>,
    ) -> Result<(), ParameterError> {
        for (chunk, at) in (0..).zip(0..blocks.div_ceil(CHUNK_BLOCKS)) {
            let cells = bytes(blocks_of(at, blocks));
            // An empty filter adds nothing: otherwise it would exist here and nowhere else.
            if cells.iter().any(|&byte| byte != 0) {
                // A slice of this number and capacity has this shape, so the bytes fit.
                self.merge_chunk(window, capacity, number, chunk, &cells)?;
            }
        }
        Ok(())
    }

    /// Checks whether all counts of another, none of whose origins is included here, can be added.
    ///
    /// # Errors
    /// If there would be too many origins, clients or windows, or filters of too many sizes in a window.
    pub fn check_addition(&self, other: &Self) -> Result<(), ParameterError> {
        self.vector.check_room(other.vector.len())?;
        self.layers.check_addition(&other.layers)?;
        for theirs in &other.windows {
            let window = theirs.window;
            let new = other
                .windows
                .iter()
                .filter(|w| w.window == window && self.of_size(window, w.capacity).is_none());
            let sizes = (self.sizes(window) + new.count()) as u64;
            ParameterError::check("the number of capacities in a window", sizes, 0, MAX_SIZES as u64)?;
        }
        Ok(())
    }

    /// Adds all counts of another, none of whose origins is included here, and its vector.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn add_all(&mut self, other: &Self) -> Result<(), ParameterError> {
        for theirs in &other.windows {
            for (number, slice) in (0..).zip(&theirs.slices) {
                let bytes = |range| slice.bytes(range);
                self.merge_slice(theirs.window, theirs.capacity, number, slice.blocks(), bytes)?;
            }
        }
        self.layers.add_all(&other.layers)?;
        for (origin, mark) in other.vector.iter().filter(|(_, mark)| mark.version > 0) {
            self.vector.set(origin, mark);
        }
        Ok(())
    }

    /// Marks everything as not written: a new file has none of it.
    pub fn mark_dirty(&mut self) {
        self.windows.iter_mut().for_each(MergedWindow::mark_dirty);
        self.layers.iter_mut().for_each(Layer::mark_dirty);
    }

    /// Removes all windows that are over, and returns them. The time must be certain.
    pub fn take_over(&mut self, now: u64) -> Vec<Window> {
        let calendar = self.calendar;
        self.layers.iter_mut().for_each(|layer| layer.take_over(calendar, now));
        self.windows.extract_if(.., |w| calendar.is_over(w.window, now)).map(|w| w.window).collect()
    }

    /// Removes windows that can be dropped, and returns them.
    pub fn take_expired(&mut self, now: u64) -> Vec<Window> {
        self.layers.take_expired(now);
        let windows: BTreeSet<Window> = self.windows.iter().map(|w| w.window).collect();
        let over = self.calendar.over(windows.into_iter(), now);
        self.windows.retain(|window| !over.contains(&window.window));
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::vector::{Mark, Origin};
    use crate::history::window::FUTURE_WINDOWS;
    use crate::state::generations::Generations;
    use crate::state::local::Local;

    const DAY: u64 = 86_400;
    const NOW: u64 = 20_000 * DAY + 1000;

    fn signature() -> Signature {
        Signature::from_bytes([7; 16])
    }

    /// The history of an origin that counts once in each of these windows, one update after another.
    fn history(origin: u64, windows: &[Window]) -> Vec<(Update, Vec<u8>)> {
        let mut own =
            Local::recording(Generations::new(&Settings::default()), Origin(origin), Mark::default());
        let mut cut = |window: &Window| {
            own.generations.add(*window, 0, signature(), 1).unwrap();
            own.cut().unwrap()
        };
        windows.iter().map(&mut cut).collect()
    }

    fn days(days: impl Iterator<Item = u64>) -> Vec<Window> {
        days.map(|day| Window { start: (20_000 + day) * DAY, length: DAY }).collect()
    }

    /// A server whose clock is ahead adds windows in the future: a few have a place, and windows that count always have one.
    #[test]
    fn windows_of_a_wrong_clock_keep_no_other_out() {
        let mut merged = MergedCounts::new(&Settings::default());
        let strays = history(1, &days(2..7));
        let taken = strays.iter().filter(|(update, bytes)| merged.apply(update, bytes, NOW).is_ok()).count();
        assert_eq!(taken, FUTURE_WINDOWS);
        for (update, bytes) in history(2, &days(0..1)) {
            assert_eq!(merged.apply(&update, &bytes, NOW), Ok(Applied::New));
        }
        assert_eq!(merged.count(signature(), NOW), 1, "those that have yet to begin do not count");
        // In time, the refused ones are accepted, and all of them count.
        for (update, bytes) in &strays {
            merged.apply(update, bytes, NOW + 6 * DAY).unwrap();
        }
        assert_eq!(merged.count(signature(), NOW + 6 * DAY), 6);
        let odd = history(3, &[Window { start: NOW, length: DAY }]);
        let refusal = merged.apply(&odd[0].0, &odd[0].1, NOW).unwrap_err().to_string();
        assert!(
            refusal.contains("which does not begin at a window boundary; is a clock wrong?"),
            "{refusal}"
        );
    }

    /// If one of its parts is refused, an update leaves nothing of the others, which would take memory and keep windows out.
    #[test]
    fn a_refused_update_leaves_nothing() {
        let mut merged = MergedCounts::new(&Settings::default());
        let (good, bad) = (&days(0..1)[0], Window { start: NOW, length: DAY });
        let mut own = Local::recording(Generations::new(&Settings::default()), Origin(1), Mark::default());
        own.generations.add(*good, 0, signature(), 1).unwrap();
        own.generations.add(bad, 1, signature(), 1).unwrap();
        let (update, bytes) = own.cut().unwrap();
        assert_eq!(update.parts.len(), 2);
        assert!(matches!(merged.apply(&update, &bytes, NOW), Err(Refusal::Clock { .. })));
        assert!(merged.windows().is_empty());
    }

    #[test]
    fn a_clock_that_jumps_ahead_loses_nothing() {
        let mut merged = MergedCounts::new(&Settings::default());
        for (update, bytes) in history(1, &days(0..7)) {
            merged.apply(&update, &bytes, NOW + 6 * DAY).unwrap();
        }
        assert!(merged.take_expired(NOW + 10_000 * DAY).is_empty());
        assert_eq!(merged.count(signature(), NOW + 6 * DAY), 7);
        for (update, bytes) in &history(2, &days(7..9)) {
            merged.apply(update, bytes, NOW + 8 * DAY).unwrap();
        }
        assert_eq!(merged.take_expired(NOW + 8 * DAY), days(0..1));
        assert_eq!(merged.count(signature(), NOW + 8 * DAY), 7);
    }

    /// A few bytes that claim large filters are refused before these are allocated.
    #[test]
    fn claims_without_reason_are_refused() {
        let mut merged = MergedCounts::new(&Settings::default());
        let window = Window { start: NOW - 1000, length: DAY };
        let admitted = |capacity, slice| merged.admit(window, capacity, slice).map_err(|e| e.to_string());
        assert_eq!(admitted(1_000_000, 0), Ok(()));
        assert_eq!(admitted(u32::MAX, 0), Err("capacity is 4294967295, expected 1 to 16777216".to_owned()));
        assert_eq!(admitted(1_000_000, 1), Err("slice is 1, expected 0 to 0".to_owned()));
        let mut slices = 0;
        for (slice, chunk) in
            (0..crate::history::update::MAX_SLICES).map(|slice| (slice, [0; CHUNK_BLOCKS * 64]))
        {
            if merged.admit(window, 1_000_000, slice).is_err() {
                break;
            }
            assert!(merged.merge_chunk(window, 1_000_000, slice, 0, &chunk).unwrap());
            slices += 1;
        }
        assert_eq!(slices, 4, "empty slices are followed by larger ones up to 64 MB only");
    }
}
