// SPDX-License-Identifier: GPL-3.0-or-later
//! The administrator's orders, in force at once and kept over restarts: a pause, mailings that are never refused, and mailings whose counts
//! start over.
//!
//! `order` has their form, and `book` the orders in force with their file in the state directory.

mod book;
mod order;

pub use book::{Failure, Orders};
pub use order::{All, Allowance, Forgotten, MAX_TEXT, Pause};
