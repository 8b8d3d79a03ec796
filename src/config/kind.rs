// SPDX-License-Identifier: GPL-3.0-or-later
//! Whose configuration a file is.

use super::doors::{self, DOORS_PATH};
use super::error::ConfigError;
use super::in_force::{MILTER_EXAMPLE, SERVER_EXAMPLE};
use super::milter::{Checked, DEFAULT_PATH, load, load_doors};
use super::server::SERVER_PATH;
use super::source::Source;
use std::cmp::Ordering;
use std::fmt;
use std::path::Path;

/// One of the daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `bulkmark milter`
    Milter,
    /// `bulkmark doors`: a milter's daemon without its listener
    Doors,
    /// `bulkmark server`
    Server,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
            "doors" => return Ok(Self::Doors),
            "server" => return Ok(Self::Server),
            _ => (),
        }
        let source = Source::read(path)?;
        let table = source.parse::<toml::Table>()?;
        let keys = |example: &str| example.parse::<toml::Table>().unwrap_or_default();
        let (milter, server) = (keys(MILTER_EXAMPLE), keys(SERVER_EXAMPLE));
        let of_server = |key: &&String| server.contains_key(*key) || SERVER_ONLY.contains(&&***key);
        let only_server = table.keys().filter(of_server).filter(|key| !milter.contains_key(*key)).count();
        let only_milter = table.keys().filter(|key| milter.contains_key(*key) && !of_server(key)).count();
        Ok(match only_server.cmp(&only_milter) {
            Ordering::Greater => Self::Server,
            Ordering::Equal if name.contains("server") => Self::Server,
            Ordering::Less | Ordering::Equal if doors::is_one(path, &source) => Self::Doors,
            Ordering::Less | Ordering::Equal => Self::Milter,
        })
    }

    /// The name of its command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Milter => "milter",
            Self::Doors => "doors",
            Self::Server => "server",
        }
    }

    /// Where its file is unless a command is told otherwise.
    #[must_use]
    pub const fn default_path(self) -> &'static str {
        match self {
            Self::Milter => DEFAULT_PATH,
            Self::Doors => DOORS_PATH,
            Self::Server => SERVER_PATH,
        }
    }

    /// A configuration that has every key with its default, or commented out where there is none.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Milter => MILTER_EXAMPLE,
            Self::Doors => doors::example(),
            Self::Server => SERVER_EXAMPLE,
        }
    }
}

/// Reads and checks the file at `path` and the files that it names, for a daemon of this kind, which takes no file of the other one: a
/// milter, or doors alone.
///
/// # Errors
/// [`ConfigError`], which names the place.
pub fn load_for(kind: Kind, path: &Path) -> Result<Checked, ConfigError> {
    if kind == Kind::Doors {
        if doors::is_named(path) {
            return load_doors(path);
        }
        let what = "expected a name with \"doors\" in it, such as doors.toml, by which all commands know that this is no milter's file";
        return Err(ConfigError::file(path, what.to_owned()));
    }
    let checked = load(path)?;
    if checked.file.has_milter() {
        return Ok(checked);
    }
    let what = "this is a file of `bulkmark doors`, as its name says: it has no listener for a mail server";
    Err(ConfigError::file(path, what.to_owned()))
}
