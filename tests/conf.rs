// SPDX-License-Identifier: GPL-3.0-or-later
//! The example configuration and the documents against the types that read configurations.

use bulkmark::config::{self, MilterFile};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A name that no table has.
const NOBODY: &str = "0";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn example() -> String {
    read(&root().join("conf/milter.toml"))
}

/// All keys that the types know, with their tables: `ledger.window`. Found by asking each table for a key that it does
/// not know: the error names those that it does.
fn known_keys() -> BTreeSet<String> {
    fn ask(table: &str, path: &Path, keys: &mut BTreeSet<String>) -> bool {
        let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        fs::write(path, format!("{header}{NOBODY} = 0\n")).unwrap();
        let error = config::load(path).expect_err("an unknown key was taken").to_string();
        let first_line = error.lines().next().unwrap_or_default();
        let Some((_, names)) = first_line.split_once(": unknown key, expected ") else { return false };
        let names = names.trim_start_matches("one of ");
        for name in names.split(", ") {
            let key = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
            if !ask(&key, path, keys) {
                keys.insert(key);
            }
        }
        true
    }
    let directory = tempfile::tempdir().unwrap();
    let mut keys = BTreeSet::new();
    assert!(ask("", &directory.path().join("milter.toml"), &mut keys));
    assert!(keys.contains("listen") && keys.contains("actions.reject.code"), "{keys:?}");
    keys
}

fn keys_of(table: &toml::Table, prefix: &str, keys: &mut BTreeSet<String>) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            toml::Value::Table(inner) => keys_of(inner, &format!("{key}."), keys),
            _ => assert!(keys.insert(key), "{name} stands twice"),
        }
    }
}

#[test]
fn the_example_is_the_default() {
    let checked = config::load(&root().join("conf/milter.toml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(checked.file, MilterFile::default());
}

#[test]
fn the_example_has_every_key() {
    // Keys without a default are commented out: `#key = value`, without a blank behind the #.
    let text: String = example()
        .lines()
        .map(|line| {
            let commented_key = line.strip_prefix('#').filter(|rest| {
                rest.split_once(" = ")
                    .is_some_and(|(key, _)| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
            });
            format!("{}\n", commented_key.unwrap_or(line))
        })
        .collect();
    let mut keys = BTreeSet::new();
    keys_of(&text.parse().unwrap(), "", &mut keys);
    assert_eq!(keys, known_keys());
}

/// The same of the server's file, by setting each of its keys to what it is already and then to nonsense.
#[test]
fn the_example_of_the_server_is_the_default() {
    let path = root().join("conf/server.toml");
    let (file, _) = config::load_server(&path).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(file, config::ServerFile::default());
    let mut keys = BTreeSet::new();
    keys_of(&read(&path).parse().unwrap(), "", &mut keys);
    let shown = format!("{file:?}");
    // Every field of the types, as Debug writes them, is a key of the example or one of the commented ones.
    let fields: BTreeSet<String> = shown
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
        .filter_map(|word| word.strip_suffix(':'))
        .map(|field| field.replace('_', "-"))
        .filter(|field| !field.is_empty())
        .collect();
    let text = read(&path);
    for field in fields {
        // What is not in the file: the ledger's part of [sync].
        if matches!(&*field, "federation" | "sync-interval" | "spool-age" | "spool-reports") {
            continue;
        }
        let there = text.lines().map(|line| line.trim_start_matches('#')).any(|line| {
            line.strip_prefix(&*field).is_some_and(|rest| rest.starts_with(" ="))
                || line == format!("[{field}]")
        });
        assert!(there, "conf/server.toml has no {field}");
    }
}

#[test]
fn the_manual_has_every_key() {
    let mut keys = BTreeSet::new();
    let mut table = String::new();
    for line in read(&root().join("man/bulkmark.toml.5")).lines() {
        if let Some(title) = line.strip_prefix(".Ss ") {
            table = title.strip_prefix('[').map_or_else(String::new, |name| name.replace(']', "."));
        } else if let Some(key) = line.strip_prefix(".It Ic ") {
            assert!(keys.insert(format!("{table}{key}")), "{table}{key} stands twice");
        }
    }
    assert_eq!(keys, known_keys());
}

/// The files of `directory` whose names end in `.md`.
fn documents(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "md")).collect()
}

/// The code blocks of `text` that say they are TOML.
fn toml_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match &mut block {
            None if line.trim() == "```toml" => block = Some(String::new()),
            None => (),
            Some(_) if line.trim() == "```" => blocks.extend(block.take()),
            Some(text) => text.extend([line, "\n"]),
        }
    }
    blocks
}

#[test]
fn toml_in_documents_is_valid() {
    let mut found = 0;
    for path in documents(root()).iter().chain(&documents(&root().join("docs"))) {
        for block in toml_blocks(&read(path)) {
            found += 1;
            // Not by `config::load`, which would open the files that the example names.
            let checked = toml::from_str::<MilterFile>(&block)
                .map_err(|e| e.to_string())
                .and_then(|file| file.ledger.check().map_err(|(key, e)| format!("ledger.{key}: {e}")));
            checked.unwrap_or_else(|e| panic!("{}: {e}\nin the block\n{block}", path.display()));
        }
    }
    assert!(found > 0, "no document has a block of TOML");
}

#[test]
fn the_white_list_example_is_valid() {
    let text = read(&root().join("conf/whitelist.example"));
    assert!(
        text.lines().all(|line| line.is_empty() || line.starts_with('#')),
        "all entries are commented out"
    );
    // `#form value` is an entry, `# Text` a comment.
    let entries: String = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .map(|entry| format!("{entry}\n"))
        .collect();
    // The error of an unknown form names all of them.
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("milter.toml"), format!("[whitelist]\nfiles = [{:?}]\n", path("list"))).unwrap();
    fs::write(path("list"), "nonsense\n").unwrap();
    let error = config::load(&path("milter.toml")).expect_err("an unknown form was taken").to_string();
    let (_, forms) = error.split_once(", expected ").unwrap_or_else(|| panic!("{error}"));
    let forms: Vec<_> = forms.split(", ").flat_map(|form| form.split(" or ")).collect();
    assert!(forms.len() >= 8, "{forms:?}");
    let manual = read(&root().join("man/bulkmark-whitelist.5"));
    for form in forms {
        assert!(entries.lines().any(|entry| entry.starts_with(&format!("{form} "))), "no example of {form}");
        assert!(manual.contains(&format!(".It Ic {form} ")), "bulkmark-whitelist.5 has no {form}");
    }
    fs::write(path("list"), entries).unwrap();
    fs::write(path("whitelist.local"), "").unwrap();
    config::load(&path("milter.toml")).unwrap_or_else(|e| panic!("{e}"));
}

/// A key of the top level that stands below a table by mistake is recognised, whichever it is.
#[test]
fn a_key_below_the_wrong_table_is_told_where_it_belongs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("milter.toml");
    for key in known_keys().iter().filter(|key| !key.contains('.')) {
        fs::write(&path, format!("[counting]\n{key} = 0\n")).unwrap();
        let error = config::load(&path).expect_err("a key in the wrong table was taken").to_string();
        assert!(error.contains(&format!("{key} belongs above the first [table]")), "{error}");
    }
}
