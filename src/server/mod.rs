// SPDX-License-Identifier: GPL-3.0-or-later
//! The signature server: takes reports, counts each once, and hands out what the federation counted.
//!
//! `listen` accepts connections, plain or TLS; `api` answers requests; `clients` knows who may ask. The counts are in the
//! ledger, and what travels is described in `sync::wire`.

mod api;
mod clients;
mod gate;
mod listen;
mod settings;
mod snapshots;
mod stream;
mod tls;

pub use api::{METRICS_THRESHOLD, Service};
pub use clients::{Client, Clients, ClientsError, Role};
pub use listen::{Address, Bound, Place};
pub use settings::{Limits, Settings, Tls};
pub use stream::{Gone, Sink, stream};
pub use tls::{TlsError, TlsKeys};
