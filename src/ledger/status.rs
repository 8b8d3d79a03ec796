// SPDX-License-Identifier: GPL-3.0-or-later
//! What can be said about a ledger.

use super::Role;
use super::book::Book;
use super::vector::{Origin, Vector};
use crate::filter::Gauge;
use serde::Serialize;

/// One slice of one window.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SliceStatus {
    /// Beginning of its window, in seconds since 1970.
    pub window: u64,
    /// The number of the slice in its window.
    pub slice: u32,
    /// "own" for what was counted here, "others" for what came from other servers.
    pub of: &'static str,
    /// Signatures that it is made for.
    pub capacity: u32,
    /// Signatures that were new to it; unknown for merged ones.
    pub signatures: Option<u64>,
    /// Bytes of memory.
    pub memory: usize,
    /// The share of cells that are not zero; with an estimate only.
    pub fill: Option<f64>,
    /// The chance that a strange signature is bulk in it; with an estimate only.
    pub false_bulk: Option<f64>,
}

/// A ledger at a glance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The server's own origin; none for a milter.
    #[serde(serialize_with = "shown")]
    pub origin: Option<Origin>,
    /// How far each origin is counted.
    #[serde(skip)]
    pub vector: Vector,
    /// All slices, windows in order.
    pub slices: Vec<SliceStatus>,
    /// Own reports that the merged counts do not show yet.
    pub spool: usize,
    /// When the oldest of them that no server acknowledged was made, in seconds since 1970.
    pub spool_oldest: Option<u64>,
}

fn shown<S: serde::Serializer>(origin: &Option<Origin>, serializer: S) -> Result<S::Ok, S::Error> {
    origin.map(|origin| origin.to_string()).serialize(serializer)
}

impl Status {
    pub(super) fn of(book: &Book, threshold: Option<u32>) -> Self {
        let mut slices = Vec::new();
        for generation in book.own.generations.iter() {
            for (number, slice) in (0..).zip(generation.row.slices()) {
                let gauge = threshold.map(|t| slice.filter.gauge(t));
                slices.push(SliceStatus {
                    window: generation.window.start,
                    slice: number,
                    of: "own",
                    capacity: slice.capacity,
                    signatures: Some(slice.distinct),
                    memory: slice.filter.memory(),
                    fill: gauge.map(|gauge: Gauge| gauge.fill),
                    false_bulk: gauge.map(|gauge| gauge.false_bulk),
                });
            }
        }
        for layer in book.others.layers() {
            for (number, slice) in (0..).zip(&layer.slices) {
                let gauge = threshold.map(|t| slice.gauge(t));
                slices.push(SliceStatus {
                    window: layer.window.start,
                    slice: number,
                    of: "others",
                    capacity: layer.capacity,
                    signatures: None,
                    memory: slice.memory(),
                    fill: gauge.map(|gauge| gauge.fill),
                    false_bulk: gauge.map(|gauge| gauge.false_bulk),
                });
            }
        }
        slices.sort_by_key(|slice| (slice.window, slice.slice));
        Self {
            origin: Some(book.own.origin()).filter(|_| book.role == Role::Server),
            vector: book.vector(),
            slices,
            spool: book.spool.len(),
            spool_oldest: book.spool.oldest(),
        }
    }
}
