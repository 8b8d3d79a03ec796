// SPDX-License-Identifier: GPL-3.0-or-later
//! The Pyzor interface: replaces `pyzord` for Pyzor's clients, with counts that a whole federation shares.
//!
//! `request` reads a datagram, `accounts` verifies its signature and permissions, `replay` recognizes repeated ones, `rate` limits addresses,
//! `answer` writes answers, and `serve` is the loop over the socket. `judging::pyzor` counts.

use std::path::Path;

mod accounts;
mod answer;
mod rate;
mod replay;
mod request;
mod serve;

pub(super) use accounts::Accounts;
pub use accounts::{FILES, Fault};
pub use request::{Bad, Op, Request};
pub(super) use serve::{Context, log_faults, serve};

/// The problems of an accounts file and an access file, line by line, and whether there is any key.
///
/// # Errors
/// The file that cannot be read, and the reason.
pub fn examine(home: Option<&Path>) -> Result<(Vec<Fault>, bool), String> {
    let loaded = Accounts::load(home)?;
    Ok((loaded.faults().to_vec(), loaded.has_keys()))
}
