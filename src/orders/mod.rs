// SPDX-License-Identifier: GPL-3.0-or-later
//! What the administrator ordered by a command, in force at once and kept over restarts: a pause, mailings that are never refused, and mailings whose counts start over.
//!
//! `order` has the words, and `book` those in force with their file in the state directory.

mod book;
mod order;

pub use book::{Failure, Orders};
pub use order::{All, Allowance, Forgotten, MAX_TEXT, Pause};
