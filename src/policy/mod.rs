// SPDX-License-Identifier: GPL-3.0-or-later
//! What a count means for a message: white list, threshold, action. Pure: no clock, no file, no socket.

mod decide;
mod facts;
mod network;
mod patterns;
mod reply;
mod settings;
mod source;
mod whitelist;

pub use decide::{Counts, Decision, Verdict, decide};
pub use facts::Facts;
pub use network::Network;
pub use reply::{RejectReply, ReplyFields, TempfailReply};
pub use settings::{Action, Actions, OnFailure, Per, Threshold, Thresholds, WhiteListFiles};
pub use source::Match;
pub use whitelist::{WhiteList, WhiteListError};
