// SPDX-License-Identifier: GPL-3.0-or-later
//! What is counted, and who has what. Pure: no file, no thread, no clock, no channel; time and random numbers are told.

pub(crate) mod assembly;
pub(crate) mod book;
pub(crate) mod generations;
pub(crate) mod influence;
pub(crate) mod local;
pub(crate) mod merged;
pub(crate) mod receipts;
pub(crate) mod report;
pub(crate) mod retries;
pub(crate) mod shares;
pub(crate) mod spool;
