// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon to which a configuration file belongs.

use super::error::ConfigError;
use super::in_force::{MILTER_EXAMPLE, SERVER_EXAMPLE};
use super::interfaces::{self, INTERFACES_PATH};
use super::milter::{Checked, DEFAULT_PATH, load};
use super::server::SERVER_PATH;
use super::source::Source;
use crate::milter::NONE;
use std::cmp::Ordering;
use std::fmt;
use std::path::Path;

/// One of the daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `bulkmark milter`
    Milter,
    /// `bulkmark interfaces`: a milter's daemon without its listener
    Interfaces,
    /// `bulkmark server`
    Server,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Keys of the first level that only a server has, and that have no default.
const SERVER_ONLY: [&str; 1] = ["tls"];

impl Kind {
    /// Recognises the daemon by the content of its file: interfaces have listen = "none", and a server and a milter have keys that the other
    /// lacks. If these do not decide, the file's name does.
    ///
    /// # Errors
    /// If the file cannot be read, or is not TOML.
    pub fn of(path: &Path) -> Result<Self, ConfigError> {
        let table = Source::read(path)?.parse::<toml::Table>()?;
        if table.get("listen").and_then(toml::Value::as_str) == Some(NONE) {
            return Ok(Self::Interfaces);
        }
        let keys = |example: &str| example.parse::<toml::Table>().unwrap_or_default();
        let (milter, server) = (keys(MILTER_EXAMPLE), keys(SERVER_EXAMPLE));
        let is_server_key = |key: &&String| server.contains_key(*key) || SERVER_ONLY.contains(&&***key);
        let only_server = table.keys().filter(is_server_key).filter(|key| !milter.contains_key(*key)).count();
        let only_milter = table.keys().filter(|key| milter.contains_key(*key) && !is_server_key(key)).count();
        let is_named = path.file_stem().unwrap_or_default().to_string_lossy().contains("server");
        Ok(match only_server.cmp(&only_milter) {
            Ordering::Greater => Self::Server,
            Ordering::Equal if is_named => Self::Server,
            Ordering::Less | Ordering::Equal => Self::Milter,
        })
    }

    /// Returns the name of its command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Milter => "milter",
            Self::Interfaces => "interfaces",
            Self::Server => "server",
        }
    }

    /// Returns the default path of its file.
    #[must_use]
    pub const fn default_path(self) -> &'static str {
        match self {
            Self::Milter => DEFAULT_PATH,
            Self::Interfaces => INTERFACES_PATH,
            Self::Server => SERVER_PATH,
        }
    }

    /// Returns a configuration that has every key with its default, or commented out if there is none.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Milter => MILTER_EXAMPLE,
            Self::Interfaces => interfaces::example(),
            Self::Server => SERVER_EXAMPLE,
        }
    }
}

/// Reads and checks the file at `path` and the files that it names, for a daemon of this kind: a milter, or interfaces alone. A file of the
/// other kind is an error.
///
/// # Errors
/// [`ConfigError`], which names the place.
pub fn load_for(kind: Kind, path: &Path) -> Result<Checked, ConfigError> {
    let checked = load(path)?;
    let message = match (kind, checked.file.has_milter()) {
        (Kind::Interfaces, true) => {
            "expected listen = \"none\" before the first table, by which all commands know that no mail server asks this daemon"
        }
        (Kind::Milter, false) => {
            "found listen = \"none\", which is for `bulkmark interfaces`; expected an address for a mail server"
        }
        _ => return Ok(checked),
    };
    Err(ConfigError::file(path, message.to_owned()))
}
