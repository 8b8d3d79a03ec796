// SPDX-License-Identifier: GPL-3.0-or-later
//! Which room of the program may use which, loops of imports in all crates, the size of files, and their licence line.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each room of the program with the rooms that it may use; `command` puts everything together. Between crates, Cargo holds the layers.
pub(crate) const ROOMS: [(&str, &[&str]); 16] = [
    ("net", &[]),
    ("telemetry", &[]),
    ("lookup", &[]),
    ("activity", &[]),
    ("tune", &[]),
    ("orders", &[]),
    ("refusals", &[]),
    ("judging", &["activity", "lookup", "orders", "refusals"]),
    ("milter", &["activity", "judging", "net"]),
    ("interfaces", &["activity", "judging", "net"]),
    ("control", &["activity", "net", "orders"]),
    ("server", &["activity", "control", "net", "orders"]),
    ("page", &["activity", "control", "net"]),
    ("alerts", &["activity", "control", "net"]),
    ("config", &["net", "milter", "interfaces", "server", "page", "alerts", "refusals", "telemetry"]),
    (
        "command",
        &[
            "net",
            "telemetry",
            "lookup",
            "activity",
            "tune",
            "orders",
            "refusals",
            "judging",
            "milter",
            "interfaces",
            "control",
            "server",
            "page",
            "alerts",
            "config",
        ],
    ),
];

const MAX_LINES: usize = 500;

/// The folders of all crates, with their files.
pub(crate) fn all_sources() -> Vec<(String, Vec<(PathBuf, String)>)> {
    let crates = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).unwrap();
    let crates = crates.map(|entry| format!("crates/{}/src", entry.unwrap().file_name().to_string_lossy()));
    crates.chain(["src".to_owned()]).map(|folder| (folder.clone(), sources_of(&folder))).collect()
}

/// All files below a folder of the repository, with their paths in it.
fn sources_of(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let (mut directories, mut files) = (vec![root.clone()], Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    files.sort();
    files
}

/// The room of a file: its first directory or its own name.
fn room(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The rooms that each room uses, by the imports of its files.
fn found() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, used) in imports::Crate::new(&sources_of("src")).imports() {
        let name = room(&file);
        let others = used.iter().map(|file| room(file)).filter(|other| *other != name);
        all.entry(name.clone()).or_default().extend(others.collect::<Vec<_>>());
    }
    all
}

#[test]
fn rooms_use_those_that_they_may() {
    let rooms: BTreeMap<_, _> = ROOMS.into_iter().collect();
    for (room, used) in found() {
        if room == "main" || room == "lib" {
            assert!(used.is_empty(), "{room}.rs uses {used:?}; it only declares the rooms or calls one");
            continue;
        }
        let may = rooms.get(&*room).unwrap_or_else(|| panic!("src/{room} is not in the list of rooms"));
        for other in used {
            assert!(may.contains(&&*other), "src/{room} uses crate::{other}, but may use only {may:?}");
        }
    }
}

/// Computed from the files and not from the list: rooms that use no other, or only removed ones, are removed, until nothing is left.
#[test]
fn there_are_no_cycles() {
    let mut left = found();
    while !left.is_empty() {
        let names: BTreeSet<_> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, used| used.iter().any(|other| names.contains(other)));
        assert!(left.len() < before, "these use one another in a circle: {left:?}");
    }
}

/// No two files import from each other, nor do several in a circle, in any room and in any crate.
#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let mut bad = Vec::new();
    for (folder, files) in all_sources() {
        let imports = imports::Crate::new(&files).imports();
        assert!(imports.values().any(|to| !to.is_empty()), "no import was found in {folder}");
        for circle in imports::loops(&imports) {
            bad.push(
                circle
                    .iter()
                    .map(|file| format!("{folder}/{}", file.display()))
                    .collect::<Vec<_>>()
                    .join(", "),
            );
        }
    }
    assert!(bad.is_empty(), "these import each other:\n{}", bad.join("\n"));
}

#[test]
fn files_are_short_and_licensed() {
    for (folder, files) in all_sources() {
        for (path, text) in files {
            let (path, lines) = (format!("{folder}/{}", path.display()), text.lines().count());
            assert!(lines <= MAX_LINES, "{path} has {lines} lines, more than {MAX_LINES}");
            let first = text.lines().next();
            assert_eq!(
                first,
                Some("// SPDX-License-Identifier: GPL-3.0-or-later"),
                "the first line of {path}"
            );
        }
    }
}
