// SPDX-License-Identifier: GPL-3.0-or-later
//! A machine of a fleet: what it does with a replicated log in the place of servers.
//!
//! `follow` applies the log's steps to the ledger; `cursor` says what each is to it, `ahead` when none is to come. `push` brings a
//! milter's reports into the log, and `outbox` knows which of them are on their way. `aggregate` makes steps: `queue` has the batches
//! that it read, `basis` says on what a step counts, `turns` when it is made, and `lost` gives the log back the steps that it lost.
//! `guard` ends what members hold open
//! in the log. `snapshot` takes all at once; `snapshots` puts it, and reads
//! what others put. `state` is what they tell one another, and people.
//! `tell` says in the log how this machine is (`word`), and reads what all others say (`members`).

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
