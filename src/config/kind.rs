// SPDX-License-Identifier: GPL-3.0-or-later
//! Whose configuration a file is.

use super::error::ConfigError;
use super::in_force::{MILTER_EXAMPLE, SERVER_EXAMPLE};
use super::milter::DEFAULT_PATH;
use super::server::SERVER_PATH;
use super::source::Source;
use std::cmp::Ordering;
use std::fmt;
use std::path::Path;

/// One of the two daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `bulkmark milter`
    Milter,
    /// `bulkmark server`
    Server,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Milter => "milter",
            Self::Server => "server",
        })
    }
}

/// Keys of the first level that only a server's file has, and has no default for.
const SERVER_ONLY: [&str; 1] = ["tls"];

impl Kind {
    /// Whose file this is: its name says it, as that of the packages does, or else its keys, or else a part of its name.
    ///
    /// # Errors
    /// When the name does not say it, and the file cannot be read, or is not TOML.
    pub fn of(path: &Path) -> Result<Self, ConfigError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match &*name {
            "milter" => return Ok(Self::Milter),
            "server" => return Ok(Self::Server),
            _ => (),
        }
        let table = Source::read(path)?.parse::<toml::Table>()?;
        let keys = |example: &str| example.parse::<toml::Table>().unwrap_or_default();
        let (milter, server) = (keys(MILTER_EXAMPLE), keys(SERVER_EXAMPLE));
        let of_server = |key: &&String| server.contains_key(*key) || SERVER_ONLY.contains(&&***key);
        let only_server = table.keys().filter(of_server).filter(|key| !milter.contains_key(*key)).count();
        let only_milter = table.keys().filter(|key| milter.contains_key(*key) && !of_server(key)).count();
        Ok(match only_server.cmp(&only_milter) {
            Ordering::Greater => Self::Server,
            Ordering::Equal if name.contains("server") => Self::Server,
            Ordering::Less | Ordering::Equal => Self::Milter,
        })
    }

    /// Where its file is unless a command is told otherwise.
    #[must_use]
    pub const fn default_path(self) -> &'static str {
        match self {
            Self::Milter => DEFAULT_PATH,
            Self::Server => SERVER_PATH,
        }
    }

    /// Its commented configuration, which has every key.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::Milter => MILTER_EXAMPLE,
            Self::Server => SERVER_EXAMPLE,
        }
    }
}
