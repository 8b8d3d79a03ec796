// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger: how often was each signature reported, kept over restarts and crashes.
//!
//! [`Ledger`] is the handle that everybody holds. Behind it one thread, the keeper, owns everything: the counts in
//! memory (`generations`) and the file (`store`). It takes all reports that wait, applies them, commits them in one
//! transaction, and answers them; so a count that was answered is on disk, and many messages share one fsync.

mod acknowledged;
#[cfg(test)]
mod convergence;
mod errors;
mod format;
mod generations;
mod keeper;
mod own;
mod retries;
mod settings;
mod spool;
mod store;
mod update;
mod vector;
mod view;
mod window;

/// Reports in one batch at most, from a spool to a server.
const MAX_BATCH: usize = 8192;

pub use errors::OpenError;
pub use keeper::{Ledger, LedgerError, Report};
pub use retries::RetryKey;
pub use settings::{Durability, Settings};
pub use store::{FILE_NAME, read};
