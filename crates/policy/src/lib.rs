// SPDX-License-Identifier: GPL-3.0-or-later
//! What a count means for a message: white list, threshold, action.
//!
//! Pure: no clock, no file, no socket. It knows `bulkmark-mail` and `bulkmark-trust`, and neither how signatures are made nor ledgers: counts
//! are numbers here.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod accounts;
mod authenticate;
mod authentication;
mod condition;
mod correspondents;
mod decide;
mod despite;
mod doubts;
mod entries;
mod exempt;
mod facts;
mod fraction;
mod held;
mod mailbox;
mod matching;
mod name;
mod network;
mod one_or_many;
mod outbound;
mod partial;
mod patterns;
mod people;
mod persons;
mod policies;
mod recipients;
mod rehearsal;
mod reply;
mod reporters;
mod settings;
mod source;
mod sources;
mod suggest;
mod table;
mod traps;
mod warnings;
mod weight;
mod whitelist;

pub use accounts::{AccountStatus, Accounts, Limits, Sent, Standing};
pub use authenticate::{Authenticate, Authentication, AuthservId, Method, NameServer};
pub use authentication::{Ignored, Proven, Tell};
pub use correspondents::{Claim, Correspondence, Correspondents};
pub use decide::{Counts, Decision, Terms, Verdict, decide, settle};
pub use despite::Despite;
pub use doubts::{Doubt, doubts, host_bits};
pub use exempt::ExemptClients;
pub use facts::Facts;
pub use fraction::Fraction;
pub use held::Held;
pub use mailbox::Mailboxes;
pub use matching::{Login, MatchSettings, MessageMatch, Name, Origin};
pub use network::Network;
pub use one_or_many::OneOrMany;
pub use outbound::OutboundSettings;
pub use partial::{SomeActions, SomeThresholds};
pub use people::PeopleSettings;
pub use persons::Persons;
pub use policies::{By, DEFAULT, Defaults, MAX_POLICIES, Party, Policies, Policy, PolicySettings};
pub use recipients::RecipientPattern;
pub use rehearsal::{Rehearsal, Would};
pub use reply::{RefusalReply, ReplyFields};
pub use reporters::Reporters;
pub use settings::{
    Action, Actions, MinSources, OnFailure, Per, Range, ShareBy, Threshold, Thresholds, WhiteListFiles,
};
pub use source::Match;
pub use sources::{Backing, Backings, Sources};
pub use suggest::suggestion;
pub use table::{Answers, Protocol, Question, RemoteTable, is_wanted};
pub use traps::{Sprung, TrapEntry, TrapSettings, Traps};
pub use warnings::warnings;
pub use weight::Weight;
pub use whitelist::{WhiteList, WhiteListError};
