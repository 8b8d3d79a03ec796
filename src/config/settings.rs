// SPDX-License-Identifier: GPL-3.0-or-later
//! Every key with its value, and where that comes from: for `bulkmark config show`.

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
    /// With its tables: `ledger.window`.
    pub key: String,
    /// None where the key has no default and is not set.
    pub value: Option<toml::Value>,
    /// The file that sets it; none where the default holds because no file does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line there, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What files before it say, where that is another value and not the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<Was>,
    /// Whether the value is the default, set or not.
    #[serde(rename = "default")]
    pub is_default: bool,
}

/// A value that is not in force, since a later file has another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Was {
    /// The value, or an entry of a list.
    pub value: toml::Value,
    /// The file that has it.
    pub file: PathBuf,
    /// The line there, from 1.
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

/// What the file at `path` and its pieces make of all keys. Whether they are valid is not looked at here.
///
/// # Errors
/// When a file cannot be read, or is not TOML.
pub fn settings(path: &Path, kind: Kind) -> Result<Shown, ConfigError> {
    let source = Source::read(path)?;
    let defaults = leaves(&kind.example().parse().unwrap_or_default());
    let set = leaves(&source.parse::<toml::Table>()?);
    let mut places = BTreeMap::new();
    places_of(&source.merged()?, "", &mut places);
    let replaced = source.replaced(kind.example())?;
    let replaces = |key: &str| {
        let of_key = replaced.iter().filter(|was| was.key == key);
        let was = of_key.map(|was| {
            let ((file, line), mut value) = (source.line(was.at), was.value.clone());
            redact_key(key, &mut value);
            Was { value, file: file.to_owned(), line }
        });
        was.collect()
    };
    let setting = |key: String| {
        let (set, default) = (set.get(&key), defaults.get(&key));
        let place = places.get(&key).map(|&at| source.line(at));
        let mut value = set.or(default).cloned();
        value.iter_mut().for_each(|value| redact_key(&key, value));
        Setting {
            value,
            is_default: set.is_none() || set == default,
            file: place.map(|(path, _)| path.to_owned()),
            line: place.map(|(_, line)| line),
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

/// What is no table, by its key.
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

/// Where the names of these keys stand.
fn places_of(table: &DeTable<'_>, prefix: &str, places: &mut BTreeMap<String, usize>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => places_of(inner, &format!("{key}."), places),
            _ => drop(places.insert(key, name.span().start)),
        }
    }
}

/// The keys of an example, in its order. One without a default is commented out, without a blank: `#key = value`, and so may
/// its table be.
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
    keys.sort_by_key(|(_, at)| *at);
    keys.into_iter().map(|(key, _)| key).collect()
}
