// SPDX-License-Identifier: GPL-3.0-or-later
//! The status page and metrics of a running daemon, over HTTP on this machine.
//!
//! `settings` is `[status]` of the configuration. `serve` answers requests for `/metrics`, `/healthz` and the page, whose files are in `static`.
//! A `snapshot` has the page's values: `/status.json` sends them once, and `/events` whenever they change. `history` keeps the data of the
//! charts over a restart.

mod history;
mod serve;
mod settings;
mod snapshot;

pub use history::History;
pub use serve::{Page, PageError};
pub use settings::Settings;
