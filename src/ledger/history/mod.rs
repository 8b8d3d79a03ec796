// SPDX-License-Identifier: GPL-3.0-or-later
//! What travels between ledgers: who counted and how far ([`vector`]), the steps of an origin's history ([`update`]), and the
//! rows of a snapshot ([`row`]). Pure: no file, no thread, no clock.
//!
//! An [`Update`](update::Update) is one step of an origin's history, over all its windows and slices. A
//! [`Delta`](bulkmark_filter::Delta) is what one filter grew by; an update is made up of them.

pub(crate) mod bits;
pub(crate) mod bulk;
pub(crate) mod carried;
pub(crate) mod chunks;
pub(crate) mod fields;
pub(crate) mod fleet;
pub(crate) mod past;
pub(crate) mod refusal;
pub(crate) mod row;
pub(crate) mod sealed;
pub(crate) mod spool_mark;
pub(crate) mod step;
pub(crate) mod update;
pub(crate) mod vector;
pub(crate) mod window;
