// SPDX-License-Identifier: GPL-3.0-or-later
//! What is counted, and who has what. Pure: no file, no thread, no clock, no channel; time and random numbers are told.

pub(crate) mod assembly;
pub(crate) mod cache;
pub(crate) mod cases;
pub(crate) mod changes;
pub(crate) mod counts;
pub(crate) mod fleet;
pub(crate) mod generations;
pub(crate) mod hearing;
pub(crate) mod held;
pub(crate) mod inherited;
pub(crate) mod layer;
pub(crate) mod layers;
pub(crate) mod limited;
pub(crate) mod local;
pub(crate) mod merged;
pub(crate) mod merged_window;
pub(crate) mod oddity;
pub(crate) mod overview;
pub(crate) mod receipts;
pub(crate) mod report;
pub(crate) mod reporters;
pub(crate) mod retries;
pub(crate) mod roles;
pub(crate) mod room;
pub(crate) mod saying;
pub(crate) mod server;
pub(crate) mod server_peers;
pub(crate) mod shares;
pub(crate) mod site;
pub(crate) mod spool;
pub(crate) mod teller;
pub(crate) mod telling;
pub(crate) mod thin;
pub(crate) mod trusted;
pub(crate) mod unheard;
pub(crate) mod voices;
#[cfg(test)]
mod voices_kept_tests;
#[cfg(test)]
mod voices_tests;
