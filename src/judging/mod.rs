// SPDX-License-Identifier: GPL-3.0-or-later
//! The way of a message to its verdict, the same for the milter and all interfaces.
//!
//! An interface collects a [`Message`], within common bounds (`budget`). [`judge`] reads it (`readers`), asks the ledger as
//! `bulkmark-verdict` says, and updates log, metrics and page; [`explain`] explains the verdict. Reports of users and traps go through
//! [`take_report`]. [`Service`] is the shared state.

mod budget;
mod correspondents;
mod daily_limits;
mod digests;
mod duplicates;
mod explain;
mod in_progress;
mod judge;
mod judgement;
mod log_line;
mod message;
mod partial;
mod pyzor;
mod readers;
mod recheck;
mod recheck_queue;
mod record;
mod refusals;
mod report;
mod service;
mod shared;
mod trap_networks;
mod traps;
mod user_reports;
mod verification;

pub use budget::Reservation;
pub use digests::{ReportWeights, report_weights, take_digest};
pub use explain::{
    Case, Counted, Explained, Explanation, Judged, Source, Thresholds, UserReports, decides, exempt, explain,
    find,
};
pub use judge::judge;
pub use judgement::Judgement;
pub use message::{MAX_FORGED, MAX_RECIPIENTS, Message, address};
pub use pyzor::{CountOnce, ParseDigestError, PyzorDigest, PyzorReporter, digest_counts, take_pyzor};
pub use recheck::recheck;
pub use report::{Refused, Taken, UserReport, mailing_of, take_report, weighing};
pub use service::Service;
