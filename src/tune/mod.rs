// SPDX-License-Identifier: GPL-3.0-or-later
//! Simulates bulkmark with the mail of an archive.
//!
//! [`Archive`] finds the files, [`Index`] the messages in them with their times, and [`replay`] has them counted in that order and judged as
//! `bulkmark-verdict` does: signatures on all cores, one ledger, white list and thresholds of a configuration. The result is a [`Tuning`];
//! [`plot`] draws it.
//!
//! Memory: 24 bytes for each message and about 80 for each file; two messages for each core; one number for each
//! sender; the clusters and senders, whose tables are bounded; and the ledger's filters.

mod archive;
mod border;
mod clusters;
mod figure;
mod index;
mod letter;
mod plain;
mod plot;
mod replay;
mod report;
mod tally;
mod top;
mod wanted;

pub use archive::{Archive, Fault, Label};
pub use border::Border;
pub use index::Index;
pub use plain::plain;
pub use plot::{PlotError, plot};
pub use replay::replay;
pub use report::{
    AtThreshold, ClusterRow, Configured, Contents, Labels, PolicyRow, Proposal, Standing, Tuning, date,
};
