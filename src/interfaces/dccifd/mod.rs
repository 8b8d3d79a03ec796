// SPDX-License-Identifier: GPL-3.0-or-later
//! The protocol of DCC's interface daemon, for clients such as SpamAssassin, rspamd, Exim and Haraka.
//!
//! A connection carries one message: a few lines of options and envelope (`request`), then the message until the client closes its side. The
//! answer is a letter for the message, one for each recipient, and a header line with counts (`reply`). The answer's terms are DCC's, the
//! counts are ours: docs/interfaces.md compares them.

mod reply;
mod request;
mod serve;

pub use request::{Bad, Preamble, Request, Shows};
pub(super) use serve::{Context, connection};
