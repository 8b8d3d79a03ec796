// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration files: TOML text to checked settings, or an error that names file, line, column and key.
//!
//! Each room has its own settings struct; here they are combined, filled, and checked against one another.

mod error;
mod gone;
mod idle;
mod in_force;
mod interfaces;
mod kind;
mod members;
mod merge;
mod milter;
mod pieces;
mod places;
mod policies;
mod server;
mod settings;
mod source;
mod warnings;

pub use error::ConfigError;
pub use in_force::{SERVER_EXAMPLE, in_force, keep};
pub use interfaces::INTERFACES_PATH;
pub use kind::{Kind, load, load_for, load_parts, load_server, load_server_parts};
pub use members::load_members;
pub use milter::{Checked, Counting, DEFAULT_PATH, MilterFile, Parts};
pub use pieces::{files, pieces_directory};
pub use policies::read_bounded;
pub use server::{PLAIN_HTTP, SERVER_PATH, ServerFile, ServerStatus, ServerSync};
pub use settings::{Overridden, Setting, Shown, settings};
pub use warnings::{CertificatesError, Doubt, Tested, test_certificates, warnings};
