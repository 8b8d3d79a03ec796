// SPDX-License-Identifier: GPL-3.0-or-later
//! Why the ledger gives no answer.

/// Why there is no count.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LedgerError {
    /// The disk did not take it, or does not since a while.
    #[error("{0}")]
    Unavailable(String),
    /// 8,192 requests wait already.
    #[error("the ledger is overloaded")]
    Busy,
    /// It was closed.
    #[error("the ledger is closed")]
    Closed,
}
