// SPDX-License-Identifier: GPL-3.0-or-later
//! Studies of bulkmark's filters: that of Yan & Cho, repeated, and its future work; of near signatures; of partners' power over
//! counts; of the trust in reporters; and of a fleet's needs.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod fleet;
pub mod labelled;
pub mod layouts;
pub mod near;
pub mod paper;
pub mod partners;
pub mod plot;
mod random;
pub mod reporters;
pub mod revocation;
pub mod rewritten;
