// SPDX-License-Identifier: GPL-3.0-or-later
//! The data that ledgers exchange: version vectors ([`vector`]), the steps of an origin's history ([`update`]), and the rows of a snapshot
//! ([`row`]). Pure: no file, no thread, no clock.
//!
//! An [`Update`](update::Update) is one step of an origin's history, over all its windows and slices. A [`Delta`](bulkmark_filter::Delta)
//! is the growth of one filter; an update consists of them.

pub mod bits;
pub mod bulk;
pub mod chunks;
pub mod fields;
pub mod fleet_mark;
pub mod past;
pub mod refusal;
pub mod row;
pub mod sealed;
pub mod spool_batch;
pub mod spool_mark;
pub mod step;
pub mod update;
pub mod vector;
pub mod window;
