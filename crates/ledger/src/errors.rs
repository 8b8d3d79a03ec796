// SPDX-License-Identifier: GPL-3.0-or-later
//! Errors of the ledger.

/// The reason why the ledger gives no answer.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LedgerError {
    /// The disk failed, just now or a while ago.
    #[error("{0}")]
    Unavailable(String),
    /// 8,192 requests are waiting already.
    #[error("the ledger is overloaded")]
    Busy,
    /// A server has no spool, a milter no clients, and so on.
    #[error("the ledger has another role and cannot do that")]
    WrongRole,
    /// The ledger was closed.
    #[error("the ledger is closed")]
    Closed,
}
