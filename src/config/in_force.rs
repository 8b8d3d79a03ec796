// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration in force, for people: the values of the file, and defaults for the rest.

use super::source::Source;
use serde_json::{Map, Value};
use std::path::Path;

/// The commented configuration of a milter; it has every key with its default.
pub(super) const MILTER_EXAMPLE: &str = include_str!("../../conf/milter.toml");

/// The commented configuration of a server.
pub const SERVER_EXAMPLE: &str = include_str!("../../conf/server.toml");

/// Returns the configuration in force after the file at `path` was read, on the defaults of `example`. Secrets are in separate files: their
/// paths are shown, but passwords in addresses are not. Null if the file can no longer be read.
#[must_use]
pub fn in_force(path: &Path, example: &str) -> Value {
    let file = Source::read(path).and_then(|source| source.parse::<toml::Table>()).unwrap_or_default();
    let mut shown = example.parse::<toml::Table>().unwrap_or_default();
    overlay(&mut shown, file);
    shown.iter_mut().for_each(|(_, value)| redact(value));
    serde_json::to_value(shown).unwrap_or_default()
}

/// Resets to `old` all keys that take effect at the next start only; names as in the log: `listen`, `[ledger]`, `log.target`.
pub fn keep(new: &mut Value, old: &Value, names: &[&str]) {
    for name in names {
        let mut path = name.trim_matches(['[', ']']).split('.').peekable();
        let (mut to, mut from) = (&mut *new, old);
        while let Some(key) = path.next() {
            let Some(table) = to.as_object_mut() else { break };
            if path.peek().is_none() {
                match from.get(key) {
                    Some(value) => drop(table.insert(key.to_owned(), value.clone())),
                    None => drop(table.remove(key)),
                }
                break;
            }
            to = table.entry(key).or_insert_with(|| Value::Object(Map::new()));
            from = from.get(key).unwrap_or(&Value::Null);
        }
    }
}

fn overlay(defaults: &mut toml::Table, file: toml::Table) {
    for (key, value) in file {
        match (defaults.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => overlay(inner, value),
            (_, value) => drop(defaults.insert(key, value)),
        }
    }
}

/// Removes names and passwords from addresses.
pub(super) fn redact(value: &mut toml::Value) {
    match value {
        toml::Value::String(text) => {
            if let Some((scheme, rest)) = text.split_once("://")
                && let Some((who, host)) = rest.rsplit_once('@')
                && !who.contains('/')
            {
                *text = format!("{scheme}://***@{host}");
            }
        }
        toml::Value::Array(list) => list.iter_mut().for_each(redact),
        toml::Value::Table(table) => table.iter_mut().for_each(|(key, value)| redact_key(key, value)),
        _ => (),
    }
}

/// Does the same for the value of a key. The address of a webhook is a secret as a whole: anybody who knows it may post there.
pub(super) fn redact_key(key: &str, value: &mut toml::Value) {
    match value {
        toml::Value::String(url) if key.ends_with("webhook") && !url.is_empty() => "***".clone_into(url),
        other => redact(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stands_above_defaults_and_secrets_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("milter.toml");
        let text = "alerts = { webhook = \"https://a.example/secret\" }\nupstream = [{ url = \"https://me:secret@a.example:1\", token-file = \"/t\" }]\n[log]\nlevel = \"warn\"\n";
        std::fs::write(&path, text).unwrap();
        let mut shown = in_force(&path, MILTER_EXAMPLE);
        assert_eq!(
            shown["log"],
            serde_json::json!({"target": "syslog", "format": "text", "level": "warn", "messages": "all"})
        );
        assert_eq!(shown["upstream"][0]["url"], "https://***@a.example:1");
        assert_eq!(shown["upstream"][0]["token-file"], "/t");
        assert_eq!(shown["alerts"]["webhook"], "***");
        assert_eq!(shown["thresholds"]["body"], 20);
        let old = serde_json::json!({"listen": "old", "log": {"target": "stderr"}});
        keep(&mut shown, &old, &["listen", "log.target", "[[upstream]]"]);
        assert_eq!((&shown["listen"], &shown["log"]["target"]), (&"old".into(), &"stderr".into()));
        assert!(shown.get("upstream").is_none() && shown["log"]["level"] == "warn");
    }
}
