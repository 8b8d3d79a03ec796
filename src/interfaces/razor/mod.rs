// SPDX-License-Identifier: GPL-3.0-or-later
//! The protocol of Razor2, for razor-agents and for the plugin of SpamAssassin: discovery, catalogue and nomination at one address.
//!
//! Its clients make signatures themselves and send no messages. `lines` finds lines and batches, `request` reads one line. `session` is the
//! state of one client, `answer` writes answers, `serve` handles a connection. `accounts` are its users, `secret` authenticates them. Reports
//! of signatures are counted like user reports of messages, so the whole federation gets them.

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
