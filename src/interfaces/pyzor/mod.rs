// SPDX-License-Identifier: GPL-3.0-or-later
//! The Pyzor interface: what `pyzord` is for Pyzor's clients, with counts that a whole federation shares.
//!
//! `request` reads a datagram, `accounts` says who signed it and what they may do, `replay` whether it came before, `rate` how often an
//! address may ask, `answer` writes what goes back, `serve` is the loop over the socket. What is counted, `judging::pyzor` knows.

use std::path::Path;

mod accounts;
mod answer;
mod rate;
mod replay;
mod request;
mod serve;

pub(super) use accounts::Accounts;
pub use accounts::Fault;
pub use request::{Bad, Op, Request};
pub(super) use serve::{Context, serve, tell_faults};

/// What is wrong with an accounts file and an access file, line by line, and whether there is any key.
///
/// # Errors
/// Which of them cannot be read, and why.
pub fn examine(accounts: Option<&Path>, access: Option<&Path>) -> Result<(Vec<Fault>, bool), String> {
    let loaded = Accounts::load(accounts, access)?;
    Ok((loaded.faults().to_vec(), loaded.has_keys()))
}
