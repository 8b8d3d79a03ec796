// SPDX-License-Identifier: GPL-3.0-or-later
//! No files of a crate import one another in a circle; and all are short and licensed.
//!
//! A face (`lib.rs`, `mod.rs`) that only declares files and hands their names on imports nothing. What a face takes from its
//! files otherwise, and they from it, is a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the crates are whose files are looked at.
const CRATES: [&str; 2] = ["crates/filter/src", "crates/study/src"];

const MAX_LINES: usize = 500;

/// A module by its path, such as `["layouts", "sample"]`; a crate's root is empty.
type Module = Vec<String>;

/// Files below a directory, with their text.
fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let (mut directories, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    files
}

fn module(path: &Path) -> Module {
    let mut names: Module =
        path.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|name| ["lib", "main", "mod"].contains(&&**name)) {
        names.pop();
    }
    names
}

/// The text without comments and without what a face hands on.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let mut parts = text.split("pub use ");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |code, part| code + part.split_once(';').map_or("", |(_, rest)| rest))
}

/// All paths of a list in braces, each in full: `a::{b, c::{d, e}}` is three.
fn expand(text: &str) -> Vec<String> {
    let Some((before, list)) = text.split_once('{') else { return vec![text.to_owned()] };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut depth, mut from, mut all) = (0, 0, Vec::new());
    for (i, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.extend(expand(&list[from..i]).into_iter().map(|path| format!("{before}{path}")));
                from = i + 1;
            }
            _ => (),
        }
    }
    all
}

/// The paths in a text that begin with one of `starts`, without white space.
fn paths(text: &str, starts: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for start in starts {
        for (i, _) in text.match_indices(&format!("{start}::")) {
            if text[..i].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let (mut depth, mut before) = (0, ' ');
            let end = text[i..].find(|c: char| {
                let opens = c == '{' && (before == ':' || depth > 0);
                let ends = match c {
                    '{' if opens => {
                        depth += 1;
                        false
                    }
                    '}' if depth > 0 => {
                        depth -= 1;
                        false
                    }
                    _ => depth == 0 && (before == '}' || !(c.is_alphanumeric() || c == '_' || c == ':')),
                };
                before = c;
                ends
            });
            let path: String = text[i..][..end.unwrap_or(text.len() - i)].split_whitespace().collect();
            all.extend(expand(&path));
        }
    }
    all
}

/// The modules that a file imports, of those that there are.
fn imports(own: &Module, text: &str, modules: &BTreeSet<Module>) -> BTreeSet<Module> {
    let code = code(text);
    let (body, tests) = code.split_once("#[cfg(test)]").unwrap_or((&code, ""));
    let mut starts: Vec<String> = ["crate", "super", "self"].map(str::to_owned).into();
    // A face may name its files without more.
    starts.extend(
        modules
            .iter()
            .filter(|m| m.len() == own.len() + 1 && m.starts_with(own))
            .map(|m| m[own.len()].clone()),
    );
    let mut found = BTreeSet::new();
    for (text, inner) in [(body, 0), (tests, 1)] {
        for path in paths(text, &starts) {
            let mut at: Module = own.iter().cloned().chain((0..inner).map(|_| "tests".to_owned())).collect();
            for name in path.split("::").filter(|name| !name.is_empty()) {
                match name {
                    "crate" => at.clear(),
                    "self" => (),
                    "super" => _ = at.pop(),
                    name => at.push(name.to_owned()),
                }
            }
            while !modules.contains(&at) && !at.is_empty() {
                at.pop();
            }
            found.insert(at);
        }
    }
    found.remove(own);
    found
}

/// What is left when those that import nobody, or only such as were taken away before, are taken away.
fn circles(files: &[(PathBuf, String)]) -> BTreeMap<Module, BTreeSet<Module>> {
    let modules: BTreeSet<Module> = files.iter().map(|(path, _)| module(path)).collect();
    let mut left: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (path, text) in files {
        let own = module(path);
        let imports = imports(&own, text, &modules);
        left.entry(own).or_default().extend(imports);
    }
    loop {
        let before = left.len();
        let names: BTreeSet<Module> = left.keys().cloned().collect();
        left.retain(|_, imports| imports.iter().any(|other| names.contains(other)));
        if left.len() == before {
            return left;
        }
    }
}

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn no_files_import_one_another_in_a_circle() {
    for name in CRATES {
        // The program of a crate has modules of its own beside the library's.
        let left = circles(&files(&root(name)));
        assert!(left.is_empty(), "{name}: these import one another: {left:#?}");
    }
}

#[test]
fn files_are_short_and_licensed() {
    for name in CRATES {
        for (path, text) in files(&root(name)) {
            let lines = text.lines().count();
            assert!(lines <= MAX_LINES, "{name}/{} has {lines} lines", path.display());
            let first = text.lines().next();
            assert_eq!(
                first,
                Some("// SPDX-License-Identifier: GPL-3.0-or-later"),
                "{name}/{}",
                path.display()
            );
        }
    }
}

/// Circles of two files, of three, and of a face with its file are found; what a face only hands on is none.
#[test]
fn circles_are_found() {
    let of = |files: &[(&str, &str)]| {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        circles(&files).into_keys().map(|module| module.join("::")).collect::<Vec<_>>()
    };
    let two = [("a.rs", "use crate::{b::X, c};"), ("b.rs", "let a = super::a::Y;"), ("c.rs", "")];
    assert_eq!(of(&two), ["a", "b"]);
    let three = [("a.rs", "use crate::b::X;"), ("b.rs", "use crate::c::{Z, W};"), ("c.rs", "crate::a::f();")];
    assert_eq!(of(&three), ["a", "b", "c"]);
    let face = [("r/mod.rs", "mod a;\nfn f() { a::g(); }"), ("r/a.rs", "use super::f;")];
    assert_eq!(of(&face), ["r", "r::a"]);
    let hands_on = [
        ("r/mod.rs", "mod a;\nmod b;\npub use a::{F, G};\npub use b::H;"),
        ("r/a.rs", "use super::H;"),
        ("r/b.rs", ""),
    ];
    assert_eq!(of(&hands_on), [""; 0]);
    let in_tests =
        [("a.rs", "#[cfg(test)]\nmod tests { use super::super::b::X; }"), ("b.rs", "use crate::a::Y;")];
    assert_eq!(of(&in_tests), ["a", "b"]);
}
