// SPDX-License-Identifier: GPL-3.0-or-later
//! The manual pages: well-formed, and with every command and option that the program tells of itself. And the example of
//! docs/signatures.md, which is run.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

fn man() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

#[test]
fn pages_are_well_formed() {
    let pages: Vec<_> = fs::read_dir(man()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() >= 4, "{pages:?}");
    let output = match Command::new("mandoc").args(["-Tlint", "-Wwarning"]).args(&pages).output() {
        Ok(output) => output,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: mandoc is not installed");
            assert!(std::env::var_os("CI").is_none(), "mandoc must be installed in CI");
            return;
        }
        Err(e) => panic!("mandoc: {e}"),
    };
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

/// What `bulkmark COMMAND --help` tells.
struct Help {
    commands: Vec<String>,
    /// With their dashes; `--help` and `--version`, which are described once for all, are left out.
    options: BTreeSet<String>,
}

fn help(command: &[String]) -> Help {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkmark")).args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut help = Help { commands: Vec::new(), options: BTreeSet::new() };
    let mut in_commands = false;
    for line in text.lines() {
        let indented = line.starts_with("  ");
        in_commands = line == "Commands:" || in_commands && indented;
        // Continuations of a description are indented further than the name.
        if in_commands && indented && !line.starts_with("   ") {
            help.commands.extend(line.split_whitespace().next().map(str::to_owned));
        }
        // A line of `- value: what it means` is no option.
        if line.trim_start().starts_with('-') && !line.trim_start().starts_with("- ") {
            let words = line.split_whitespace().map(|word| word.trim_end_matches(','));
            let options = words.take_while(|word| word.starts_with('-'));
            help.options.extend(options.map(str::to_owned));
        }
    }
    for general in ["-h", "--help", "-V", "--version"] {
        help.options.remove(general);
    }
    help
}

/// What a page, or a part of it, describes as options: `.It Fl -config Ar file` is `--config`.
fn described(text: &str) -> BTreeSet<String> {
    let items = text.lines().filter_map(|line| line.strip_prefix(".It "));
    let flags = items.flat_map(|item| item.split("Fl ").skip(1));
    flags.filter_map(|flag| flag.split_whitespace().next()).map(|name| format!("-{name}")).collect()
}

#[test]
fn every_command_and_option_is_described() {
    let page = |name: &str| fs::read_to_string(man().join(name)).unwrap();
    let (general, milter) = (page("bulkmark.1"), page("bulkmark-milter.8"));
    let for_all = described(general.split("\n.Ss Options of all commands\n").nth(1).unwrap());
    for option in ["-h", "--help", "-V", "--version"] {
        assert!(for_all.contains(option), "bulkmark.1 has no {option}");
    }

    // Each with the options of the command above it, which may be described there.
    let mut waiting = vec![(Vec::new(), BTreeSet::new())];
    let mut seen = 0;
    while let Some((command, above)) = waiting.pop() {
        let help = help(&command);
        // `help` repeats the other commands below itself.
        waiting.extend(
            help.commands
                .iter()
                .filter(|name| *name != "help")
                .map(|name| ([&*command, std::slice::from_ref(name)].concat(), help.options.clone())),
        );
        if command.is_empty() {
            assert!(help.options.is_empty(), "options of all commands: {:?}", help.options);
            continue;
        }
        seen += 1;
        let title = format!("\n.Ss bulkmark {}\n", command.join(" "));
        let section =
            general.split_once(&title).unwrap_or_else(|| panic!("bulkmark.1 has no section{title}")).1;
        let section = section.split("\n.S").next().unwrap();
        let text = if command == ["milter"] { &milter } else { section };
        let mut options = described(text);
        options.retain(|option| option != "-h" && option != "--help");
        let missing: Vec<_> =
            help.options.difference(&options).filter(|name| !above.contains(*name)).collect();
        assert!(missing.is_empty(), "bulkmark {} is described without {missing:?}", command.join(" "));
        let unknown: Vec<_> = options.difference(&help.options).collect();
        assert!(unknown.is_empty(), "bulkmark {} has no {unknown:?}", command.join(" "));
    }
    assert!(seen >= 5, "{seen} commands");
}

#[test]
fn the_worked_example_is_right() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/signatures.md");
    let text = fs::read_to_string(document).unwrap();
    let message = text.split_once("```eml\n").unwrap().1.split_once("```").unwrap().0;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.eml"), message).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulkmark"));
    let output = command.args(["signature", "letter.eml"]).current_dir(directory.path()).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.contains("\tbody\t") && text.contains(&line), "{line}");
}
