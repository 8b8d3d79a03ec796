// SPDX-License-Identifier: GPL-3.0-or-later
//! What a count means for a message: white list, threshold, action. Pure: no clock, no file, no socket.

mod decide;
mod network;
mod patterns;
mod reply;
mod settings;
mod whitelist;

pub use decide::{Counts, Decision, Facts, Verdict, decide};
pub use network::Network;
pub use reply::{RejectReply, ReplyFields, TempfailReply};
pub use settings::{Action, Actions, Per, Threshold, Thresholds, WhiteListFiles};
pub use whitelist::{Match, WhiteList, WhiteListError};
