// SPDX-License-Identifier: GPL-3.0-or-later
//! What a daemon did since it was started, for metrics and the status page.
//!
//! Those who do it count here; whoever is asked reads. Counting costs a message some atomic additions. What only the page shows,
//! `recent` and `bulk`, is kept behind locks that are held for a moment, and only where there is a page.

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
mod words;

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
pub use words::{Became, Words};
