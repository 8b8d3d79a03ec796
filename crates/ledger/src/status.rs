// SPDX-License-Identifier: GPL-3.0-or-later
//! The status of a ledger.

use bulkmark_counts::history::vector::Vector;
use bulkmark_counts::history::window::Window;
use bulkmark_counts::settings::Role;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::layer::Layer;
use bulkmark_counts::state::member::Member;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::roles::State;
use bulkmark_counts::state::room::Rows;
use bulkmark_counts::state::spool::Spool;
use bulkmark_filter::Gauge;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The source of the counts in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// This ledger itself.
    Own,
    /// Others, merged.
    Others,
    /// Limited clients, those of this server and of others, each in its own filter.
    Limited,
}

/// One of a server's limited clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LimitedStatus {
    /// Its name.
    pub name: String,
    /// The origin under which other servers receive its counts.
    pub origin: String,
    /// Different signatures that it reported in the newest window.
    pub signatures: u64,
    /// Bytes of memory for all its counts.
    pub memory: usize,
    /// The anomaly in the cells of its signatures.
    pub odd: Option<String>,
}

/// One slice of one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SliceStatus {
    /// Beginning of its window, in seconds since 1970.
    pub window: u64,
    /// The number of the slice in its window.
    pub slice: u32,
    /// The source of these counts.
    pub counted: Counted,
    /// Whether these are counts of user reports, and not of mail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_reports: bool,
    /// The number of signatures that the slice is made for.
    pub capacity: u32,
    /// The number of signatures that were new to the slice; unknown for merged ones.
    pub signatures: Option<u64>,
    /// Bytes of memory.
    pub memory: usize,
    /// The share of cells that are not zero; only with an estimate.
    pub fill: Option<f64>,
    /// The share of cells that are saturated; only with an estimate.
    pub saturated: Option<f64>,
    /// The probability that an unknown signature is bulk in it; only with an estimate.
    pub false_bulk: Option<f64>,
}

/// The list of bulk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BulkStatus {
    /// The count from which a signature is listed.
    pub bound: u32,
    /// The number of its last note.
    pub note: u64,
    /// Signatures, each once for each of its windows.
    pub signatures: usize,
    /// Signatures that found no room since the start.
    pub left_out: u64,
    /// Bytes of memory.
    pub memory: usize,
}

impl BulkStatus {
    fn of(counts: &Counts) -> Option<Self> {
        let Counts { bulk, held, .. } = counts;
        bulk.is_begun().then(|| Self {
            bound: bulk.bound,
            note: bulk.number,
            signatures: held.signatures(),
            left_out: held.left_out(),
            memory: held.memory(),
        })
    }
}

/// A configured capacity that takes effect with the next window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NextCapacity {
    /// Signatures that windows will be made for.
    pub capacity: u32,
    /// Signatures that the newest window is made for.
    pub present: u32,
    /// The start of the next window, in seconds since 1970.
    pub from: u64,
}

/// The status of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The server's own origin; `None` for a milter.
    pub origin: Option<String>,
    /// The version up to which each origin is counted.
    #[serde(skip)]
    pub vector: Vector,
    /// The number of known origins, expired ones included; 65,536 at most.
    #[serde(default, skip_serializing_if = "is_none")]
    pub origins: usize,
    /// All slices, windows in order.
    pub slices: Vec<SliceStatus>,
    /// A server's limited clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<LimitedStatus>,
    /// The list of bulk: of a server for milters with a partial copy, or of such a milter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<BulkStatus>,
    /// Local reports that the merged counts do not include yet.
    pub spool: usize,
    /// The time of the oldest of them that no server acknowledged, in seconds since 1970.
    pub spool_oldest: Option<u64>,
    /// The number of user reports whose reporter is remembered.
    #[serde(default, skip_serializing_if = "Rows::is_empty")]
    pub user_reports: Rows,
    /// The configured capacity, if it is not in force yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_capacity: Option<NextCapacity>,
    /// Peers whose vector a server has not received since its start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// Reports that the server holds back until then; `None` if it holds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<usize>,
}

/// For a program that did not send the number.
const fn is_none(origins: &usize) -> bool {
    *origins == 0
}

impl Status {
    /// The version of each origin, by the origin's name.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<String, u64> {
        self.vector.iter().map(|(origin, mark)| (origin.to_string(), mark.version)).collect()
    }

    pub(crate) fn of(state: &State, threshold: Option<u32>) -> Self {
        let mut slices = Vec::new();
        for generation in state.counts().local.generations.iter() {
            for (number, slice) in (0..).zip(generation.row.slices()) {
                let gauge = threshold.map(|t| slice.filter.gauge(t));
                let user_reports = generation.window.is_user_report();
                slices.push(SliceStatus {
                    window: generation.window.start,
                    slice: number,
                    counted: Counted::Own,
                    user_reports,
                    capacity: slice.capacity,
                    signatures: Some(slice.distinct),
                    memory: slice.filter.memory(),
                    fill: gauge.map(|gauge: Gauge| gauge.fill),
                    saturated: gauge.map(|gauge| gauge.saturated),
                    // User reports make nothing bulk.
                    false_bulk: gauge.filter(|_| !user_reports).map(|gauge| gauge.false_positive_rate),
                });
            }
        }
        slices.extend(of_merged(&state.counts().merged, threshold));
        let limited = match state {
            State::Server(server) => server.limited.iter().collect(),
            _ => Vec::new(),
        };
        let others = state.counts().merged.layers().iter().map(|(_, layer)| layer);
        slices.extend(of_layers(limited.iter().map(|(_, member)| &member.layer).chain(others)));
        slices.sort_by_key(|slice| (slice.user_reports, slice.window, slice.slice));
        let unheard = match state {
            State::Server(server) => Some(&server.peer_check),
            _ => None,
        };
        let vector = state.vector();
        let held = unheard.map(|unheard| unheard.held().values().map(|held| held.entries.len()).sum());
        Self {
            origin: (state.role() == Role::Server).then(|| state.counts().local.origin().to_string()),
            origins: vector.len(),
            vector,
            slices,
            limited: limited.into_iter().map(of_client).collect(),
            bulk: BulkStatus::of(state.counts()),
            spool: state.spool().map_or(0, Spool::held),
            spool_oldest: state.spool().and_then(Spool::oldest),
            user_reports: state.counts().user_reports.taken(),
            next_capacity: next_capacity(state),
            unheard: unheard.map_or_else(Vec::new, |unheard| unheard.peers().map(str::to_owned).collect()),
            held: held.filter(|&reports| reports > 0),
        }
    }

    /// Returns the status of merged counts that belong to no ledger here.
    pub(crate) fn of_counts(merged: &MergedCounts, vector: Vector, threshold: u32) -> Self {
        let mut slices: Vec<_> = of_merged(merged, Some(threshold)).collect();
        slices.extend(of_layers(merged.layers().iter().map(|(_, layer)| layer)));
        slices.sort_by_key(|slice| (slice.user_reports, slice.window, slice.slice));
        Self {
            origin: None,
            origins: vector.len(),
            vector,
            slices,
            limited: Vec::new(),
            bulk: None,
            spool: 0,
            spool_oldest: None,
            user_reports: Rows::default(),
            next_capacity: None,
            unheard: Vec::new(),
            held: None,
        }
    }
}

/// The configured capacity, if that of the newest window with reports differs.
fn next_capacity(state: &State) -> Option<NextCapacity> {
    let counts = state.counts();
    let of_mail = counts.local.generations.iter().filter(|generation| !generation.window.is_user_report());
    let newest = of_mail.max_by_key(|generation| generation.window.start)?;
    let (capacity, present) = (counts.settings.capacity.get(), newest.row.slices().first()?.capacity);
    let from = newest.window.start + newest.window.length;
    (capacity != present).then_some(NextCapacity { capacity, present, from })
}

fn of_merged(merged: &MergedCounts, threshold: Option<u32>) -> impl Iterator<Item = SliceStatus> {
    let windows = merged.windows();
    windows.iter().flat_map(move |window| {
        // Slices of filters of several sizes are numbered in a row.
        let before = windows.iter().filter(|other| other.window == window.window && other.size < window.size);
        let first = before.map(|other| u32::try_from(other.slices.len()).unwrap_or_default()).sum::<u32>();
        (first..).zip(&window.slices).map(move |(number, slice)| {
            let gauge = threshold.map(|t| slice.gauge(t));
            let user_reports = window.window.is_user_report();
            SliceStatus {
                window: window.window.start,
                slice: number,
                counted: Counted::Others,
                user_reports,
                capacity: window.capacity,
                signatures: None,
                memory: slice.memory(),
                fill: gauge.map(|gauge| gauge.fill),
                saturated: gauge.map(|gauge| gauge.saturated),
                false_bulk: gauge.filter(|_| !user_reports).map(|gauge| gauge.false_positive_rate),
            }
        })
    })
}

/// One slice for each window: all limited clients together.
fn of_layers<'a>(layers: impl Iterator<Item = &'a Layer>) -> impl Iterator<Item = SliceStatus> {
    let mut windows = BTreeMap::<Window, SliceStatus>::new();
    for (&window, held) in layers.flat_map(|layer| &layer.windows) {
        let slice = windows.entry(window).or_insert_with(|| SliceStatus {
            window: window.start,
            slice: 0,
            counted: Counted::Limited,
            user_reports: window.is_user_report(),
            capacity: held.capacity,
            signatures: None,
            memory: 0,
            fill: None,
            saturated: None,
            false_bulk: None,
        });
        slice.memory += held.filter.memory();
    }
    windows.into_values()
}

fn of_client((name, member): (&str, &Member)) -> LimitedStatus {
    let newest = member.layer.windows.iter().rev().find(|(window, _)| !window.is_user_report());
    LimitedStatus {
        name: name.to_owned(),
        origin: member.origin.to_string(),
        signatures: newest.map_or(0, |(_, held)| held.distinct),
        memory: member.layer.memory(),
        odd: member.anomaly().map(|anomaly| anomaly.to_string()),
    }
}
