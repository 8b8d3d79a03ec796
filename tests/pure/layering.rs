// SPDX-License-Identifier: GPL-3.0-or-later
//! Which room may use which, the size of files, and their licence line.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each room with those that it may use. Nobody is listed who may not; `command` puts everything together.
const ROOMS: [(&str, &[&str]); 25] = [
    ("text", &[]),
    ("trust", &[]),
    ("net", &[]),
    ("directory", &[]),
    ("mail", &[]),
    ("telemetry", &["text"]),
    ("signature", &["mail"]),
    ("ledger", &["directory", "signature", "trust"]),
    ("correspondents", &["directory", "signature"]),
    ("sync", &["text", "signature", "ledger"]),
    ("activity", &["signature", "policy"]),
    ("control", &["signature", "ledger", "correspondents", "net", "sync", "activity"]),
    ("server", &["text", "directory", "signature", "ledger", "net", "sync", "control", "activity"]),
    ("page", &["directory", "ledger", "policy", "net", "activity", "control"]),
    ("policy", &["mail", "signature", "trust"]),
    ("table", &["policy"]),
    ("verify", &["mail", "policy"]),
    ("verdict", &["text", "mail", "signature", "policy"]),
    ("explain", &["mail", "signature", "ledger", "policy", "table", "verify", "verdict"]),
    (
        "judging",
        &[
            "explain",
            "mail",
            "signature",
            "ledger",
            "correspondents",
            "policy",
            "verdict",
            "text",
            "sync",
            "activity",
            "table",
            "verify",
        ],
    ),
    ("milter", &["policy", "net", "verdict", "judging", "activity"]),
    (
        "doors",
        &[
            "explain",
            "mail",
            "signature",
            "ledger",
            "directory",
            "text",
            "policy",
            "net",
            "verdict",
            "judging",
            "activity",
        ],
    ),
    ("tune", &["mail", "signature", "ledger", "policy", "verdict"]),
    (
        "config",
        &[
            "directory",
            "signature",
            "ledger",
            "policy",
            "net",
            "verdict",
            "milter",
            "doors",
            "sync",
            "server",
            "page",
            "telemetry",
        ],
    ),
    (
        "command",
        &[
            "text",
            "mail",
            "signature",
            "ledger",
            "correspondents",
            "policy",
            "net",
            "directory",
            "verdict",
            "judging",
            "milter",
            "doors",
            "config",
            "sync",
            "control",
            "server",
            "page",
            "activity",
            "telemetry",
            "table",
            "verify",
            "tune",
            "explain",
        ],
    ),
];

const MAX_LINES: usize = 500;

fn sources() -> Vec<(PathBuf, String)> {
    sources_of("src")
}

/// The folders of all crates, with their files.
fn all_sources() -> Vec<(String, Vec<(PathBuf, String)>)> {
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

/// The text without comments; what is in strings stays, which only makes the check stricter.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect()
}

/// The first names of all paths that begin with `crate::`, those in braces each for itself. `super` must not lead out
/// of a room, so a room's own root may not be left by it.
fn uses(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let mut names = BTreeSet::new();
    for (i, _) in code.match_indices("crate::") {
        if code[..i].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[i + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => {
                names.extend(name(rest));
            }
            Some(list) => {
                let mut depth = 0;
                let mut at_name = true;
                for (j, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => at_name = true,
                        c if at_name && !c.is_whitespace() => {
                            names.extend(name(&list[j..]));
                            at_name = false;
                        }
                        _ => (),
                    }
                }
            }
        }
    }
    names
}

fn name(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// Who uses whom, from what stands in the files.
fn found() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources() {
        let room = room(&path);
        let mut used = uses(&text);
        used.remove(&room);
        all.entry(room).or_default().extend(used);
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
    // What may be used by nobody else.
    for (room, may) in ROOMS {
        assert!(room == "command" || !may.contains(&"config"), "{room} may not use config");
        assert!(
            ["command", "config"].contains(&room) || !may.contains(&"telemetry"),
            "{room} may not use telemetry"
        );
        assert!(!may.contains(&"command"), "{room} may not use command");
    }
}

/// Taken from the files and not from the list: what uses nobody, or only such as were taken away before, is taken away
/// until nothing is left.
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

/// No two files import from each other, nor more of them in a circle, in any room and in any crate.
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

/// No path goes out of a room by `super`: in `src/room/mod.rs` one is already too many, in `src/room/file.rs` two are, and
/// one more for each folder in a room.
#[test]
fn no_room_is_left_by_super() {
    for (path, text) in sources() {
        let depth = path.iter().count();
        let is_face = path.ends_with("mod.rs") || depth == 1;
        let too_many = "super::".repeat(if is_face { depth - 1 } else { depth }.max(1));
        let code = code(&text);
        // Inside `mod tests` one more `super` stays in the file.
        let (body, tests) = code.split_once("#[cfg(test)]").unwrap_or((&code, ""));
        assert!(!body.contains(&too_many), "{} leaves its room", path.display());
        assert!(!tests.contains(&format!("super::{too_many}")), "{} leaves its room", path.display());
    }
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

#[test]
fn paths_are_found_in_all_forms() {
    let text = "use crate::mail::{A, B};\nlet x: crate::sync::C = 1; // crate::comment::x\nuse crate::{ledger, policy::{D, \
                E}, signature};\nmycrate::no();";
    let names: Vec<_> = uses(text).into_iter().collect();
    assert_eq!(names, ["ledger", "mail", "policy", "signature", "sync"]);
}
