// SPDX-License-Identifier: GPL-3.0-or-later
//! The signature server: takes reports, counts each once, and hands out what the federation counted.
//!
//! `api` answers requests; `clients` knows who may ask, by their `tokens`, and `gate` lets them pass, as far as `limits` allow;
//! `strangers` are those whom it refuses, and `made_up` finds clients whose signatures are none.
//! `seen` tells what each client did, and how it is.
//! `registration` bounds the sites that `register` by themselves, and `acts` are how clients came.
//! `bulk` is for thin milters; `streaming` sends updates and snapshots to `readers`: `streams` bounds what all readers take together, and `blocks` are what several
//! want. The counts are in the ledger, and what travels is described in `sync::wire`.

mod access;
mod acts;
mod api;
mod blocks;
mod clients;
mod gate;
mod limits;
mod made_up;
mod quota;
mod readers;
mod refusals;
mod register;
mod registration;
mod routes;
mod seen;
mod settings;
mod snapshots;
mod strangers;
mod streaming;
mod streams;
mod thin;
mod tokens;

pub use acts::{Deed, Registered};
pub use api::{METRICS_THRESHOLD, Service};
pub use clients::{Client, Clients, ClientsError, Grant, Role};
pub use quota::{NoShare, PARTNER_INFLUENCE, PARTNER_RATE, Quota};
pub use registration::{Registration, UNAPPROVED};
pub use settings::{Limits, Settings};
