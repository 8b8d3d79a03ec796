// SPDX-License-Identifier: GPL-3.0-or-later
//! The files of a configuration: `milter.toml`, and over it the pieces in `milter.d`.

use super::error::ConfigError;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The extension of pieces, by which files that editors and package managers leave beside them are ignored.
const EXTENSION: &str = "toml";

/// More files than anybody writes by hand; a directory with more is not one of pieces.
const MOST: usize = 200;

/// Returns the directory of the pieces that belong to the file at `path`: `/etc/bulkmark/milter.d` for `/etc/bulkmark/milter.toml`.
#[must_use]
pub fn pieces_directory(path: &Path) -> PathBuf {
    path.with_extension("d")
}

/// Returns the files of a configuration: the one at `path`, and its pieces in their order.
///
/// # Errors
/// If the directory of the pieces cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let mut all = vec![path.to_owned()];
    all.extend(find(path)?);
    Ok(all)
}

/// Returns the pieces of the file at `path` in the order of their names; none if there is no such directory.
///
/// # Errors
/// If the directory cannot be read, or has too many files.
pub(super) fn find(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let directory = pieces_directory(path);
    let failed = |e| ConfigError::file(&directory, format!("cannot read: {e}"));
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(e) => return Err(failed(e)),
    };
    let mut pieces = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if !is_hidden && Path::new(&name).extension().is_some_and(|e| e == EXTENSION) {
            pieces.push(directory.join(name));
        }
        if pieces.len() > MOST {
            return Err(ConfigError::file(&directory, format!("found more than {MOST} files")));
        }
    }
    pieces.sort();
    Ok(pieces)
}

/// Moves all places in the table, as if `by` bytes of text preceded it.
pub(super) fn moved(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    let key = |key: Spanned<_>| Spanned::new(key.span().start + by..key.span().end + by, key.into_inner());
    table.into_iter().map(|(name, value)| (key(name), moved_value(value, by))).collect()
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span().start + by..value.span().end + by;
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(moved(table, by)),
        DeValue::Array(mut list) => {
            for entry in list.iter_mut() {
                let value = std::mem::replace(entry, Spanned::new(0..0, DeValue::Boolean(false)));
                *entry = moved_value(value, by);
            }
            DeValue::Array(list)
        }
        value => value,
    };
    Spanned::new(span, value)
}
