// SPDX-License-Identifier: GPL-3.0-or-later
//! Logs. Everybody logs through the `log` crate; here the lines go to syslog, the journal or standard error.

mod limit;
mod logger;
mod settings;
mod sink;

pub use logger::{init, lines_dropped, set_levels};
pub use settings::{Facility, Level, Messages, Settings, Target};
pub use sink::probe;
