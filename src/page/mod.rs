// SPDX-License-Identifier: GPL-3.0-or-later
//! What people and Prometheus see of a running daemon, over HTTP on this machine.
//!
//! `settings` is `[status]` of the configuration, `host` keeps strange web sites away, and `serve` answers.

mod host;
mod serve;
mod settings;

pub use serve::{Page, PageError};
pub use settings::{Listen, Settings};
