// SPDX-License-Identifier: GPL-3.0-or-later
//! The budget for the rows of a snapshot: cells by the received bytes, and a bounded number of rows for each place. A few kilobytes can be
//! the code of many megabytes of cells, and the same row could come forever.

use crate::history::row::Row;
use crate::history::update::{CELLS_PER_BYTE, MAX_CELLS};
use crate::history::vector::Origin;
use crate::history::window::Window;
use bulkmark_filter::ParameterError;
use std::collections::BTreeMap;

/// Cells of all limited clients in a snapshot that need no bytes: partners may make up signatures whose cells are coded in almost no bytes,
/// within their quotas. They take 64 MB.
const FREE: usize = 1 << 24;

/// Rows of a place that is not a client's: a server's own counts, and its merged ones.
const OF_ALL: u64 = 2;

/// The most rows with made-up cells that are skipped. They are in no layer, whose clients and windows are bounded.
const LEFT_OUT: u64 = 1 << 16;

/// The place of a row: window, capacity, slice, chunk, client.
type Place = (Window, u32, u32, u32, Option<Origin>);

/// The rest of the budget.
pub struct Allowance {
    free: usize,
    left_out: u64,
    came: BTreeMap<Place, u64>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { free: FREE, left_out: 0, came: BTreeMap::new() }
    }
}

impl Allowance {
    /// Records a row.
    ///
    /// # Errors
    /// If its place already has all its rows.
    pub fn take(&mut self, row: &Row) -> Result<(), ParameterError> {
        let place = (row.window, row.capacity, row.slice, row.chunk, row.client);
        let came = self.came.entry(place).or_default();
        *came += 1;
        let most = if row.client.is_some() { 1 } else { OF_ALL };
        ParameterError::check("the number of rows of one place", *came, 1, most)
    }

    /// Records a skipped row.
    ///
    /// # Errors
    /// If there are more than a server's clients can make up.
    pub fn leave_out(&mut self) -> Result<(), ParameterError> {
        self.left_out += 1;
        ParameterError::check("the number of rows with made-up cells", self.left_out, 0, LEFT_OUT)
    }

    /// The most cells that coded bytes of this length may have.
    pub fn most(&self, bytes: usize) -> usize {
        bytes.saturating_mul(CELLS_PER_BYTE).saturating_add(self.free).min(MAX_CELLS)
    }

    /// Records so many cells in so many bytes.
    pub fn spend(&mut self, bytes: usize, cells: usize) {
        self.free = self.free.saturating_sub(cells.saturating_sub(bytes.saturating_mul(CELLS_PER_BYTE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::chunks::layer_parts;
    use crate::history::vector::Vector;
    use crate::settings::Settings;
    use crate::state::assembly::Assembly;
    use crate::state::layer::LayerWindow;
    use bulkmark_filter::Delta;

    const CAPACITY: u32 = 958_698;

    fn row(start: u64, client: Option<Origin>, bytes: &[u8]) -> Row {
        let window = Window { start, length: 86_400 };
        Row { window, capacity: CAPACITY, slice: 0, chunk: 0, client, bytes: bytes.to_vec() }
    }

    /// Rows with very dense coding are taken until the free cells are used up; then such rows are skipped, and others are still taken.
    #[test]
    fn rows_of_coded_cells_have_a_budget() {
        let blocks = LayerWindow::blocks(CAPACITY);
        let dense = Delta::from_changes(blocks, (0..1 << 22).map(|cell| (cell, 3))).unwrap().encode();
        assert!(dense.len() < 40_000);
        let mut assembly = Assembly::new(&Settings::default(), Vector::new(), 86_400 * 20_000);
        for n in 0..100 {
            assert_eq!(assembly.add(&row(86_400 * 20_000, Some(Origin(n)), &dense)), Ok(true));
        }
        let cells: BTreeMap<_, _> = (0..1000).map(|n| (n * 4001 % (blocks * 128), 2)).collect();
        let few = Delta::from_changes(blocks, cells).unwrap().encode();
        assert_eq!(assembly.add(&row(86_400 * 20_000, Some(Origin(200)), &few)), Ok(true));
        let counts = assembly.into_counts();
        let taken: Vec<_> = counts.layers().iter().map(|(Origin(n), _)| n).collect();
        assert!((5..10).contains(&taken.len()), "{taken:?}");
        assert_eq!(taken.last(), Some(&200));
    }

    /// The number of rows is bounded, even if a server invents parts that no filter has, or clients whose rows are skipped.
    #[test]
    fn places_have_a_bound() {
        let blocks = LayerWindow::blocks(CAPACITY);
        let few = Delta::from_changes(blocks, [(7, 1)]).unwrap().encode();
        let mut assembly = Assembly::new(&Settings::default(), Vector::new(), 86_400 * 20_000);
        let part = |chunk| {
            let row = Row { chunk, ..row(86_400 * 20_000, Some(Origin(1)), &few) };
            Row::decode(&row.encode()).unwrap()
        };
        let taken = (0..10_000).take_while(|&chunk| assembly.add(&part(chunk)).is_ok()).count();
        assert_eq!(taken, layer_parts(blocks).len());
        // So many cells in so few bytes are skipped.
        let made_up = [0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
        let mut of_clients =
            (2..).map(|n| assembly.add(&row(86_400 * 20_000, Some(Origin(n)), &made_up))).take(100_000);
        assert_eq!(
            of_clients.find(Result::is_err).map(|end| end.unwrap_err().to_string()),
            Some("the number of rows with made-up cells is 65537, expected 0 to 65536".to_owned())
        );
    }

    /// A row that comes repeatedly does not belong to a snapshot.
    #[test]
    fn a_place_has_its_rows_once() {
        let mut assembly = Assembly::new(&Settings::default(), Vector::new(), 86_400 * 20_000);
        let blocks = LayerWindow::blocks(CAPACITY);
        let few = Delta::from_changes(blocks, [(7, 1)]).unwrap().encode();
        let of_client = row(86_400 * 20_000, Some(Origin(1)), &few);
        assert_eq!(assembly.add(&of_client), Ok(true));
        assert!(assembly.add(&of_client).is_err());
        let of_all = row(86_400 * 20_000, None, &vec![0x11; 640 * 64]);
        assert_eq!([(); 2].map(|()| assembly.add(&of_all)), [Ok(true), Ok(true)]);
        assert!(assembly.add(&of_all).is_err());
    }
}
