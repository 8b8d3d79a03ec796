// SPDX-License-Identifier: GPL-3.0-or-later
//! Errors of orders.

use super::server_lists::Full;
use std::io;

/// Mailings at most, in each list.
pub(super) const MOST: usize = 1000;

/// Why an order is not in force, or ends with the next restart.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There are too many orders.
    #[error(
        "{MOST} mailings are allowed or forgotten already, which is the most; remove one (bulkmark allow or bulkmark ledger forget: --list, --remove)"
    )]
    Full,
    /// The order has no signature by which to recognise a message.
    #[error("it has no signature by which its mailing is known")]
    NoSignature,
    /// No mailing has this name.
    #[error("no such mailing begins with {0}; --list shows all")]
    Unknown(String),
    /// Several mailings have it.
    #[error("several such mailings begin with {0}; give more of it")]
    Unclear(String),
    /// There is no room for it at the server.
    #[error(transparent)]
    NoRoom(#[from] Full),
    /// The order is in force, but could not be written to its file.
    #[error("it is in force, but ends with the next restart: cannot write {path}: {error}")]
    NotKept {
        /// The file.
        path: String,
        /// The reason.
        error: io::Error,
    },
}
