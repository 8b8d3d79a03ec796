// SPDX-License-Identifier: GPL-3.0-or-later
//! How counts travel: reports up, updates and snapshots down, by the HTTP API that docs/protocol.md describes.
//!
//! `wire` has the bytes, for both sides, and `clock` compares their clocks. `remote` asks one server; `fetch` takes all that it
//! holds; `follow` keeps a ledger in step with the first of several servers that answers, and a server's ledger with its peers; `push`
//! sends a milter's own reports. `log` is what a fleet has in the place of servers, `engines` opens the one that a configuration names,
//! and `fleet` is what its machines do with it.
//!
//! It knows ledgers and their counts, and nothing of mail. The features `nats` and `postgres` are the engines of a fleet's log.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(feature = "nats", feature = "postgres")),
    allow(dead_code, unused_variables, reason = "some of it is for the engines alone")
)]

mod asks;
mod backoff;
mod broken;
pub mod clock;
mod code;
pub mod engines;
mod fetch;
pub mod fleet;
mod follow;
mod follow_bulk;
pub mod log;
mod parameters;
mod peer;
mod push;
mod remote;
mod settings;
mod state;
pub mod told;
pub mod wire;

pub use asks::{Asks, shares};
pub use code::{Code, HEADER as ERROR_HEADER};
pub use fetch::{Stopped, fetch};
pub use follow::{Way, follow};
pub use follow_bulk::{BulkBound, hear};
pub use parameters::{HEADER as PARAMETERS_HEADER, Parameters};
pub use push::{push, trim};
pub use remote::{Registration, Remote, RemoteError, Stream};
pub use settings::{Settings, Share, Upstream};
pub use state::{Link, LinkStatus, Links};
