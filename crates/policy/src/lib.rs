// SPDX-License-Identifier: GPL-3.0-or-later
//! The decision on a message by its counts: white list, threshold, action.
//!
//! Pure: no clock, no file, no socket. It uses `bulkmark-mail` and `bulkmark-trust`, but neither the making of signatures nor ledgers: counts
//! are numbers here.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod accounts;
mod authenticate;
mod authentication;
mod by_recipient;
mod condition;
mod correspondents;
mod decide;
mod despite;
mod entries;
mod exempt;
mod facts;
mod fraction;
mod held;
mod joined;
mod mailbox;
mod matching;
mod name;
mod network;
mod one_or_many;
mod outbound;
mod overrides;
mod patterns;
mod persons;
mod policies;
mod recipients;
mod rehearsal;
mod rehearse;
mod reply;
mod reporters;
mod settings;
mod source;
mod sources;
mod suggest;
mod table;
mod traps;
mod unmatchable;
mod user_reports;
mod warnings;
mod weight;
mod whitelist;

pub use accounts::{AccountStatus, Accounts, Limits, Sent, Standing};
pub use authenticate::{Authenticate, Authentication, AuthservId, Method, NameServer};
pub use authentication::{Ignored, OnResult, VerifiedNames};
pub use correspondents::{Claim, Correspondence, Correspondents};
pub use decide::{Counts, Decision, Terms, Verdict, decide, settle};
pub use despite::Despite;
pub use exempt::ExemptClients;
pub use facts::Facts;
pub use fraction::Fraction;
pub use held::{Allowed, Held};
pub use mailbox::Mailboxes;
pub use matching::{Login, MatchSettings, MessageMatch, Name, Origin};
pub use network::Network;
pub use one_or_many::OneOrMany;
pub use outbound::OutboundSettings;
pub use overrides::{ActionOverrides, ThresholdOverrides};
pub use persons::Persons;
pub use policies::{DEFAULT, Defaults, MAX_POLICIES, Party, Policies, Policy, PolicyRef, PolicySettings};
pub use recipients::RecipientPattern;
pub use rehearsal::{Rehearsal, Would};
pub use rehearse::{Rehearse, Time};
pub use reply::{RefusalReply, ReplyFields};
pub use reporters::Reporters;
pub use settings::{
    Action, Actions, MinSources, OnFailure, Per, Range, Threshold, Thresholds, WhiteListFiles,
};
pub use source::Match;
pub use sources::{Backing, Backings, Sources};
pub use suggest::suggestion;
pub use table::{Answers, Protocol, Question, RemoteTable, is_wanted};
pub use traps::{TrapEntry, TrapResult, TrapSettings, Traps};
pub use unmatchable::{Unmatchable, host_bits, unmatchable};
pub use user_reports::UserReportSettings;
pub use warnings::warnings;
pub use weight::Weight;
pub use whitelist::{WhiteList, WhiteListError};
