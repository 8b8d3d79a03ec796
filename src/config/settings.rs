// SPDX-License-Identifier: GPL-3.0-or-later
//! Every key with its value and the file that sets it, for `bulkmark config show`.

use super::error::ConfigError;
use super::in_force::redact_key;
use super::kind::Kind;
use super::source::Source;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// One key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The key with its tables: `ledger.window`.
    pub key: String,
    /// The value; none if the key has no default and is not set.
    pub value: Option<toml::Value>,
    /// The file that sets it; none if no file does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The places of entries of a list that other files have, as file and line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<(PathBuf, usize)>,
    /// Values of earlier files that differ from this one and from the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<Overridden>,
    /// Whether the value is the default, set or not.
    #[serde(rename = "default")]
    pub is_default: bool,
}

/// A value that a later file replaced.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overridden {
    /// The value, or an entry of a list.
    pub value: toml::Value,
    /// The file.
    pub file: PathBuf,
    /// The line in the file, from 1.
    pub line: usize,
}

/// A whole configuration.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The file, and its pieces in their order.
    pub files: Vec<PathBuf>,
    /// All keys, in the order of the commented example.
    pub settings: Vec<Setting>,
}

/// Returns all keys of the file at `path` and its pieces. Does not check whether they are valid.
///
/// # Errors
/// If a file cannot be read, or is not TOML.
pub fn settings(path: &Path, kind: Kind) -> Result<Shown, ConfigError> {
    let source = Source::read(path)?;
    let defaults = leaves(&kind.example().parse().unwrap_or_default());
    let set = leaves(&source.parse::<toml::Table>()?);
    let mut places = BTreeMap::new();
    places_of(&source.merged()?, "", &mut places);
    let replaced = source.replaced(kind.example())?;
    let replaces = |key: &str| {
        let overridden = replaced.iter().filter(|was| was.key == key);
        let was = overridden.map(|was| {
            let ((file, line), mut value) = (source.line(was.at), was.value.clone());
            redact_key(key, &mut value);
            Overridden { value, file: file.to_owned(), line }
        });
        was.collect()
    };
    let setting = |key: String| {
        let (set, default) = (set.get(&key), defaults.get(&key));
        let place = places.get(&key).map(|&(at, _)| source.line(at));
        let all = places.get(&key).into_iter().flat_map(|(_, entries)| entries);
        let mut entries: Vec<_> =
            all.map(|&at| source.line(at)).map(|(file, line)| (file.to_owned(), line)).collect();
        entries.retain(|(file, _)| place.is_some_and(|(of_key, _)| of_key != file));
        entries.dedup();
        let mut value = set.or(default).cloned();
        value.iter_mut().for_each(|value| redact_key(&key, value));
        Setting {
            value,
            is_default: set.is_none() || set == default,
            file: place.map(|(path, _)| path.to_owned()),
            line: place.map(|(_, line)| line),
            entries,
            replaces: replaces(&key),
            key,
        }
    };
    let mut keys = known_keys(kind.example());
    keys.extend(set.keys().filter(|key| !keys.contains(key)).cloned().collect::<Vec<_>>());
    Ok(Shown {
        files: source.paths().map(Path::to_owned).collect(),
        settings: keys.into_iter().map(setting).collect(),
    })
}

/// Returns all values except tables, by their keys.
fn leaves(table: &toml::Table) -> BTreeMap<String, toml::Value> {
    fn add(table: &toml::Table, prefix: &str, leaves: &mut BTreeMap<String, toml::Value>) {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match value {
                toml::Value::Table(inner) => add(inner, &format!("{key}."), leaves),
                value => drop(leaves.insert(key, value.clone())),
            }
        }
    }
    let mut found = BTreeMap::new();
    add(table, "", &mut found);
    found
}

/// The place of a key's name, and those of its entries, if it is a list.
type Places = (usize, Vec<usize>);

/// Collects the places of these keys' names.
fn places_of(table: &DeTable<'_>, prefix: &str, places: &mut BTreeMap<String, Places>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => places_of(inner, &format!("{key}."), places),
            value => {
                let entries = value.as_array().into_iter().flat_map(|list| list.iter());
                let entries = entries.map(|entry| entry.span().start).collect();
                places.insert(key, (name.span().start, entries));
            }
        }
    }
}

/// Returns the keys of an example, in its order. A key without a default is commented out, without a blank: `#key = value`; so may its table be.
fn known_keys(example: &str) -> Vec<String> {
    let mut text = String::new();
    for line in example.lines() {
        let commented = line.strip_prefix('#').filter(|rest| {
            let name = rest.split_once(" = ").map_or(*rest, |(name, _)| name);
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b"-[]".contains(&b))
        });
        text.extend([commented.unwrap_or(line), "\n"]);
    }
    let mut places = BTreeMap::new();
    if let Ok(table) = DeTable::parse(&text) {
        places_of(table.get_ref(), "", &mut places);
    }
    let mut keys: Vec<_> = places.into_iter().collect();
    keys.sort_by_key(|(_, (at, _))| *at);
    keys.into_iter().map(|(key, _)| key).collect()
}
