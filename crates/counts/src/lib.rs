// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts of a ledger, and the data that ledgers exchange. Pure: no file, no thread, no clock; time and random numbers are arguments.
//!
//! [`history`] has version vectors, updates, steps and rows of snapshots; [`state`] has the counts, and which holder has which of them. The
//! root exports the types for callers of a ledger; the modules are for `bulkmark-ledger`, which stores them.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

pub mod history;
mod key_files;
pub mod settings;
pub mod state;

pub use history::bulk::{BulkMark, Note, Section};
pub use history::fleet_mark::FleetMark;
pub use history::past::Past;
pub use history::refusal::{Refusal, StepRefusal};
pub use history::row::Row;
pub use history::sealed::{OtherForm, checksum, seal, unseal};
pub use history::spool_batch::SpoolBatch;
pub use history::step::{MAX_STEP, Step, StepError, StepHead, other_step, step_head};
pub use history::update::{Update, UpdateError, mark_of};
pub use history::vector::{Chain, MAX_ORIGINS, MAX_VECTOR_BYTES, Mark, Origin, ParseError, Vector};
pub use history::window::{USER_REPORT_CAPACITY, USER_REPORT_SHARE};
pub use key_files::KeyFiles;
pub use settings::{Durability, Federation, LocalCopy, Role, SPOOL_AGE, Settings};
pub use state::assembly::Assembly;
pub use state::fleet::assembly::FleetAssembly;
pub use state::fleet::draft::{Drafted, LoggedBatch, Terms};
pub use state::limited::{Limits, OverQuota};
pub use state::merged::Applied;
pub use state::overview::{MailingSummary, Overview, OverviewFilter, ReporterSummary};
pub use state::partial::{BulkAssembly, NoteGap};
pub use state::receipts::{Backwards, Receipt, Reporter};
pub use state::report::{Report, RetryKey, Shared};
pub use state::reporters::{MailingReport, MailingReports, Unclear};
pub use state::room::Rows;
pub use state::server::NotCounted;
pub use state::shares::{Share, Shares};
pub use state::spool::{MAX_BATCH, Outgoing};
pub use state::submission::{Nominated, Side, Submission, Tally, Weighing};
pub use state::submit::Withdrawal;
