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
    /// A server has no spool, a milter no clients, and so on.
    #[error("the ledger has another role and cannot do that")]
    WrongRole,
    /// It was closed.
    #[error("the ledger is closed")]
    Closed,
}
