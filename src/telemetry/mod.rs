// SPDX-License-Identifier: GPL-3.0-or-later
//! Logs. All rooms log through the `log` crate; this one writes the lines to syslog, the journal or standard error.

mod json;
mod limit;
mod logger;
mod settings;
mod sink;

pub use json::as_text;
pub use logger::{init, lines_dropped, set_levels};
pub use settings::{Facility, Format, Level, Messages, Settings, Target};
pub use sink::probe;
