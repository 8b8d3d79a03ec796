// SPDX-License-Identifier: GPL-3.0-or-later
//! Every block of configuration in the documents, as a reader pastes it: each into the piece that the text above it names, one
//! after the other, beside the shipped configuration.

use bulkmark::config;
use bulkmark_testing::repository;
use std::fs;
use std::path::PathBuf;

/// The directory of configurations on a reader's machine.
const ETC: &str = "/etc/bulkmark/";

/// The file of a second milter, which has no pieces and no earlier file.
const SECOND: &str = "outbound.toml";

/// A block of TOML, and the text between it and the block or heading before.
#[derive(Debug, Default)]
struct Block {
    text: String,
    above: String,
}

/// Whether a whole block is TOML that sets a key. Formulas and the files of other programs are not.
fn is_toml(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|table| !table.is_empty())
}

/// The blocks of a document: those marked as TOML, and indented ones that are TOML.
fn blocks(document: &str) -> Vec<Block> {
    let (mut found, mut block, mut above) = (Vec::new(), String::new(), String::new());
    let mut fence: Option<bool> = None;
    for line in document.lines().chain(["end"]) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            match fence.take() {
                None => fence = Some(language == "toml"),
                Some(true) => {
                    found.push(Block { text: std::mem::take(&mut block), above: std::mem::take(&mut above) })
                }
                Some(false) => above.clear(),
            }
            continue;
        }
        let is_code = fence == Some(true)
            || fence.is_none() && line.starts_with("    ")
            || fence.is_none() && line.is_empty() && !block.is_empty();
        if is_code {
            block.extend([line, "\n"]);
            continue;
        }
        if is_toml(&block) {
            found.push(Block { text: block.clone(), above: std::mem::take(&mut above) });
        }
        block.clear();
        if line.starts_with('#') {
            above.clear();
        }
        above.extend([line, "\n"]);
    }
    found
}

/// The last piece that a text names: `milter.d/local.toml`.
fn piece(above: &str) -> Option<&str> {
    let (i, _) = above.rmatch_indices(ETC).find(|(i, _)| {
        let name = &above[i + ETC.len()..];
        ["milter.d/", "interfaces.d/", "server.d/"].iter().any(|directory| name.starts_with(directory))
            || name.starts_with(SECOND)
    })?;
    let rest = &above[i + ETC.len()..];
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"./-".contains(c)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// A reader's machine: the shipped files in a directory in place of [`ETC`].
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["milter", "interfaces", "server"] {
            let file = format!("{name}.toml");
            fs::copy(repository().join("conf").join(&file), directory.path().join(&file)).unwrap();
            fs::create_dir(directory.path().join(format!("{name}.d"))).unwrap();
        }
        Self(directory)
    }

    /// Appends a block to a piece, creates the files that it names, and reads the whole configuration.
    fn paste(&self, block: &str, piece: &str) -> Result<(), String> {
        let here = |text: &str| text.replace(ETC, &format!("{}/", self.0.path().display()));
        for quoted in block.split('"').filter(|text| text.starts_with(ETC)) {
            let content = if quoted.ends_with(".key") { "0123456789abcdef0123456789abcdef" } else { "" };
            fs::write(here(quoted), content).unwrap();
        }
        let path = self.0.path().join(piece);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, before + &here(block)).unwrap();
        let file = match piece {
            SECOND => SECOND,
            piece if piece.starts_with("interfaces.d/") => "interfaces.toml",
            _ => "milter.toml",
        };
        let milter = || config::load(&self.0.path().join(file)).map(drop);
        let server = || config::load_server(&self.0.path().join("server.toml")).map(drop);
        let read = if piece.starts_with("server") { server() } else { milter() };
        read.map_err(|e| e.to_string())
    }
}

fn documents() -> Vec<PathBuf> {
    let mut all: Vec<_> =
        fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "md"));
    all.sort();
    all.insert(0, repository().join("README.md"));
    all
}

#[test]
fn what_is_pasted_as_the_text_says_works() {
    let machine = Machine::new();
    let mut found = 0;
    for path in documents() {
        let shown = path.strip_prefix(repository()).unwrap().display().to_string();
        for block in blocks(&fs::read_to_string(&path).unwrap()) {
            found += 1;
            // A fleet's file of members is not a daemon's configuration.
            if block.text.starts_with("[[client]]") {
                continue;
            }
            let Some(piece) = piece(&block.above) else {
                panic!(
                    "{shown}: the text does not say into which file of {ETC}milter.d or server.d this goes:\n{}",
                    block.text
                );
            };
            // The address, and the choice of verifiers, exclude their alternatives.
            let choices = ["listen = ", "[authentication]"];
            let is_choice = block.text.starts_with("[fleet]")
                || piece.starts_with("milter.d/")
                    && choices.iter().any(|choice| block.text.starts_with(choice));
            let alone = Machine::new();
            let machines = [("alone", &alone), ("after all others", &machine)];
            for (who, machine) in machines.into_iter().take(if is_choice { 1 } else { 2 }) {
                if let Err(e) = machine.paste(&block.text, piece) {
                    panic!("{shown}, pasted into {piece} {who}: {e}\n{}", block.text);
                }
            }
        }
    }
    assert!(found >= 7, "{found}");
}

/// The examples in the manual, too.
#[test]
fn the_manuals_examples_work() {
    let manual = fs::read_to_string(repository().join("man/bulkmark.toml.5")).unwrap();
    let mut found = 0;
    for block in manual.split(".Bd -literal -offset indent\n").skip(1) {
        let block = block.split("\n.Ed").next().unwrap().replace("\\(dq", "\"").replace("\\-", "-") + "\n";
        found += 1;
        Machine::new().paste(&block, "milter.d/local.toml").unwrap_or_else(|e| panic!("{e}\n{block}"));
    }
    assert!(found >= 2, "{found}");
}

#[test]
fn blocks_are_found() {
    let text = "# A\nIn `/etc/bulkmark/milter.d/a.toml`:\n\n```toml\nx = 1\n\ny = 2\n```\n\nor in `/etc/bulkmark/server.d/b.toml`\n\n    \
                [t]\n\n    z = 3\n\ntext\n\n    f(n) = n + 1\n\n   ```sh\n   a = 1\n   ```\n";
    let found = blocks(text);
    let texts: Vec<_> = found.iter().map(|block| (block.text.trim(), piece(&block.above))).collect();
    assert_eq!(
        texts,
        [("x = 1\n\ny = 2", Some("milter.d/a.toml")), ("[t]\n\n    z = 3", Some("server.d/b.toml"))]
    );
}
