// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a message is bulk or not: `bulkmark explain` prints it, and the HTTP interface returns it on request.
//!
//! [`find`] asks a [`Source`] all questions that the milter would ask about a message that it has not counted yet, and counts nothing. An
//! [`Explanation`] has the content of each signature, its counts by time, and the resulting verdict. [`explain`] uses the daemon's own
//! ledger; a command asks a daemon.

mod ask;
mod daemon;
mod describe;
mod explanation;
mod judged;
mod old_key;
mod source;
mod statement;

pub use ask::UserReports;
pub(super) use daemon::counts_under_old_key;
pub use daemon::explain;
pub use explanation::{Counted, Explained, Explanation, Thresholds, decides};
pub use judged::{Judged, exempt, find};
pub use source::{Case, Source};
