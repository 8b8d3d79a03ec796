// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter: what the MTA asks about every message.
//!
//! [`serve`] runs the sessions on a bound [`Socket`]. A session (`session`) collects a message; at its end the ledger is asked as
//! [`verdict`](crate::verdict) says (`judge`), and the MTA is answered with a header or a refusal (`callbacks`).

mod budget;
mod callbacks;
mod correspondents;
mod crowd;
mod daily;
mod judge;
mod judgement;
mod later;
mod listen;
mod listeners;
mod look_back;
mod people;
mod proofs;
mod readers;
mod record;
mod report;
mod serve;
mod service;
mod session;
mod stream;
mod thin;
mod traps;

pub use listen::{BindError, Mode, Socket};
pub use listeners::{ListenerSettings, Listeners, MAX_LISTENERS};
pub use look_back::look_back;
pub use report::{Refused, Taken, Word, take_report, weighing};
pub use serve::{Bounds, serve};
pub use service::Service;
