// SPDX-License-Identifier: GPL-3.0-or-later
//! Many filters, on all cores: at equal memory, and at an equal number of cells.

use super::layout::Layout;
use super::measure::{Measured, blocks_within, measure};
use super::sample::History;
use bulkmark_filter::ParameterError;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bits for each element, cells and split storage together, at which layouts are compared.
pub const BITS: [f64; 4] = [32.0, 40.0, 44.0, 48.0];

/// Cells for each element at which filters of one layout are compared.
pub const RATIOS: [f64; 9] = [4.0, 5.0, 6.0, 7.0, 7.75, 8.75, 10.0, 12.0, 16.0];

/// The size of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// By bits of all memory for each element.
    Bits(f64),
    /// By cells for each element.
    Cells(f64),
}

/// One filter with its measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its layout.
    pub layout: Layout,
    /// The intended size.
    pub size: Size,
    /// `None` when split storage alone needs more memory than that.
    pub measured: Option<Measured>,
}

/// Measures a filter of each layout in each size, with `unseen` elements that were never added; calls `progress` after each. The
/// rows are by size, then by layout.
///
/// # Errors
/// When the machine lacks the memory.
pub fn compare(
    layouts: &[Layout],
    sizes: &[Size],
    history: &History,
    unseen: u64,
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Row>, ParameterError> {
    let one = |i: usize| {
        let (size, layout) = (sizes[i / layouts.len()], layouts[i % layouts.len()]);
        let blocks = match size {
            Size::Bits(bits) => blocks_within(layout, bits, history),
            Size::Cells(cells) => Some(blocks_of(layout, cells, history)),
        };
        let measured = blocks.map(|blocks| measure(layout, blocks, history, unseen)).transpose()?;
        progress();
        Ok(Row { layout, size, measured })
    };
    in_parallel(sizes.len() * layouts.len(), one).into_iter().collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1")]
fn blocks_of(layout: Layout, cells: f64, history: &History) -> usize {
    (cells * history.elements() as f64 / layout.cells_per_block() as f64).ceil().max(1.0) as usize
}

/// Does `n` pieces of work on all cores and returns their results in order.
fn in_parallel<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..n).map(|_| None).collect::<Vec<_>>());
    let thread = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                return;
            }
            let result = work(i);
            results.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(result);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(thread))));
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
