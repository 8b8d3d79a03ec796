// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger: how often was each signature reported, kept over restarts and crashes.
//!
//! [`Ledger`] is the handle that everybody holds. Behind it one thread, the keeper, owns everything: the counts in
//! memory (`generations`) and the file (`store`). It takes all reports that wait, applies them, commits them in one
//! transaction, and answers them; so a count that was answered is on disk, and many messages share one fsync.

mod errors;
mod format;
mod generations;
mod keeper;
mod retries;
mod settings;
mod store;
mod window;

pub use errors::OpenError;
pub use keeper::{Ledger, LedgerError, Report};
pub use retries::RetryKey;
pub use settings::{Durability, Settings};
pub use store::{FILE_NAME, read};
