// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration files: TOML text to checked settings, or an error that names file, line, column and key.
//!
//! Each room has a settings struct of its own; here they are put together, filled, and checked against one another.

mod error;
mod milter;
mod server;
mod source;

pub use error::ConfigError;
pub use milter::{Checked, Counting, DEFAULT_PATH, MilterFile, Parts, load, load_parts};
pub use server::{SERVER_PATH, ServerFile, ServerSync, load_server, load_server_parts};
