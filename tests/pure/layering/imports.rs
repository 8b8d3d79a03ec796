// SPDX-License-Identifier: GPL-3.0-or-later
//! The imports between files, as far as their text shows them.
//!
//! A path leads to the file that defines its last name: modules are followed through their folders, and re-exported
//! names to their origin. A re-export is no import, unless the file uses the name itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names of a module's path, from the root of its crate.
type Module = Vec<String>;

/// `use path as name;`
#[derive(Debug, PartialEq, Eq)]
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

struct File {
    path: PathBuf,
    imports: Vec<Import>,
    /// The code without comments, strings, `use` and tests.
    code: String,
}

/// All files of a crate.
pub(super) struct Crate(BTreeMap<Module, File>);

impl Crate {
    /// Reads files, whose paths begin below `src`.
    pub(super) fn new(sources: &[(PathBuf, String)]) -> Self {
        let has_lib = sources.iter().any(|(path, _)| path == Path::new("lib.rs"));
        let files = sources.iter().map(|(path, text)| {
            let mut module: Module =
                path.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
            let is_root = module == ["lib"] || module == ["main"] && !has_lib;
            if is_root || module.last().is_some_and(|name| name == "mod") {
                module.pop();
            }
            let (imports, code) = split(&bare(text));
            (module, File { path: path.clone(), imports, code })
        });
        Self(files.collect())
    }

    /// The files that each file imports from.
    pub(super) fn imports(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let edges = self.0.iter().map(|(module, file)| {
            let mut to: BTreeSet<_> = self.targets(module, file).into_iter().collect();
            to.remove(&file.path);
            (file.path.clone(), to)
        });
        edges.collect()
    }

    fn targets(&self, module: &Module, file: &File) -> Vec<PathBuf> {
        let chains = chains(&file.code);
        let words: BTreeSet<&str> = chains.iter().flatten().map(String::as_str).collect();
        let imported = file.imports.iter().filter(|i| !i.is_public || words.contains(&*i.name));
        let mut targets: Vec<Module> = imported
            .filter_map(|i| self.resolve(module, &i.path, 0))
            // An imported folder alone is no import yet; the names used from it are in the code.
            .filter(|(target, is_module)| !is_module || !self.0[target].path.ends_with("mod.rs"))
            .map(|(target, _)| target)
            .collect();
        let inline = chains.iter().filter(|chain| chain.len() > 1);
        targets.extend(inline.filter_map(|chain| self.resolve(module, chain, 0)).map(|(target, _)| target));
        targets.iter().map(|target| self.0[target].path.clone()).collect()
    }

    /// The module that defines the last name of a path, and whether that name is the module itself. None for names of another
    /// crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<(Module, bool)> {
        let mut at = from.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => at = Module::new(),
            "self" => (),
            "super" => drop(at.pop()),
            name => {
                let known = self.child(&at, name).is_some() || self.imported(&at, name).is_some();
                return if known { self.walk(at, rest, depth) } else { None };
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|name| name == "super") {
            at.pop();
            rest = &rest[1..];
        }
        self.walk(at, rest, depth)
    }

    fn walk(&self, mut at: Module, mut rest: &[String], depth: usize) -> Option<(Module, bool)> {
        self.0.get(&at)?;
        while let Some(name) = rest.first().filter(|name| *name != "self") {
            rest = &rest[1..];
            if let Some(child) = self.child(&at, name) {
                at = child;
                continue;
            }
            // A name that leads to itself, as `use x::x`, ends here.
            let import = self.imported(&at, name).filter(|_| depth < 8);
            let Some(import) = import else { return Some((at, false)) };
            let (target, is_module) = self.resolve(&at, &import.path, depth + 1)?;
            if !is_module {
                return Some((target, false));
            }
            at = target;
        }
        Some((at, true))
    }

    fn child(&self, module: &Module, name: &str) -> Option<Module> {
        let child = [&module[..], &[name.to_owned()]].concat();
        self.0.contains_key(&child).then_some(child)
    }

    fn imported(&self, module: &Module, name: &str) -> Option<&Import> {
        self.0[module].imports.iter().find(|import| import.name == name)
    }
}

/// Files that import each other in a circle, each circle with all files that are on it.
pub(super) fn loops(imports: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<BTreeSet<PathBuf>> {
    let reached = |from: &PathBuf| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(file) = waiting.pop() {
            waiting.extend(imports[file].iter().filter(|&to| seen.insert(to.clone())));
        }
        seen
    };
    let all: BTreeMap<_, _> = imports.keys().map(|file| (file.clone(), reached(file))).collect();
    let mut circles: Vec<BTreeSet<_>> = Vec::new();
    for (file, to) in all.iter().filter(|(file, to)| to.contains(*file)) {
        if !circles.iter().any(|circle| circle.contains(file)) {
            circles.push(to.iter().filter(|other| all[*other].contains(file)).cloned().collect());
        }
    }
    circles
}

/// The code without comments, strings and the tests at its end.
fn bare(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let mut bare = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("'\"'") {
            rest = &rest[3..];
        } else if c == '"' {
            let mut end = 1;
            while end < rest.len() && !rest[end..].starts_with('"') {
                end += if rest[end..].starts_with('\\') { 2 } else { 1 };
                while !rest.is_char_boundary(end.min(rest.len())) {
                    end += 1;
                }
            }
            rest = rest.get(end + 1..).unwrap_or("");
        } else {
            bare.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    bare
}

/// All `use` items, and the rest.
fn split(code: &str) -> (Vec<Import>, String) {
    let (mut imports, mut rest) = (Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let is_public = trimmed.starts_with("pub");
        let item = match trimmed.strip_prefix("pub(") {
            Some(scope) => scope.split_once(") ").map_or("", |(_, item)| item),
            None => trimmed.strip_prefix("pub ").unwrap_or(trimmed),
        };
        let Some(tree) = item.strip_prefix("use ") else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push_str(line);
        }
        let tree = tree.split(';').next().unwrap_or("");
        expand(tree, &[], &mut |path, name| imports.push(Import { path, name, is_public }));
    }
    (imports, rest)
}

/// Visits each path of a tree such as `a::{b, c::{self, d as e}}`, with its name.
fn expand(tree: &str, before: &[String], see: &mut dyn FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some((head, list)) = tree.split_once('{') {
        let head = head.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        let before: Vec<_> = before.iter().cloned().chain(head).collect();
        let list = list.strip_suffix('}').unwrap_or(list);
        let (mut depth, mut start) = (0, 0);
        for (i, c) in list.char_indices().chain([(list.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&list[start..i], &before, see);
                    start = i + 1;
                }
                _ => (),
            }
        }
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
        let names = path.split("::").map(|name| name.trim().to_owned());
        let mut path: Vec<_> = before.iter().cloned().chain(names).collect();
        // `a::{self}` and `a::*` are both `a`; only the first gives it a name.
        let name = match path.last().map(String::as_str) {
            Some("self") => {
                path.pop();
                path.last().cloned().unwrap_or_default()
            }
            Some("*") => {
                path.pop();
                String::new()
            }
            last => last.unwrap_or_default().to_owned(),
        };
        see(path, alias.map_or(name, |alias| alias.trim().to_owned()));
    }
}

/// All names in the code, joined by `::`.
fn chains(code: &str) -> Vec<Vec<String>> {
    let mut chains: Vec<Vec<String>> = Vec::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code;
    let mut is_joined = false;
    while let Some(c) = rest.chars().next() {
        if is_name(c) {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let name = rest[..end].to_owned();
            match chains.last_mut() {
                Some(chain) if is_joined => chain.push(name),
                _ => chains.push(vec![name]),
            }
            rest = &rest[end..];
            is_joined = rest.starts_with("::");
            rest = rest.strip_prefix("::").unwrap_or(rest);
        } else {
            is_joined = false;
            rest = &rest[c.len_utf8()..];
        }
    }
    chains
}

#[test]
fn imports_are_found() {
    let sources = [
        ("lib.rs", "pub mod a;\npub mod b;\n"),
        ("a/mod.rs", "mod one;\nmod two;\npub use one::One;\npub(crate) use two::{self as second, Two};\n"),
        ("a/one.rs", "use super::Two;\n// use crate::b::B;\nlet x = \"crate::b::B\";\n"),
        ("a/two.rs", "use super::one;\nlet x = one::One;\n"),
        ("b.rs", "use crate::a::{self, One as First};\nlet x = a::second::y();\n"),
        ("c/mod.rs", "mod d;\npub use d::D;\nstruct C(D);\n"),
        ("c/d.rs", "impl super::C {}\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"),
    ];
    let sources = sources.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
    let found = Crate::new(&sources).imports();
    let of = |file: &str| found[Path::new(file)].iter().map(|p| p.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("lib.rs"), [""; 0]);
    assert_eq!(of("a/mod.rs"), [""; 0], "what is handed on is not imported");
    assert_eq!(of("a/one.rs"), ["a/two.rs"]);
    assert_eq!(of("a/two.rs"), ["a/one.rs"]);
    assert_eq!(of("b.rs"), ["a/one.rs", "a/two.rs"]);
    assert_eq!(of("c/mod.rs"), ["c/d.rs"], "what is handed on and used is");
    assert_eq!(of("c/d.rs"), ["c/mod.rs"], "not what tests use");
    let set = |files: [&str; 2]| BTreeSet::from(files.map(PathBuf::from));
    assert_eq!(loops(&found), [set(["a/one.rs", "a/two.rs"]), set(["c/d.rs", "c/mod.rs"])]);
}
