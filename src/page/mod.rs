// SPDX-License-Identifier: GPL-3.0-or-later
//! What people and Prometheus see of a running daemon, over HTTP on this machine.
//!
//! `settings` is `[status]` of the configuration, and `serve` answers: `/metrics`, `/healthz`,
//! and the page, whose files are in `static`. Its values are a `snapshot`, which `/status.json` has once and `/events` as it
//! changes; `history` keeps what the charts show over a restart.

mod history;
mod serve;
mod settings;
mod snapshot;

pub use history::History;
pub use serve::{Page, PageError};
pub use settings::Settings;
