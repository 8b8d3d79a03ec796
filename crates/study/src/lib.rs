// SPDX-License-Identifier: GPL-3.0-or-later
//! Studies of bulkmark's filters: that of Yan & Cho, repeated, and what it left as future work; of its near
//! signatures; of what partners can do to its counts; of whom to believe who reports; and of what a fleet needs.

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
