// SPDX-License-Identifier: GPL-3.0-or-later
//! The control socket, a Unix socket at which commands ask a running daemon, and the daemon's status.
//!
//! `serve` answers the questions of `ask`, both in the form of `question`; `backup` sends a whole ledger. `status` has the data of `bulkmark
//! status`, and `metrics` the same for Prometheus, in the form of `exposition`, with data of the process from `process`.

mod ask;
mod backup;
mod decision_metrics;
mod exposition;
mod fleet_metrics;
mod interface_metrics;
mod metrics;
mod ordered;
mod orders;
mod process;
mod question;
mod report;
mod reported;
mod reports;
mod serve;
mod status;

pub use ask::{
    backup, correspondents, counts, forget_reports, mailing_reports, order, reports, status, vouch,
};
pub use exposition::METRICS_TYPE;
pub use ordered::{Allow, Given, KnowMailing, KnownBy, Order, Ordered};
pub use report::report;
pub use reported::{MAX_REPORTED, MAX_REPORTER, Report, Reported, TakeReport};
pub use reports::{NameReporter, ReporterRef, ReportsAsked};
pub use serve::Control;
pub use status::{
    ClientState, ClientStatus, DISK_PATIENCE, Daemon, DaemonStatus, Disk, Parts, RefusedStatus,
};
