// SPDX-License-Identifier: GPL-3.0-or-later
//! The signature server: takes reports, counts each once, and sends out the federation's counts.
//!
//! `api` answers requests; `clients` has the clients with their `tokens`, and `gate` admits requests within `limits`; `seen` has the
//! activity and the state of each client; `refused_requests` counts refusals, and `made_up` finds clients whose signatures are not hashes.
//! `registration` bounds the sites that `register` by themselves, and `acts` is the history of clients; `under_way` bounds how long the reports
//! of removed ones are withdrawn. `orders` exchanges
//! the orders of all sites, which `order_book` keeps. `partial` is for milters with a
//! partial copy; `streaming` sends updates and snapshots to `readers`: `streams` bounds the resources of all readers, and `blocks` caches
//! data that several read. The counts are in the ledger, and `bulkmark_sync::wire` has the formats.

mod access;
mod acts;
mod api;
mod blocks;
mod clients;
mod gate;
mod limits;
mod made_up;
mod order_book;
mod orders;
mod partial;
mod quota;
mod readers;
mod refusals;
mod refused_requests;
mod register;
mod registration;
mod routes;
mod seen;
mod settings;
mod snapshots;
mod streaming;
mod streams;
mod tokens;
mod under_way;

pub use acts::{Deed, Registered};
pub use api::{METRICS_THRESHOLD, Service};
pub use clients::{Client, Clients, ClientsError, Grant, Role};
pub use quota::{NoShare, PARTNER_INFLUENCE, PARTNER_RATE, Quota};
pub use registration::{Registration, UNAPPROVED};
pub use settings::{Limits, Settings};
