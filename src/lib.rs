// SPDX-License-Identifier: GPL-3.0-or-later
//! bulkmark finds bulk mail by counting.
//!
//! The way of a message, through the rooms of this crate and the crates of `crates/`:
//!
//! ```text
//! SMTP -> milter -> judging -> bulkmark-mail (parse, decode, text) -> bulkmark-signature -> bulkmark-ledger (count)
//!      -> bulkmark-verdict (by bulkmark-policy: white lists, thresholds) -> action to the MTA, header, log line
//! ```
//!
//! `milter` and `interfaces` receive messages; `judging` has each counted and judged, and explains it. `lookup` asks name servers for keys and
//! records, and servers of tables, both for white lists. `server` sends counts to its clients, and commands ask a daemon over the socket of
//! `control`. `activity` has the numbers of a daemon since its start, `alerts` posts its problems to a webhook, and `page` shows them. `tune`
//! judges the mail of an archive. `net` has sockets, HTTP and rates for all listeners, `telemetry` the log. `config` fills the settings of all
//! rooms from a file; `command` puts everything together. ARCHITECTURE.md has the whole picture, and `tests/pure/layering.rs` checks which room
//! may use which.

// Lints for the program only, beside those of Cargo.toml: tests unwrap, and use the milter protocol's big-endian numbers. No input from outside
// may cause a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![forbid(unsafe_code)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
// `command/output.rs` prints, and gives the reason.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods))]

pub mod activity;
pub mod alerts;
pub mod command;
pub mod config;
pub mod control;
pub mod interfaces;
pub mod judging;
pub mod lookup;
pub mod milter;
pub mod net;
pub mod orders;
pub mod page;
pub mod refusals;
pub mod server;
pub mod telemetry;
pub mod tune;
