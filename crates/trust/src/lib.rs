// SPDX-License-Identifier: GPL-3.0-or-later
//! Trust in reporters, and the weight of their user reports that follows from it.
//!
//! Pure: no file, no clock, and whole numbers only, so that every machine computes the same results. docs/trust.md describes the model, its
//! sources, and the attacks that it withstands.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]
#![forbid(unsafe_code)]

mod case;
mod outcome;
#[cfg(test)]
mod properties;
mod settings;
mod standing;
mod standings;
mod vote;

pub use case::{Case, Effect};
pub use outcome::{JUDGED_AFTER, Judgement, Outcome};
pub use settings::{Settings, SettingsError};
pub use standing::Standing;
pub use standings::{MAX_STANDINGS, Standings};
pub use vote::{Side, Vote};
