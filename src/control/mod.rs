// SPDX-License-Identifier: GPL-3.0-or-later
//! How other commands ask a running daemon: a Unix socket, and what both daemons can say of themselves.
//!
//! `serve` answers on the socket what `ask` asks, in the words of `question`; `backup` sends a whole ledger. `status` is what
//! `bulkmark status` shows, and `metrics` the same for Prometheus, in the form of `exposition`, with what `process` finds of itself.

mod ask;
mod backup;
mod decision_metrics;
mod door_metrics;
mod exposition;
mod fleet_metrics;
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

pub use ask::{backup, correspondents, counts, forget_reports, order, reports, spoken_of, status, vouch};
pub use exposition::METRICS_TYPE;
pub use ordered::{Allow, Given, KnowMailing, KnownBy, Order, Ordered};
pub use report::report;
pub use reported::{MAX_REPORTED, MAX_REPORTER, Report, Reported, TakeReport};
pub use reports::{NameReporter, ReportsAsked, Whose};
pub use serve::Control;
pub use status::{
    ClientState, ClientStatus, DISK_PATIENCE, Daemon, DaemonStatus, Disk, Parts, RefusedStatus,
};
