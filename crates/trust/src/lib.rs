// SPDX-License-Identifier: GPL-3.0-or-later
//! Whom to believe: what is known of those who nominate and revoke, and what follows for the weight of their word.
//!
//! Pure: no file, no clock, and whole numbers only, so that every machine comes to the same results. docs/trust.md has the model, where it comes from, and what it withstands.

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
mod voice;

pub use case::{Case, Heard};
pub use outcome::{JUDGED_AFTER, Judgement, Outcome};
pub use settings::{Settings, SettingsError};
pub use standing::Standing;
pub use standings::{MAX_STANDINGS, Standings};
pub use voice::{Side, Voice};
