// SPDX-License-Identifier: GPL-3.0-or-later
//! The Pyzor door: what `pyzord` is for Pyzor's clients, with counts that a whole federation shares.
//!
//! `request` reads a datagram, `accounts` says who signed it and what they may do, `rate` how often an address may ask, `answer` writes
//! what goes back, `serve` is the loop over the socket. What is counted, `judging::digest` knows.

mod accounts;
mod answer;
mod rate;
mod request;
mod serve;

pub(super) use accounts::Accounts;
pub use request::{Bad, Op, Request};
pub(super) use serve::{Context, serve};
