// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon to which a configuration file belongs.

use super::error::ConfigError;
use super::in_force::{MILTER_EXAMPLE, SERVER_EXAMPLE};
use super::interfaces::{self, INTERFACES_PATH};
use super::milter::{self, Checked, DEFAULT_PATH, Parts};
use super::server::{self, SERVER_PATH, ServerFile};
use super::source::Source;
use crate::milter::NONE;
use crate::net::Address;
use bulkmark_types::FederationKey;
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
    /// lacks. If these do not decide, the file's name does, or else the form of `listen`.
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
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // `HOST:PORT`, without the `inet:` of Postfix.
        let listens_plainly = || {
            matches!(
                table.get("listen").and_then(toml::Value::as_str).map(str::parse),
                Some(Ok(Address::Tcp(_)))
            )
        };
        let is_server = match only_server.cmp(&only_milter) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal if name.contains("server") => true,
            Ordering::Equal => !name.contains(Self::Milter.name()) && listens_plainly(),
        };
        Ok(if is_server { Self::Server } else { Self::Milter })
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

/// Reads and checks the file of a milter or interfaces at `path`, and the files that it names.
///
/// # Errors
/// [`ConfigError`], which names the place.
pub fn load(path: &Path) -> Result<Checked, ConfigError> {
    or_other_kind(path, Kind::Milter, milter::load(path))
}

/// The same, with a separate result for each of the files that it names.
///
/// # Errors
/// If the file at `path` itself cannot be used.
pub fn load_parts(path: &Path) -> Result<Parts, ConfigError> {
    or_other_kind(path, Kind::Milter, milter::load_parts(path))
}

/// Reads and checks the server's file at `path`, and the key that it names.
///
/// # Errors
/// [`ConfigError`], which names the place.
pub fn load_server(path: &Path) -> Result<(ServerFile, FederationKey), ConfigError> {
    let (file, key) = load_server_parts(path)?;
    Ok((file, key?))
}

/// The same, with a separate result for the key.
///
/// # Errors
/// If the file at `path` itself cannot be used.
pub fn load_server_parts(
    path: &Path,
) -> Result<(ServerFile, Result<FederationKey, ConfigError>), ConfigError> {
    or_other_kind(path, Kind::Server, server::load_server_parts(path))
}

/// Replaces the error of a file that is another daemon's: a single key of it would be corrected in vain.
fn or_other_kind<T>(path: &Path, wanted: Kind, read: Result<T, ConfigError>) -> Result<T, ConfigError> {
    read.map_err(|error| match Kind::of(path) {
        Ok(found) if (found == Kind::Server) != (wanted == Kind::Server) => {
            let message =
                format!("found the configuration of bulkmark {found}, expected that of bulkmark {wanted}");
            ConfigError::file(path, message)
        }
        _ => error,
    })
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
