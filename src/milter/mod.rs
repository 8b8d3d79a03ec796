// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter, which the MTA asks about every message.
//!
//! [`serve`] runs the sessions on a bound [`Socket`]. A session (`session`) collects a message; at its end it is
//! [judged](crate::judging), and the MTA is answered with a header or a refusal (`callbacks`).

mod callbacks;
mod incoming;
mod listen;
mod listeners;
mod place;
mod repair;
mod serve;
mod session;
mod stream;

pub use listen::{BindError, Socket};
pub use listeners::{ListenerSettings, Listeners, MAX_LISTENERS, NONE};
pub use serve::{Bounds, serve};
