// SPDX-License-Identifier: GPL-3.0-or-later
//! How counts travel: reports up, updates and snapshots down, by the HTTP API that docs/protocol.md describes.
//!
//! `wire` has the bytes, for both sides, and `clock` compares their clocks. `client` asks one server; `fetch` takes all that it
//! holds; `follow` keeps a ledger in step with the first of
//! several servers that answers, and a server's ledger with its peers; `push` sends a milter's own reports.

mod backoff;
mod client;
pub mod clock;
mod fetch;
mod follow;
mod parameters;
mod push;
mod settings;
mod state;
pub mod wire;

pub use client::{Client, ClientError, Stream};
pub use fetch::{Stopped, fetch};
pub use follow::follow;
pub use parameters::{HEADER as PARAMETERS_HEADER, Parameters};
pub use push::{push, trim};
pub use settings::{Settings, Upstream};
pub use state::{Link, LinkStatus, Links};
