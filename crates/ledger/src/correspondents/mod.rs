// SPDX-License-Identifier: GPL-3.0-or-later
//! Whom one's own users write to: who writes back is no stranger, and is not refused as bulk or spam.
//!
//! [`Pairs`] holds pairs of a user and a correspondent as keyed hashes, of which no address can be read, and [`Correspondents`] keeps them
//! on disk. Only this mail server has them.

mod pairs;
mod store;

pub use pairs::{MOST, MOST_A_DAY, Pairs, Written};
pub use store::Correspondents;
