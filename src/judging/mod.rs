// SPDX-License-Identifier: GPL-3.0-or-later
//! The one way of a message to its verdict, whoever brings it: the milter, or another door.
//!
//! A door collects a [`Message`], within the bounds of all (`budget`). [`judge`] has it read (`readers`), has the ledger asked as
//! `bulkmark-verdict` says, and tells log, metrics and page of it; [`explain`] says why, to whoever asks for that. What people and traps say of mail goes by
//! [`take_report`]. [`Service`] is what all have in common.

mod budget;
mod correspondents;
mod daily;
mod digests;
mod explain;
mod judge;
mod judgement;
mod later;
mod line;
mod look_back;
mod message;
mod people;
mod proofs;
mod pyzor;
mod readers;
mod record;
mod refused;
mod report;
mod service;
mod thin;
mod trap_networks;
mod traps;
mod turns;
mod twice;

pub use budget::Account as Hold;
pub use digests::{Opinion, opinions, take_digest};
pub use explain::{
    Case, Counted, Explained, Explanation, Judged, People, Source, Thresholds, decides, earlier_here, exempt,
    explain, find,
};
pub use judge::judge;
pub use judgement::Judgement;
pub use look_back::look_back;
pub use message::{MAX_FORGED, MAX_RECIPIENTS, Message, address};
pub use pyzor::{Once, ParseDigestError, PyzorDigest, Teller, digest_counts, take_pyzor};
pub use report::{Refused, Taken, Word, mailing_of, take_report, weighing};
pub use service::Service;
