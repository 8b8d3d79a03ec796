// SPDX-License-Identifier: GPL-3.0-or-later
//! bulkmark finds bulk mail by counting.
//!
//! The way of a message, and the rooms on it:
//!
//! ```text
//! SMTP -> milter -> mail (parse, decode, text) -> signature -> ledger (count) -> verdict (by policy: white list, threshold)
//!      -> action to the MTA, header, log line
//! ```
//!
//! `mail`, `signature`, `policy` and `verdict` are pure: no clock, no file, no socket. `milter` and `ledger` are the edge. `text` makes what comes from outside fit to be shown, `net` has
//! sockets and HTTP for all that listen, `table` asks servers of tables for white lists, `verify` DNS for keys and records, `directory` the files of a state directory. `correspondents` remembers whom one's own users write to. `sync` carries counts between machines, `server` hands them out, and by `control`
//! other commands ask a daemon. `activity` is what a daemon did, and `page` shows it. `tune` judges an archive's mail. `trust` tells whom to believe who reports. `config`
//! fills the settings of all rooms from a file; `command` puts everything together. ARCHITECTURE.md has the whole picture, and
//! `tests/layering.rs` holds which room may use which.

// Beside the lints of Cargo.toml, for the program only: tests unwrap, and speak the milter's big-endian protocol.
// Nothing from outside is to end in a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![forbid(unsafe_code)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
// `command/output.rs` prints, and has the reason.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods))]

pub mod activity;
pub mod command;
pub mod config;
pub mod control;
pub mod doors;
pub mod explain;
pub mod judging;
pub mod lookup;
pub mod milter;
pub mod net;
pub mod page;
pub mod server;
pub mod telemetry;
pub mod tune;
