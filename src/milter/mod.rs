// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter: what the MTA asks about every message.
//!
//! [`serve`] runs the sessions on a bound [`Socket`]. A session (`session`) collects a message, has it judged
//! (`judge`), and answers the MTA with a header (`header`) or a refusal.

mod budget;
mod callbacks;
mod counting;
mod header;
mod judge;
mod listen;
mod rules;
mod serve;
mod session;
mod stream;
mod told;

pub use counting::report;
pub use header::HeaderName;
pub use listen::{BindError, Mode, Socket};
pub use rules::{OnFailure, Rules};
pub use serve::{Service, serve};
