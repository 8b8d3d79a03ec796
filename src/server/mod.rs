// SPDX-License-Identifier: GPL-3.0-or-later
//! The signature server: takes reports, counts each once, and hands out what the federation counted.
//!
//! `api` answers requests; `clients` knows who may ask, and `gate` lets them pass. The counts are in the
//! ledger, and what travels is described in `sync::wire`.

mod api;
mod clients;
mod gate;
mod quota;
mod refusals;
mod settings;
mod snapshots;

pub use api::{METRICS_THRESHOLD, Service};
pub use clients::{Client, Clients, ClientsError, Grant, Role};
pub use quota::{NoShare, PARTNER_INFLUENCE, PARTNER_RATE, Quota};
pub use settings::{Limits, Settings};
