// SPDX-License-Identifier: GPL-3.0-or-later
//! The state of a ledger: all counts, and which holder has which of them. Pure: no file, no thread, no clock, no channel; time and random
//! numbers are arguments.

pub mod allowance;
pub mod anomaly;
pub mod assembly;
pub mod bounds;
pub mod bulk_counts;
pub mod bulk_list;
pub mod cache;
pub mod cases;
pub mod changes;
pub mod counts;
pub mod expired;
pub mod fleet;
pub mod generations;
pub mod inherited;
pub mod kept;
pub mod layer;
pub mod layers;
pub mod limited;
pub mod local;
pub mod member;
pub mod merged;
pub mod merged_window;
pub mod note_queue;
pub mod overview;
pub mod partial;
pub mod peer_check;
pub mod receipts;
pub mod report;
pub mod reporters;
pub mod retries;
pub mod roles;
pub mod room;
pub mod server;
pub mod server_peers;
#[cfg(test)]
mod server_tests;
pub mod shares;
pub mod spool;
pub mod submission;
pub mod submit;
pub mod trust;
pub mod unwritten;
pub mod user_report;
pub mod user_reports;
#[cfg(test)]
mod user_reports_kept_tests;
#[cfg(test)]
mod user_reports_tests;
