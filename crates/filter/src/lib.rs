// SPDX-License-Identifier: GPL-3.0-or-later
//! Counting Bloom filters: many small counts in little memory, never too low.
//!
//! An element is 128 uniformly distributed bits (`u128`), such as a hash of a counted item; a filter returns how often that
//! element was added, possibly too high and never too low. [`Refined`] is the filter to begin with:
//!
//! ```
//! use bulkmark_filter::{CELLS_AT_CAPACITY, Counting, Refined};
//!
//! let mut filter = Refined::sized(1_000_000, CELLS_AT_CAPACITY)?;
//! let element = 0x0123_4567_89AB_CDEF_0246_8ACE_1357_9BDF;
//! assert_eq!(filter.add(element, 1), 1);
//! assert_eq!(filter.add(element, 40), 41);
//! assert_eq!(filter.count(element), 41);
//! # Ok::<(), bulkmark_filter::ParameterError>(())
//! ```
//!
//! - [`Scaling`] grows when it is full; [`Sharded`] is for several threads; [`Intuitive`] can remove additions.
//! - [`Sparse`] is small while it has few elements, and can raise single cells.
//! - Writers on several machines each have a filter. [`Merged`] is their sum; a [`Delta`], recorded by [`Growth`], is the growth of
//!   one of them. A [`Draft`] computes the growth of the sum for its only writer.
//! - [`Bloom`] only records whether an element was inserted; [`Nominations`] is a pair of these.
//! - [`Gauge`] measures the fill and the error rate of a filter; [`false_positive_rate`] and [`error_bound`] compute the rate in
//!   advance.
//!
//! # Elements chosen by others
//!
//! Filters spread elements by their own bits, so anybody who can choose elements also chooses their cells. Adversarial elements cost at
//! most a bounded number of steps each: eight cells in blocks, and for counts beyond 15 three entries in split storage, each with at most
//! 4,200 visited places; mostly it is one. A region of 1,024 blocks that is the target of many takes at most 270 kB more, and other
//! regions take neither more time nor more memory. The same holds for deltas and for decoding. A delta of `n` bytes can have 134 `n`
//! cells: [`Delta::decode`] takes a limit.
//!
//! The filters are those of Yan and Cho, *Enhancing Collaborative Spam Detection with Bloom Filters* (ACSAC 2006).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(missing_docs, clippy::host_endian_bytes, clippy::big_endian_bytes)]

#[cfg(test)]
mod aimed;
mod batch;
mod blocks;
mod bloom;
mod cells;
mod counting;
mod crowd;
mod delta;
mod draft;
mod estimate;
mod gauge;
mod groups;
mod growth;
#[doc(hidden)]
pub mod internals;
mod intuitive;
mod layout;
mod merged;
mod overflow;
mod packed;
mod params;
mod placed;
mod probe;
mod range_coder;
mod refined;
mod rows;
mod scaling;
mod sharded;
mod sparse;
mod split;
pub mod varint;
mod work;

pub use bloom::{Bloom, Nominations};
pub use counting::{Counting, RemoveError, Removing};
pub use delta::{DecodeError, Delta};
pub use draft::Draft;
pub use estimate::false_positive_rate;
pub use gauge::Gauge;
pub use groups::Groups;
pub use growth::Growth;
pub use intuitive::Intuitive;
pub use layout::{BLOCK_BYTES, CELLS_PER_BLOCK, CELLS_PER_ELEMENT};
pub use merged::Merged;
pub use params::ParameterError;
pub use probe::Probe;
pub use refined::Refined;
pub use scaling::{Added, CELLS_AT_CAPACITY, Scaling, Slice, error_bound};
pub use sharded::Sharded;
pub use sparse::Sparse;

/// Runs the example of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
