// SPDX-License-Identifier: GPL-3.0-or-later
//! The text of a configuration, and the places of keys in it.

use super::error::{ConfigError, reword};
use super::gone;
use super::merge::{Merge, Replaced};
use super::pieces::{files, moved};
use bulkmark_sync::{Upstream, log};
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Lists of other servers, and the form of their entries.
const SERVERS: [&str; 3] = ["upstream", "peer", "fleet.aggregators"];
const A_SERVER: &str = "a list of servers, as in [{ url = \"https://counts.example.org:8721\", token-file = \"/etc/bulkmark/token\" }]";

/// A configuration that was read: the file itself, and its pieces, each over those before.
pub(super) struct Source {
    files: Vec<File>,
}

/// Returns a key in the form of serde's paths: `policy[0].name` for `policy.0.name`.
fn with_brackets(key: &str) -> String {
    let mut names = key.split('.');
    let first = names.next().unwrap_or_default().to_owned();
    let add = |all: String, name: &str| match name.parse::<usize>() {
        Ok(i) => format!("{all}[{i}]"),
        Err(_) => format!("{all}.{name}"),
    };
    names.fold(first, add)
}

/// One file. Its places begin at the end of the file before, so that each place is in one file only.
struct File {
    path: PathBuf,
    text: String,
    begin: usize,
}

impl File {
    fn read(path: &Path, begin: usize) -> Result<Self, ConfigError> {
        let bytes = std::fs::read(path).map_err(|e| ConfigError::file(path, format!("cannot read: {e}")))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let end = e.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(e.as_bytes());
            ConfigError::at(path, &text, Some(end..end), None, "not valid UTF-8".to_owned())
        })?;
        Ok(Self { path: path.to_owned(), text, begin })
    }

    /// Returns the beginning of the next file. One place is left between, since an error may be at the end of a text.
    const fn next(&self) -> usize {
        self.begin + self.text.len() + 1
    }

    fn error(&self, span: Option<Range<usize>>, key: Option<String>, message: String) -> ConfigError {
        ConfigError::at(&self.path, &self.text, span, key, message)
    }
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let mut read: Vec<File> = Vec::new();
        for file in files(path)? {
            read.push(File::read(&file, read.last().map_or(0, File::next))?);
        }
        Ok(Self { files: read })
    }

    /// Returns the file itself, and its pieces.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Merges the files into one table, in which a value has the place of the last file that sets it.
    pub(super) fn merged(&self) -> Result<DeTable<'_>, ConfigError> {
        Ok(self.merge()?.table)
    }

    /// Returns the values that later files replace. A value in the file itself that equals the default in `example` does not count: pieces are
    /// made to change it.
    pub(super) fn replaced(&self, example: &str) -> Result<Vec<Replaced>, ConfigError> {
        let defaults: toml::Table = example.parse().unwrap_or_default();
        let default = |key: &str| {
            let mut names = key.split('.');
            let first = defaults.get(names.next()?)?;
            names.try_fold(first, |value, name| value.get(name))
        };
        let pieces = self.files.first().map_or(0, File::next);
        let mut replaced = self.merge()?.replaced;
        replaced.retain(|was| was.at >= pieces || default(&was.key) != Some(&was.value));
        Ok(replaced)
    }

    fn merge(&self) -> Result<Merge<'_>, ConfigError> {
        let mut all = Merge::default();
        for file in &self.files {
            let table = DeTable::parse(&file.text)
                .map_err(|e| file.error(e.span(), None, format!("not valid TOML: {}", e.message())))?;
            all.lay_over(moved(table.into_inner(), file.begin));
        }
        Ok(all)
    }

    /// Parses the merged files as `T`, whose fields refuse unknown keys.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let end = self.files.last().map_or(0, File::next);
        let deserializer = toml::Deserializer::from(Spanned::new(0..end, self.merged()?));
        serde_path_to_error::deserialize(deserializer).map_err(|e| {
            let (mut message, unknown) = reword(e.inner().message());
            // A date without quotes is a value of TOML, which serde calls a map.
            let found = e.inner().span().and_then(|span| self.text(span));
            if let Some(found) = found.filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))
                && let Some(rest) = message.strip_prefix("found a table, ")
            {
                message = format!("found {found}, {rest}");
            }
            let mut path = e.path().to_string();
            if SERVERS.contains(&path.split('[').next().unwrap_or_default())
                && !path.contains("].")
                && let Some((found, _)) = message.split_once(", expected ")
            {
                message = format!("{found}, expected {A_SERVER}");
            }
            if let Some(name) = unknown {
                if path.rsplit('.').next() != Some(&*name) {
                    path = if path == "." { name } else { format!("{path}.{name}") };
                }
                if let Some(advice) = gone::advice(&path) {
                    message = format!("unknown key: {advice}");
                }
            }
            self.at(e.inner().span(), Some(path).filter(|path| path != "."), message)
        })
    }

    /// Returns an error of the value of `key` (tables and numbers of entries before it, joined by dots). If the key is in no file, its default
    /// conflicts with another key, and the error names no place.
    pub(super) fn error(&self, key: &str, message: String) -> ConfigError {
        self.at(self.span(key), Some(with_brackets(key)), message)
    }

    /// Returns an error at this place.
    pub(super) fn at(&self, span: Option<Range<usize>>, key: Option<String>, message: String) -> ConfigError {
        let (file, span) = self.file_at(span);
        file.error(span, key, message)
    }

    /// Whether any of the files has this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.span(key).is_some()
    }

    /// Returns `FILE:LINE` of a key.
    pub(super) fn place(&self, key: &str) -> Option<String> {
        let (file, line) = self.line(self.span(key)?.start);
        Some(format!("{}:{line}", file.display()))
    }

    /// Returns file and line of a place.
    pub(super) fn line(&self, at: usize) -> (&Path, usize) {
        let (file, span) = self.file_at(Some(at..at));
        let before = span.and_then(|span| file.text.get(..span.start)).unwrap_or_default();
        (&file.path, before.matches('\n').count() + 1)
    }

    /// Returns the text at a place.
    fn text(&self, span: Range<usize>) -> Option<&str> {
        let (file, span) = self.file_at(Some(span));
        file.text.get(span?)
    }

    /// Returns the file of this place, and the place in the file's text.
    fn file_at(&self, span: Option<Range<usize>>) -> (&File, Option<Range<usize>>) {
        let start = span.as_ref().map_or(0, |span| span.start);
        let last = self.files.partition_point(|file| file.begin <= start).saturating_sub(1);
        // There is at least one, which begins at 0.
        let file = &self.files[last];
        (file, span.map(|span| start - file.begin..span.end.saturating_sub(file.begin)))
    }

    /// Checks the addresses of other servers in the list `key`.
    pub(super) fn check_servers(&self, key: &str, servers: &[Upstream]) -> Result<(), ConfigError> {
        for (i, server) in servers.iter().enumerate() {
            server.check().map_err(|message| self.error(&format!("{key}.{i}.url"), message))?;
        }
        Ok(())
    }

    /// Checks `[fleet]`, which excludes a list of servers.
    pub(super) fn check_fleet(
        &self,
        fleet: Option<&log::Settings>,
        (key, servers): (&str, &[Upstream]),
    ) -> Result<(), ConfigError> {
        let Some(fleet) = fleet else { return Ok(()) };
        if !servers.is_empty() {
            let message = format!(
                "{key} and [fleet] exclude each other: counts come from servers, or from a fleet's log"
            );
            return Err(self.error(key, message));
        }
        fleet.check().map_err(|(key, message)| self.error(&format!("fleet.{key}"), message))?;
        self.check_servers("fleet.aggregators", &fleet.aggregators)
    }

    fn span(&self, key: &str) -> Option<Range<usize>> {
        let root = self.merged().ok()?;
        let mut names = key.split('.');
        let mut value: &Spanned<DeValue<'_>> = root.get(names.next()?)?;
        for name in names {
            value = match name.parse::<usize>() {
                Ok(i) => value.get_ref().get(i)?,
                Err(_) => value.get_ref().get(name)?,
            };
        }
        Some(value.span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    /// Writes a configuration into a temporary directory, with these pieces.
    fn source(text: &str, pieces: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("milter.toml");
        fs::write(&path, text).unwrap();
        fs::create_dir(directory.path().join("milter.d")).unwrap();
        for (name, text) in pieces {
            fs::write(directory.path().join("milter.d").join(name), text).unwrap();
        }
        let source = Source::read(&path).unwrap();
        (directory, source)
    }

    #[test]
    fn tables_are_merged_lists_add_up_and_all_else_is_replaced() {
        let (_directory, source) = source(
            "a = 1\nlist = [1, 2]\nt = { x = 1, y = { z = 1 } }\n[[many]]\nn = 1\n[[many]]\nn = 2\n",
            &[
                ("20", "a = 9\n"),
                ("20.toml", "list = [3]\n[t.y]\nz = 2\nnew = true\n"),
                ("10.toml", "a = 2\nlist = [4]\n[[many]]\nn = 3\n"),
                (".hidden.toml", "a = 9\n"),
                ("30.toml.dpkg-dist", "a = 9\n"),
            ],
        );
        let expected = "a = 2\nlist = [1, 2, 4, 3]\nmany = [{ n = 1 }, { n = 2 }, { n = 3 }]\nt = { x = 1, y = { z = 2, new = true } }\n";
        assert_eq!(source.parse::<toml::Table>().unwrap(), expected.parse().unwrap());
        let at = |key: &str| {
            let (path, line) = source.line(source.span(key).unwrap().start);
            format!("{}:{line}", path.file_name().unwrap().display())
        };
        let places = ["a", "list", "t.x", "t.y.z", "many.0.n", "many.2.n"].map(|key| (key, at(key)));
        let expected = [
            ("a", "10.toml:1"),
            ("list", "20.toml:1"),
            ("t.x", "milter.toml:3"),
            ("t.y.z", "20.toml:3"),
            ("many.0.n", "milter.toml:5"),
            ("many.2.n", "10.toml:4"),
        ];
        assert_eq!(places.map(|(key, at)| (key, at)), expected.map(|(key, at)| (key, at.to_owned())));
    }

    /// Guides write lists and listeners into separate pieces; a value of one piece that another one replaces is reported.
    #[test]
    fn pieces_add_up_or_are_reported() {
        let (_directory, source) = source(
            "listen = \"inet:127.0.0.1:8720\"\nfiles = [\"a\"]\nbody = 20\nmethods = [\"dkim\"]\nact-despite = [\"stale\"]\n",
            &[
                ("10.toml", "listen = \"unix:/run/a.sock\"\nfiles = [\"b\", \"a\"]\nbody = 30\n"),
                (
                    "20.toml",
                    "[listen.inside]\nat = \"inet:127.0.0.1:8724\"\n[[upstream]]\nurl = \"u\"\nca = 1\n",
                ),
                ("30.toml", "body = 40\nlisten = [{ name = \"out\", at = \"systemd\" }]\nfiles = [\"c\"]\n"),
                (
                    "40.toml",
                    "upstream = [{ url = \"v\" }, { url = \"u\", ca = 2 }]\n[listen.out]\nat = \"inet:127.0.0.1:9\"\n",
                ),
                ("50.toml", "body = 40\nauthentication.methods = [\"spf\"]\n"),
                ("60.toml", "act-despite = []\nauthentication.methods = [\"dkim\"]\n"),
            ],
        );
        let all = source.parse::<toml::Table>().unwrap();
        let expected = "body = 40\nact-despite = []\nmethods = [\"dkim\"]\nauthentication.methods = [\"dkim\"]\nfiles = [\"b\", \"a\", \"c\"]\n\
            listen = [\"unix:/run/a.sock\", { name = \"inside\", at = \"inet:127.0.0.1:8724\" }, \
            { name = \"out\", at = \"inet:127.0.0.1:9\" }]\nupstream = [{ url = \"v\" }, { url = \"u\", ca = 2 }]\n";
        assert_eq!(all, expected.parse().unwrap());
        let example =
            "listen = \"inet:127.0.0.1:8720\"\nbody = 20\nupstream = []\nact-despite = [\"stale\"]\n";
        let shown = |was: &Replaced| {
            let (path, line) = source.line(was.at);
            format!("{} {} {}:{line}", was.key, was.value, path.file_name().unwrap().display())
        };
        let replaced: Vec<_> = source.replaced(example).unwrap().iter().map(shown).collect();
        let expected = [
            "body 30 10.toml:3",
            "listen { at = \"systemd\", name = \"out\" } 30.toml:2",
            "upstream { ca = 1, url = \"u\" } 20.toml:3",
            "authentication.methods [\"spf\"] 50.toml:2",
        ];
        assert_eq!(replaced, expected);
    }

    #[test]
    fn errors_are_in_the_file_that_has_them() {
        type Numbers = BTreeMap<String, u8>;
        let at = |text: &str, pieces: &[(&str, &str)]| {
            let (_directory, source) = source(text, pieces);
            let error = source.parse::<Numbers>().unwrap_err().to_string();
            error.lines().next().unwrap().rsplit('/').next().unwrap().to_owned()
        };
        let number = "expected a whole number";
        assert!(at("a = 1\n", &[("1.toml", "a = 1\nb = \"x\"\n")]).starts_with("1.toml:2:5: b: found \"x\""));
        assert!(at("a = \"x\"\n", &[("1.toml", "b = 1\n")]).starts_with("milter.toml:1:5: a: found \"x\""));
        assert!(
            at("a = 1\n", &[("1.toml", "a = {}\n")]).starts_with("1.toml:1:5: a: found a table"),
            "{number}"
        );
        assert!(at("a = 1\n", &[("1.toml", "\nb = 1\nb = 2\n")]).starts_with("1.toml:3:1: not valid TOML"));
        assert!(at("a = 1", &[("1.toml", "b = 1\n[")]).starts_with("1.toml:2:2: not valid TOML"));
    }
}
