// SPDX-License-Identifier: GPL-3.0-or-later
//! The assembly of a snapshot from its rows.

use crate::history::refusal::Refusal;
use crate::history::row::Row;
use crate::history::update::Update;
use crate::history::vector::Vector;
use crate::settings::Settings;
use crate::state::allowance::Allowance;
use crate::state::merged::MergedCounts;
use bulkmark_filter::ParameterError;

/// A snapshot that is being received.
pub struct Assembly {
    merged: MergedCounts,
    vector: Vector,
    allowance: Allowance,
    /// The time at its beginning.
    now: u64,
}

impl Assembly {
    /// An empty assembly at the time `now`; `vector` is the snapshot's.
    #[must_use]
    pub fn new(settings: &Settings, vector: Vector, now: u64) -> Self {
        Self { merged: MergedCounts::new(settings), vector, allowance: Allowance::default(), now }
    }

    /// The snapshot's vector, with the updates applied since.
    #[must_use]
    pub fn vector(&self) -> &Vector {
        if self.merged.vector().is_empty() { &self.vector } else { self.merged.vector() }
    }

    /// Adds a row. Returns false if it does not fit its place. Takes time for each cell of the row, 2^23 at most.
    ///
    /// # Errors
    /// If its slice has another size than ours, or an unjustified one, if its place already has its rows, if there are too many windows, or
    /// if there is not enough memory.
    pub fn add(&mut self, row: &Row) -> Result<bool, ParameterError> {
        self.allowance.take(row)?;
        if let Some(origin) = row.client {
            return self.merged.layers_mut().add_row(origin, row, self.now, &mut self.allowance);
        }
        self.merged.admit(row.window, row.capacity, row.slice)?;
        self.merged.merge_chunk(row.window, row.capacity, row.slice, row.chunk, &row.bytes)
    }

    /// Applies an update that follows the snapshot, with its bytes. One that is included already changes nothing.
    ///
    /// # Errors
    /// If it cannot be applied.
    pub fn apply(&mut self, update: &Update, bytes: &[u8], now: u64) -> Result<(), Refusal> {
        self.settle();
        self.merged.apply(update, bytes, now).map(drop)
    }

    /// Sets the vector of the counts, once all rows are in.
    fn settle(&mut self) {
        for (origin, mark) in std::mem::take(&mut self.vector).iter() {
            self.merged.vector_mut().set(origin, mark);
        }
    }

    /// The counts from the rows.
    pub fn into_counts(mut self) -> MergedCounts {
        self.settle();
        self.merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::vector::{Chain, MAX_ORIGINS, Mark, Origin};
    use crate::history::window::{Calendar, FUTURE_WINDOWS, Window};
    use crate::state::layer::LayerWindow;
    use bulkmark_filter::Delta;

    const DAY: u64 = 86_400;
    const NOW: u64 = 17_000 * DAY;

    fn row(window: Window, client: u64, capacity: u32) -> Row {
        let bytes = Delta::from_changes(LayerWindow::blocks(capacity), [(7, 1)]).unwrap().encode();
        Row { window, capacity, slice: 0, chunk: 0, client: Some(Origin(client)), bytes }
    }

    /// A row of 70 bytes takes 143 kB if it brings a window, however few cells are in it. Of 7,000 such rows, with another window each, no
    /// more are taken than an honest server could have windows.
    #[test]
    fn rows_bring_few_windows() {
        let settings = Settings::default();
        let most = Calendar::new(&settings).most() as u64;
        let mut assembly = Assembly::new(&settings, Vector::new(), NOW);
        let mut add = |n: u64| assembly.add(&row(Window { start: n * DAY, length: DAY }, n / most, 1 << 24));
        let taken = (10_000..17_000).take_while(|&n| add(n) == Ok(true)).count() as u64;
        assert_eq!(taken, most);
        let memory = assembly.merged.layers().bounds_memory();
        assert!(memory < 20 << 20, "{memory}");
    }

    /// Of windows that have yet to begin, a snapshot brings as few as updates do.
    #[test]
    fn rows_bring_few_windows_of_a_wrong_clock() {
        let mut assembly = Assembly::new(&Settings::default(), Vector::new(), NOW);
        let mut add = |n: u64| {
            let window = Window { start: NOW + n * DAY, length: DAY };
            assembly.add(&row(window, n, 1_000_000)).map_err(|error| error.to_string())
        };
        assert!((0..=FUTURE_WINDOWS as u64).all(|n| add(n) == Ok(true)));
        let why = "the number of windows that have yet to begin is 5, expected 0 to 4";
        assert_eq!(add(5), Err(why.to_owned()));
    }

    /// Counts of other origins are added only if members can read the vector of both.
    #[test]
    fn a_sum_has_no_more_than_so_many_origins() {
        let (settings, mark) = (Settings::default(), Mark { version: 1, chain: Chain::default() });
        let with = |first: u64, origins: usize| {
            let mut merged = MergedCounts::new(&settings);
            (first..).take(origins).for_each(|n| merged.vector_mut().set(Origin(n), mark));
            merged
        };
        let sum = |second| with(0, MAX_ORIGINS - 10).check_addition(&with(1 << 32, second));
        assert_eq!(sum(10), Ok(()));
        assert!(sum(11).unwrap_err().to_string().contains("the number of origins is 65537"));
    }
}
