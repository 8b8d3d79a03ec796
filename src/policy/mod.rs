// SPDX-License-Identifier: GPL-3.0-or-later
//! What a count means for a message: white list, threshold, action. Pure: no clock, no file, no socket.

mod authentication;
mod condition;
mod decide;
mod entries;
mod facts;
mod mailbox;
mod name;
mod network;
mod patterns;
mod reply;
mod settings;
mod source;
mod sources;
mod table;
mod warnings;
mod whitelist;

pub use authentication::{Authenticate, Authentication, AuthservId, Ignored, Method, Proven, Tell};
pub use decide::{Counts, Decision, Verdict, decide};
pub use facts::Facts;
pub use mailbox::{Mailboxes, RecipientCase};
pub use network::Network;
pub use reply::{RejectReply, ReplyFields, TempfailReply};
pub use settings::{Action, Actions, MinSources, OnFailure, Per, Threshold, Thresholds, WhiteListFiles};
pub use source::Match;
pub use sources::{Backing, Backings, Sources};
pub use table::{Answers, Protocol, Question, RemoteTable, is_wanted};
pub use warnings::warnings;
pub use whitelist::{WhiteList, WhiteListError};
