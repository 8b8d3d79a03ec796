// SPDX-License-Identifier: GPL-3.0-or-later
//! From a message to its verdict: every program that judges a message does it this way.
//!
//! ```text
//! Envelope, Content -> Inquiry (counts of signatures) -> Counts -> Finding -> Outcome: header, reply; fields of a log line
//! ```
//!
//! The caller, the milter or a command, passes an [`Envelope`] and the [`Content`]. An [`Inquiry`] returns reports and questions for the
//! ledger, in a few steps, so that the caller can wait for the answers in its own way.
//!
//! Pure: no clock, no file, no socket. It uses `bulkmark-signature` and `bulkmark-policy`, but no ledger.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod allowed;
mod answer;
mod circumstances;
mod content;
mod envelope;
mod fields;
mod finding;
mod header;
mod inquiry;
#[cfg(test)]
mod inquiry_tests;
mod lookups;
mod old_key;
mod outcome;
mod question;
mod reason;
#[cfg(test)]
mod recipient_tests;
mod report_inquiry;
mod rules;
mod sender;
mod sentence;
mod source_cache;
mod source_inquiry;
mod source_networks;
#[cfg(test)]
mod source_tests;

pub use allowed::belongs_to;
pub use answer::{Answer, BodyCount, NearCount, SpamWeight};
pub use circumstances::{Circumstances, Missed};
pub use content::Content;
pub use envelope::Envelope;
pub use fields::{account_line, fields, log_line};
pub use finding::{Counted, Finding};
pub use header::{HeaderName, is_held_for_correspondent};
pub use inquiry::{Inquiry, Mode};
pub use lookups::{questions, to_verify, wanted_by};
pub use old_key::OldKeyCounts;
pub use outcome::{Outcome, Reply};
pub use question::Question;
pub use reason::{Exempt, Unknown};
pub use report_inquiry::ReportInquiry;
pub use rules::Rules;
pub use sentence::sentence;
pub use source_cache::SourceCache;
pub use source_networks::SourceNetworks;
