// SPDX-License-Identifier: GPL-3.0-or-later
//! What can be said about a ledger.

use crate::ledger::history::vector::Vector;
use crate::ledger::settings::Role;
use crate::ledger::state::merged::MergedCounts;
use crate::ledger::state::roles::State;
use crate::ledger::state::spool::Spool;
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

    pub(crate) fn of(state: &State, threshold: Option<u32>) -> Self {
        let mut slices = Vec::new();
        for generation in state.counts().local.generations.iter() {
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
        slices.extend(of_merged(&state.counts().merged, threshold));
        slices.sort_by_key(|slice| (slice.window, slice.slice));
        Self {
            origin: (state.role() == Role::Server).then(|| state.counts().local.origin().to_string()),
            vector: state.vector(),
            slices,
            spool: state.spool().map_or(0, Spool::len),
            spool_oldest: state.spool().and_then(Spool::oldest),
        }
    }

    /// Of merged counts that are in no ledger here.
    pub(crate) fn of_counts(merged: &MergedCounts, vector: Vector, threshold: u32) -> Self {
        let mut slices: Vec<_> = of_merged(merged, Some(threshold)).collect();
        slices.sort_by_key(|slice| (slice.window, slice.slice));
        Self { origin: None, vector, slices, spool: 0, spool_oldest: None }
    }
}

fn of_merged(merged: &MergedCounts, threshold: Option<u32>) -> impl Iterator<Item = SliceStatus> {
    merged.windows().iter().flat_map(move |window| {
        (0..).zip(&window.slices).map(move |(number, slice)| {
            let gauge = threshold.map(|t| slice.gauge(t));
            SliceStatus {
                window: window.window.start,
                slice: number,
                counted: Counted::Others,
                capacity: window.capacity,
                signatures: None,
                memory: slice.memory(),
                fill: gauge.map(|gauge| gauge.fill),
                saturated: gauge.map(|gauge| gauge.saturated),
                false_bulk: gauge.map(|gauge| gauge.false_bulk),
            }
        })
    })
}
