// SPDX-License-Identifier: GPL-3.0-or-later
//! Logs. Everybody logs through the `log` crate; here the lines go to syslog, the journal or standard error.

mod json;
mod limit;
mod logger;
mod settings;
mod sink;

pub use json::as_text;
pub use logger::{init, lines_dropped, set_levels};
pub use settings::{Facility, Format, Level, Messages, Settings, Target};
pub use sink::probe;
