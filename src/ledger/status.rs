// SPDX-License-Identifier: GPL-3.0-or-later
//! What can be said about a ledger.

use crate::ledger::history::vector::Vector;
use crate::ledger::settings::Role;
use crate::ledger::state::book::Book;
use crate::ledger::state::merged::MergedCounts;
use bulkmark_filter::Gauge;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who counted what is in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// This ledger itself.
    Own,
    /// Others, merged.
    Others,
}

/// One slice of one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SliceStatus {
    /// Beginning of its window, in seconds since 1970.
    pub window: u64,
    /// The number of the slice in its window.
    pub slice: u32,
    /// Whose counts these are.
    pub counted: Counted,
    /// Signatures that it is made for.
    pub capacity: u32,
    /// Signatures that were new to it; unknown for merged ones.
    pub signatures: Option<u64>,
    /// Bytes of memory.
    pub memory: usize,
    /// The share of cells that are not zero; with an estimate only.
    pub fill: Option<f64>,
    /// The share of cells that are saturated; with an estimate only.
    pub saturated: Option<f64>,
    /// The chance that a strange signature is bulk in it; with an estimate only.
    pub false_bulk: Option<f64>,
}

/// A ledger at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The server's own origin; none for a milter.
    pub origin: Option<String>,
    /// How far each origin is counted.
    #[serde(skip)]
    pub vector: Vector,
    /// All slices, windows in order.
    pub slices: Vec<SliceStatus>,
    /// Local reports that the merged counts do not show yet.
    pub spool: usize,
    /// When the oldest of them that no server acknowledged was made, in seconds since 1970.
    pub spool_oldest: Option<u64>,
}

impl Status {
    /// How far each origin is counted, by its name.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<String, u64> {
        self.vector.iter().map(|(origin, mark)| (origin.to_string(), mark.version)).collect()
    }

    pub(crate) fn of(book: &Book, threshold: Option<u32>) -> Self {
        let mut slices = Vec::new();
        for generation in book.own.generations.iter() {
            for (number, slice) in (0..).zip(generation.row.slices()) {
                let gauge = threshold.map(|t| slice.filter.gauge(t));
                slices.push(SliceStatus {
                    window: generation.window.start,
                    slice: number,
                    counted: Counted::Own,
                    capacity: slice.capacity,
                    signatures: Some(slice.distinct),
                    memory: slice.filter.memory(),
                    fill: gauge.map(|gauge: Gauge| gauge.fill),
                    saturated: gauge.map(|gauge| gauge.saturated),
                    false_bulk: gauge.map(|gauge| gauge.false_bulk),
                });
            }
        }
        slices.extend(of_layers(&book.others, threshold));
        slices.sort_by_key(|slice| (slice.window, slice.slice));
        Self {
            origin: (book.role == Role::Server).then(|| book.own.origin().to_string()),
            vector: book.vector(),
            slices,
            spool: book.spool.len(),
            spool_oldest: book.spool.oldest(),
        }
    }

    /// Of merged counts that are in no ledger here.
    pub(crate) fn of_view(view: &MergedCounts, vector: Vector, threshold: u32) -> Self {
        let mut slices: Vec<_> = of_layers(view, Some(threshold)).collect();
        slices.sort_by_key(|slice| (slice.window, slice.slice));
        Self { origin: None, vector, slices, spool: 0, spool_oldest: None }
    }
}

fn of_layers(view: &MergedCounts, threshold: Option<u32>) -> impl Iterator<Item = SliceStatus> {
    view.layers().iter().flat_map(move |layer| {
        (0..).zip(&layer.slices).map(move |(number, slice)| {
            let gauge = threshold.map(|t| slice.gauge(t));
            SliceStatus {
                window: layer.window.start,
                slice: number,
                counted: Counted::Others,
                capacity: layer.capacity,
                signatures: None,
                memory: slice.memory(),
                fill: gauge.map(|gauge| gauge.fill),
                saturated: gauge.map(|gauge| gauge.saturated),
                false_bulk: gauge.map(|gauge| gauge.false_bulk),
            }
        })
    })
}
