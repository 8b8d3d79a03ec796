// SPDX-License-Identifier: GPL-3.0-or-later
//! The protocol of Razor2, for razor-agents and for the plugin of SpamAssassin: discovery, catalogue and nomination at one address.
//!
//! Its clients make signatures themselves and tell no message. `lines` finds lines and batches, `request` reads one line. `session` is what
//! one client said of itself, `answer` what it is told, `serve` answers on a connection. `accounts` are its users, `secret` how they prove who they
//! are. What users say of signatures is counted as user reports of messages is, so the whole federation knows.

mod accounts;
mod answer;
mod lines;
mod request;
mod secret;
mod serve;
mod session;

pub(super) use accounts::{Accounts, FILE as ACCOUNTS};
pub use lines::{Asked, Bad, Lines};
pub use request::{Digest, Request};
pub(super) use serve::{Context, connection};
