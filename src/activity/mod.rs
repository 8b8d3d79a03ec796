// SPDX-License-Identifier: GPL-3.0-or-later
//! The activity of a daemon since it was started, for metrics and the status page.
//!
//! Other rooms add to these counters, and metrics and page read them. Counting costs a message some atomic additions. `recent` and `bulk`, which
//! only the page shows, are behind locks that are held briefly, and only if there is a page.

mod connections;
mod counters;
mod histogram;
mod interfaces;
mod load;
mod mailings;
mod policies;
mod recent;
mod relays;
mod spans;
mod tasks;
mod traps;
mod user_reports;
mod webhook;

pub use bulkmark_policy::AccountStatus;
pub use connections::{Connections, Open};
pub use counters::{Activity, Judged, MessageCount};
pub use histogram::Histogram;
pub use interfaces::{Done, Interface, InterfaceStatus, Interfaces};
pub use load::Load;
pub use mailings::{Mailing, Seen, StoredMailing};
pub use policies::{Policies, PolicyStatus};
pub use recent::{Recent, Record};
pub use relays::LikelyRelay;
pub use spans::{HOURS, MINUTES, SpanCount, Spans};
pub use tasks::Tasks;
pub use traps::{TrapStatus, WantedByTrap};
pub use user_reports::{ReportResult, UserReports};
pub use webhook::{Webhook, WebhookStatus};
