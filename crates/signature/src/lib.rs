// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures of a message. docs/signatures.md specifies the canonical forms.
//!
//! Pure: no file, no socket, no clock. It reads messages with `bulkmark-mail` and knows no ledger: its caller asks one and passes the
//! answers ([`near::Seen`]).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod body;
mod canary;
mod groups;
mod guard;
mod message;
pub mod near;
mod payload;
mod settings;
mod text;

pub use body::body;
pub use canary::{Canary, InvalidCanary};
pub use groups::{Groups, Membership};
pub use message::{Signatures, signatures};
pub use settings::Settings;
