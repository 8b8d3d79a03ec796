// SPDX-License-Identifier: GPL-3.0-or-later
//! Correspondents of a site's users: mail from them is not refused as bulk or spam.
//!
//! [`Pairs`] holds pairs of a user and a correspondent as keyed hashes, from which no address can be read, and [`Correspondents`] keeps
//! them on disk. They never leave this mail server.

mod pairs;
mod store;

pub use pairs::{MAX_NEW_A_DAY, MAX_PAIRS, PairHashes, Pairs};
pub use store::Correspondents;
