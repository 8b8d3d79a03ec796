// SPDX-License-Identifier: GPL-3.0-or-later
//! The messages that were refused, or would be without a rehearsal, with their recipients: one line of JSON each, in files of the state
//! directory that are bounded in size and age. Off by default.
//!
//! `keep` has a thread that writes them, `find` reads them for `bulkmark refusals`, `entry` is a line, `segments` are the files.

mod entry;
mod find;
mod keep;
mod segments;
mod settings;

pub use entry::{Entry, MOST_RECIPIENTS};
pub use find::{Client, Found, Query, find};
pub use keep::Refusals;
pub use settings::Settings;
