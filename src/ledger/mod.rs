// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger: how often was each signature reported, kept over restarts and crashes.
//!
//! [`Ledger`] is the handle that everybody holds. Behind it one thread, the keeper, owns everything: the counts in
//! memory (`generations`) and the file (`store`). It takes all reports that wait, applies them, commits them in one
//! transaction, and answers them; so a count that was answered is on disk, and many messages share one fsync.

mod acknowledged;
mod book;
mod busy;
#[cfg(test)]
mod convergence;
mod copy;
mod errors;
mod format;
mod generations;
mod handle;
mod holding;
mod influence;
mod keeper;
mod own;
mod random;
mod reader;
mod retries;
mod settings;
mod shadow;
mod shares;
mod snapshot;
mod spool;
mod status;
mod store;
mod tables;
mod update;
mod vector;
mod view;
mod window;
mod write;

/// Reports in one batch at most, from a spool to a server.
const MAX_BATCH: usize = 8192;

pub use acknowledged::{Backwards, Receipt, Reporter};
pub use copy::copy;
pub use errors::{LedgerError, OpenError};
pub use handle::{Ledger, Moves, Report};
pub use holding::{Difference, Holding, MergeError};
pub use random::random_bytes;
pub use reader::{Behind, Reader, Snapshot};
pub use retries::RetryKey;
pub use settings::{Durability, Federation, Role, Settings};
pub use shares::{Share, Shares};
pub use snapshot::{Assembly, Row};
pub use spool::Outgoing;
pub use status::{Counted, SliceStatus, Status};
pub use store::read;
pub use tables::FILE_NAME;
pub use update::{Refusal, Update, UpdateError, mark_of};
pub use vector::{Chain, Mark, Origin, ParseError, Vector};
pub use view::Applied;
pub use window::now;
