// SPDX-License-Identifier: GPL-3.0-or-later
//! From a message to what is said of it: the one way that everybody walks who judges a message.
//!
//! ```text
//! Envelope, Content -> Inquiry (counts of signatures) -> Counts -> Finding -> Outcome: header, reply; fields of a log line
//! ```
//!
//! Whoever judges, the milter or a command, brings an [`Envelope`] and the [`Content`]. An [`Inquiry`] says what to report to the
//! ledger and what to ask it, in a few steps, so that the caller may wait for the answers as it likes.
//!
//! Pure: no clock, no file, no socket. It knows `bulkmark-signature` and `bulkmark-policy`, and no ledger.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod allowed;
mod answer;
mod because;
mod content;
mod earlier;
mod elsewhere;
mod envelope;
mod fields;
mod finding;
mod from_where;
mod header;
mod hearing;
#[cfg(test)]
mod inquiries;
mod inquiry;
#[cfg(test)]
mod networks;
mod outcome;
mod question;
mod reason;
#[cfg(test)]
mod recipients;
mod rules;
mod sender;
mod settled;
mod trail;

pub use allowed::is_of;
pub use answer::{Answer, BodyCount, Missed, NearCount, SpamWeight};
pub use because::because;
pub use content::Content;
pub use earlier::Earlier;
pub use elsewhere::{questions, to_verify, wanted_by};
pub use envelope::Envelope;
pub use fields::{account_line, fields, log_line};
pub use finding::{Counted, Finding};
pub use from_where::FromWhere;
pub use header::{HeaderName, is_held_for_correspondent};
pub use hearing::Hearing;
pub use inquiry::{Inquiry, Mode};
pub use outcome::{Outcome, Reply};
pub use question::Question;
pub use reason::{Exempt, Unknown};
pub use rules::Rules;
pub use settled::Settled;
