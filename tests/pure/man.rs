// SPDX-License-Identifier: GPL-3.0-or-later
//! The manual pages: their generated parts, from `--help` and from conf/, are up to date, and all are well-formed. Also runs the example
//! of docs/signatures.md.

#[path = "man/commands.rs"]
mod commands;
#[path = "man/keys.rs"]
mod keys;
#[path = "man/roff.rs"]
mod roff;
#[path = "man/short.rs"]
mod short;

use bulkmark::command::Cli;
use bulkmark_testing::{program, repository, skip};
use clap::CommandFactory as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A generated part of a page is between these lines; the first one has its name.
const BEGINS: &str = ".\\\" Made by \"make man\": ";
const ENDS: &str = ".\\\" End of this part";

/// The last section of conf/interfaces.toml, which is that of conf/milter.toml.
const INTERFACES: &str = "\n## Interfaces for other programs\n";

fn pages() -> Vec<PathBuf> {
    let pages: Vec<_> =
        fs::read_dir(repository().join("man")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() >= 5, "{pages:?}");
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn conf(name: &str) -> String {
    read(&repository().join("conf").join(name))
}

/// The reference version of this file.
fn reference(name: &str) -> String {
    read(&repository().join("conf/reference").join(name))
}

/// The generated part with this name.
fn part(name: &str) -> String {
    match name {
        "bulkmark" => commands::program(&Cli::command()),
        "milter.toml" | "server.toml" => keys::section(&reference(name)),
        "interfaces.toml" => keys::section(conf(name).split(INTERFACES).next().unwrap()),
        daemon => commands::daemon(&Cli::command(), daemon),
    }
}

/// A page with its parts generated again.
fn page(old: &str) -> String {
    let mut parts = old.split(BEGINS);
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |page, old| {
        let (name, rest) = old.split_once('\n').unwrap();
        let (_, rest) = rest.split_once(ENDS).unwrap_or_else(|| panic!("{name} has no end"));
        format!("{page}{BEGINS}{name}\n{}{ENDS}{rest}", part(name))
    })
}

/// conf/interfaces.toml with its interfaces.
fn interfaces(old: &str) -> String {
    let own = old.split(INTERFACES).next().unwrap();
    let milter = conf("milter.toml");
    let interfaces = milter.split_once(INTERFACES).unwrap().1.split("\n\n## ").next().unwrap();
    format!("{own}{INTERFACES}{interfaces}\n")
}

/// With `WRITE_MAN` in the environment it writes the pages, as `make man` does.
#[test]
fn pages_are_up_to_date() {
    let renewed = pages().into_iter().map(|path| (path, page as fn(&str) -> String));
    let short = |name: &'static str, renew: fn(&str) -> String| (repository().join("conf").join(name), renew);
    // Interfaces come last: they contain a part of the files before.
    let short = [
        short("milter.toml", |_| short::of("milter.toml", &reference("milter.toml"))),
        short("server.toml", |_| short::of("server.toml", &reference("server.toml"))),
        short("interfaces.toml", interfaces),
    ];
    for (path, renew) in renewed.chain(short) {
        let old = read(&path);
        let new = renew(&old);
        if std::env::var_os("WRITE_MAN").is_some() {
            fs::write(&path, new).unwrap();
        } else {
            assert!(old == new, "{} is out of date: run \"make man\"", path.display());
        }
    }
}

#[test]
fn pages_are_well_formed() {
    let output = match Command::new("mandoc").args(["-Tlint", "-Wwarning"]).args(pages()).output() {
        Ok(output) => output,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skip("mandoc is not installed");
            return;
        }
        Err(e) => panic!("mandoc: {e}"),
    };
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn the_worked_example_is_right() {
    let text = read(&repository().join("docs/signatures.md"));
    let message = text.split_once("```eml\n").unwrap().1.split_once("```").unwrap().0;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.eml"), message).unwrap();
    let mut command = Command::new(program());
    let output = command.args(["signature", "letter.eml"]).current_dir(directory.path()).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let line = lines.lines().next().unwrap();
    assert!(line.contains("\tbody\t") && text.contains(line), "{line}");
}
