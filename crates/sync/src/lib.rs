// SPDX-License-Identifier: GPL-3.0-or-later
//! Transport of counts: reports up, updates and snapshots down, by the HTTP API in docs/protocol.md.
//!
//! `wire` encodes and decodes for both sides, `bulk_frame` the frames of bulk, and `clock` compares the clocks. `remote` asks one server;
//! `fetch` copies all its counts; `follow` keeps a ledger in step with the first of several servers that answers, and a server's ledger
//! with its peers; `push` sends a milter's own reports. `log` takes the place of servers in a fleet, `engines` opens the configured one,
//! and `fleet` has the tasks of a fleet's machines.
//!
//! The crate knows ledgers and their counts, and nothing of mail. The features `nats` and `postgres` are the engines of a fleet's log.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(feature = "nats", feature = "postgres")),
    allow(dead_code, unused_variables, reason = "some of it is for the engines alone")
)]

mod backoff;
pub mod bulk_frame;
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
mod remote_counts;
mod settings;
mod state;
mod token;
mod transport_error;
pub mod wire;

pub use code::{Code, HEADER as ERROR_HEADER};
pub use fetch::{Stopped, fetch};
pub use follow::{FollowMode, follow};
pub use follow_bulk::{BulkBound, follow_peer_bulk};
pub use parameters::{HEADER as PARAMETERS_HEADER, Parameters};
pub use push::{push, trim};
pub use remote::{AllOrders, Registration, Remote, RemoteError, SITE_HEADER, Stream};
pub use remote_counts::{RemoteCounts, shares};
pub use settings::{Settings, Upstream, Withhold};
pub use state::{Link, LinkStatus, Links};
