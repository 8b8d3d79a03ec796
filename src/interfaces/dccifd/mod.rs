// SPDX-License-Identifier: GPL-3.0-or-later
//! The protocol of DCC's interface daemon, for the clients that SpamAssassin, rspamd, Exim and Haraka have.
//!
//! A connection is one message: a few lines of options and envelope (`request`), then the message until its sender says no more. The answer is a letter, one more
//! for each recipient, and a header line with counts (`reply`). Words and counts are DCC's, and what is counted is ours: docs/interfaces.md says how they go together.

mod reply;
mod request;
mod serve;

pub use request::{Bad, Preamble, Request, Shows};
pub(super) use serve::{Context, connection};
