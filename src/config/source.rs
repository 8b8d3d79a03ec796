// SPDX-License-Identifier: GPL-3.0-or-later
//! The text of a configuration file, and the places of keys in it.

use super::error::{ConfigError, in_words};
use crate::sync::Upstream;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file that was read.
pub(super) struct Source {
    pub(super) path: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConfigError::file(path, format!("cannot read: {e}")))?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// The text as `T`, whose fields refuse what they do not know.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let at = |span, key, message| ConfigError::at(&self.path, &self.text, span, key, message);
        let deserializer = toml::Deserializer::parse(&self.text)
            .map_err(|e| at(e.span(), None, format!("not valid TOML: {}", e.message())))?;
        serde_path_to_error::deserialize(deserializer).map_err(|e| {
            let (message, unknown) = in_words(e.inner().message());
            let mut path = e.path().to_string();
            if let Some(name) = unknown
                && path.rsplit('.').next() != Some(&*name)
            {
                path = if path == "." { name } else { format!("{path}.{name}") };
            }
            at(e.inner().span(), Some(path).filter(|path| path != "."), message)
        })
    }

    /// An error of the value of `key` (tables and numbers of entries before it, joined by dots). Where the key is not in the file, its default
    /// does not go with something else, and the error names no place.
    pub(super) fn error(&self, key: &str, message: String) -> ConfigError {
        ConfigError::at(&self.path, &self.text, self.span(key), Some(key.to_owned()), message)
    }

    /// Checks the addresses of other servers, which the list `key` has.
    pub(super) fn check_servers(&self, key: &str, servers: &[Upstream]) -> Result<(), ConfigError> {
        for (i, server) in servers.iter().enumerate() {
            server.check().map_err(|message| self.error(&format!("{key}.{i}.url"), message))?;
        }
        Ok(())
    }

    fn span(&self, key: &str) -> Option<Range<usize>> {
        let root = toml::de::DeTable::parse(&self.text).ok()?;
        let mut names = key.split('.');
        let mut value = root.get_ref().get(names.next()?)?;
        for name in names {
            value = match name.parse::<usize>() {
                Ok(i) => value.get_ref().get(i)?,
                Err(_) => value.get_ref().get(name)?,
            };
        }
        Some(value.span())
    }
}
