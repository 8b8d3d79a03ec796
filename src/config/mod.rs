// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration files: TOML text to checked settings, or an error that names file, line, column and key.
//!
//! Each room has a settings struct of its own; here they are put together, filled, and checked against one another.

mod error;
mod in_force;
mod milter;
mod server;
mod source;

pub use error::ConfigError;
pub use in_force::{MILTER_EXAMPLE, SERVER_EXAMPLE, in_force, keep};
pub use milter::{Checked, Counting, DEFAULT_PATH, MilterFile, Parts, load, load_parts, read_bounded};
pub use server::{SERVER_PATH, ServerFile, ServerStatus, ServerSync, load_server, load_server_parts};
