// SPDX-License-Identifier: GPL-3.0-or-later
//! What is counted, and who has what. Pure: no file, no thread, no clock, no channel; time and random numbers are told.

pub(crate) mod assembly;
pub(crate) mod cache;
pub(crate) mod changes;
pub(crate) mod counts;
pub(crate) mod generations;
pub(crate) mod held;
pub(crate) mod inherited;
pub(crate) mod layer;
pub(crate) mod layers;
pub(crate) mod limited;
pub(crate) mod local;
pub(crate) mod merged;
pub(crate) mod oddity;
pub(crate) mod receipts;
pub(crate) mod report;
pub(crate) mod retries;
pub(crate) mod roles;
pub(crate) mod server;
pub(crate) mod shares;
pub(crate) mod site;
pub(crate) mod spool;
pub(crate) mod teller;
pub(crate) mod telling;
pub(crate) mod thin;
