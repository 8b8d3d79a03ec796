// SPDX-License-Identifier: GPL-3.0-or-later
//! Counting Bloom filters: many small counts in little memory, never too low.
//!
//! This crate knows nothing of mail. An element is 128 uniformly distributed bits (`u128`); a filter answers how often
//! that element was added, possibly too high and never too low.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(missing_docs, clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![cfg_attr(
    not(feature = "study"),
    allow(unreachable_pub, reason = "some of it is only reached by `internals`, which needs that feature")
)]

mod batch;
mod blocks;
mod bloom;
mod cells;
mod counting;
mod delta;
mod estimate;
mod gauge;
mod growth;
#[cfg(feature = "study")]
#[doc(hidden)]
pub mod internals;
mod intuitive;
mod layout;
mod merged;
mod overflow;
mod packed;
mod params;
mod probe;
mod range_coder;
mod refined;
mod rows;
mod scaling;
mod sharded;
mod split;

pub use bloom::{Bloom, Nominations};
pub use counting::{Counting, RemoveError};
pub use delta::{DecodeError, Delta};
pub use estimate::false_bulk;
pub use gauge::Gauge;
pub use growth::Growth;
pub use intuitive::Intuitive;
pub use layout::{BLOCK_BYTES, CELLS_PER_BLOCK, CELLS_PER_ELEMENT};
pub use merged::Merged;
pub use params::ParameterError;
pub use probe::Probe;
pub use refined::Refined;
pub use scaling::{Added, CELLS_AT_CAPACITY, Scaling, Slice, error_bound};
pub use sharded::Sharded;
