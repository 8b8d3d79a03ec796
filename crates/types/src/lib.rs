// SPDX-License-Identifier: GPL-3.0-or-later
//! The types that several crates of bulkmark share: signatures and the key that makes them, reporters, client networks; and escaping of text
//! from outside for logs, terminals and pages.
//!
//! A leaf: it depends on neither mail nor ledgers, so a change in reading mail recompiles no database, and vice versa.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod escape;
mod foreign;
mod key;
mod part;
mod provenance;
mod reporters;
mod signature;
mod sources;
mod time;

pub use escape::{escaped, is_invisible, plain, plain_bytes, remote_text, visible};
pub use foreign::{Foreign, foreign};
pub use key::{FederationKey, KeyError};
pub use part::part;
pub use provenance::{LetterOrigin, Provenance, stray_by};
pub use reporters::{ReporterId, ReporterKind, UNIT, correspondence, nomination, revocation, weigh};
pub use signature::{Kind, LowInformation, ParseSignatureError, Signature};
pub use sources::{BUCKETS, ClientNetwork, PRESENT, message_count, outbound, source_bucket, source_count};
pub use time::{LAST_TIME, writable_time};
