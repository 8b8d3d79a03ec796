// SPDX-License-Identifier: GPL-3.0-or-later
//! Whose configuration a file is.

use super::error::ConfigError;
use super::in_force::{MILTER_EXAMPLE, SERVER_EXAMPLE};
use super::source::Source;
use super::{DEFAULT_PATH, SERVER_PATH};
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
    /// Whose file this is, by its name or else by its content.
    ///
    /// # Errors
    /// When the name does not say it, and the file cannot be read, or is not TOML.
    pub fn of(path: &Path) -> Result<Self, ConfigError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match (name.contains("milter"), name.contains("server")) {
            (true, false) => return Ok(Self::Milter),
            (false, true) => return Ok(Self::Server),
            _ => (),
        }
        let table = Source::read(path)?.parse::<toml::Table>()?;
        let keys = |example: &str| example.parse::<toml::Table>().unwrap_or_default();
        let (milter, server) = (keys(MILTER_EXAMPLE), keys(SERVER_EXAMPLE));
        let (mut of_milter, mut of_server) = (0, 0);
        for key in table.keys() {
            let is_server = server.contains_key(key) || SERVER_ONLY.contains(&&**key);
            of_milter += usize::from(milter.contains_key(key) && !is_server);
            of_server += usize::from(is_server && !milter.contains_key(key));
        }
        Ok(if of_server > of_milter { Self::Server } else { Self::Milter })
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
