// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger's file: its tables ([`schema`]) and rows ([`rows`]), how it is loaded into a state ([`load`]), and how changes of the
//! state are written to it ([`commit`]). docs/ledger.md describes the format.

pub(crate) mod aside;
pub(crate) mod backup;
pub(crate) mod bulk;
pub(crate) mod cases;
pub(crate) mod cells;
pub(crate) mod chain;
pub(crate) mod commit;
pub(crate) mod copy;
pub(crate) mod errors;
pub(crate) mod fleet_snapshot;
pub(crate) mod held_back;
pub(crate) mod kept_updates;
pub(crate) mod layers;
pub(crate) mod load;
pub(crate) mod missing;
pub(crate) mod notes;
pub(crate) mod open;
pub(crate) mod overlay;
pub(crate) mod past;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod room;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod user_reports;
