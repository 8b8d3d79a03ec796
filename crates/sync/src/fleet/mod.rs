// SPDX-License-Identifier: GPL-3.0-or-later
//! The tasks of a fleet's machine, with a replicated log in the place of servers.
//!
//! `follow` applies the log's steps to the ledger; `cursor` classifies each, and `ahead` detects that no more will come. `push` appends a
//! milter's reports to the log, and `outbox` tracks those on their way. `aggregate` makes steps: `queue` has the batches that it read,
//! `basis` determines which batches a step counts, `turns` when it is made, and `lost` finds the steps that the log lost. `guard` ends
//! connections of members that block the log. `snapshot` takes all counts at once; `snapshots` puts them into the log, and checks those of
//! other aggregators. `state` is shared by the tasks, and shown to people, with `anomalies` and `reporters`. `publish` puts this machine's
//! state into the log (`state_report`), and reads those of all (`members`).

mod aggregate;
mod ahead;
mod anomalies;
mod basis;
mod cursor;
mod follow;
mod guard;
mod lost;
mod members;
mod outbox;
mod publish;
mod push;
mod queue;
mod reporters;
mod snapshot;
mod snapshots;
mod state;
mod state_report;
mod turns;

pub use aggregate::aggregate;
pub use follow::follow;
pub use members::{MemberState, MemberStatus, Members};
pub use publish::{PublishSettings, gather, publish_state};
pub use push::push;
pub use reporters::ReporterStatus;
pub use state::{Fleet, FleetStatus};
pub use state_report::{Condition, FleetMailing, MAX_MAILINGS, MemberRole};
