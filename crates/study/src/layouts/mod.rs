// SPDX-License-Identifier: GPL-3.0-or-later
//! The paper's future work, measured: how often does a filter mistake other elements for bulk, when elements are added as often
//! as mail is, and which layout of cells does it least in the same memory?
//!
//! A [`Layout`] defines the cells of an element, [`filter()`] makes a filter of it, a [`History`] is added to it, [`measure`]
//! looks elements up, [`compare`] does so for many on all cores, and [`speed`] times the shipped one.

mod compare;
mod filters;
mod further;
mod layout;
mod measure;
mod memory;
mod probes;
mod sample;
mod speed;

pub use compare::{BITS, RATIOS, Row, Size, compare};
pub use filters::{Filter, filter};
pub use layout::{Layout, LayoutError, MOST_CELLS, Storage};
pub use measure::{Measured, THRESHOLDS, UNSEEN, blocks_within, measure};
pub use memory::free_memory;
pub use sample::{Distribution, History};
pub use speed::{Cost, FILTER_BYTES, Speed, speed};
