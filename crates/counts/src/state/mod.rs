// SPDX-License-Identifier: GPL-3.0-or-later
//! What is counted, and who has what. Pure: no file, no thread, no clock, no channel; time and random numbers are told.

pub mod allowance;
pub mod assembly;
pub mod bounds;
pub mod cache;
pub mod cases;
pub mod changes;
pub mod counts;
pub mod expired;
pub mod fleet;
pub mod generations;
pub mod hearing;
pub mod held;
pub mod inherited;
pub mod kept;
pub mod layer;
pub mod layers;
pub mod limited;
pub mod local;
pub mod member;
pub mod merged;
pub mod merged_window;
pub mod oddity;
pub mod overview;
pub mod receipts;
pub mod report;
pub mod reporters;
pub mod retries;
pub mod roles;
pub mod room;
pub mod saying;
pub mod server;
pub mod server_peers;
#[cfg(test)]
mod server_tests;
pub mod shares;
pub mod spool;
pub mod teller;
pub mod telling;
pub mod thin;
pub mod trusted;
pub mod unheard;
pub mod unwritten;
pub mod voices;
#[cfg(test)]
mod voices_kept_tests;
#[cfg(test)]
mod voices_tests;
pub mod words;
