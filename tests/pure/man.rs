// SPDX-License-Identifier: GPL-3.0-or-later
//! The manual pages: well-formed, and with everything that the program tells of itself. And the example of
//! docs/signatures.md, which is run.

use bulkmark::command::Cli;
use bulkmark_testing::{program, skip};
use clap::CommandFactory as _;
use std::collections::BTreeMap;
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
    assert!(pages.len() >= 5, "{pages:?}");
    let output = match Command::new("mandoc").args(["-Tlint", "-Wwarning"]).args(&pages).output() {
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

/// A page's source.
fn page(name: &str) -> String {
    fs::read_to_string(man().join(name)).unwrap()
}

/// What a text says, however it is marked up: its words, without the macros of mdoc(7) and what help says of values.
fn words(text: &str) -> Vec<String> {
    let text = text.replace("\\&", "");
    let mut words = Vec::new();
    for line in text.lines() {
        let is_macro = line.starts_with('.');
        let line = line.trim_start_matches('.');
        for word in line.split_whitespace() {
            let mut letters = word.chars();
            // Macros: two letters, the first of them large.
            let named = is_macro
                && word.len() == 2
                && letters.next().is_some_and(char::is_uppercase)
                && letters.all(char::is_lowercase);
            let word: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
            if !named && !word.is_empty() {
                words.push(word.to_lowercase());
            }
        }
    }
    words
}

/// Whether `page` says what `help` does, in these words.
fn says(page: &str, help: &str) -> bool {
    // Defaults are looked for apart.
    let help = help.split(" [default: ").next().unwrap();
    let (page, help) = (words(page), words(help));
    help.is_empty() || page.windows(help.len()).any(|window| window == help)
}

/// The options that a page, or a part of it, describes, with their text: `.It Fl -config Ar file` is `--config`.
fn described(text: &str) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    for item in text.split("\n.It ").skip(1) {
        let item = item.split("\n.El").next().unwrap();
        let names = item.lines().next().unwrap().split("Fl ").skip(1);
        for name in names.filter_map(|flag| flag.split_whitespace().next()) {
            options.insert(format!("-{name}"), item.to_owned());
        }
    }
    options
}

/// What is wrong with the part of a manual that describes a command. `above` has options that go with it, too.
fn faults(command: &clap::Command, part: &str, above: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut options = described(part);
    let about = command.get_about().unwrap().to_string();
    if !says(part, &about) {
        faults.push(format!("does not say {about:?}"));
    }
    for argument in command.get_arguments() {
        let id = argument.get_id();
        let help = argument.get_long_help().or_else(|| argument.get_help()).unwrap().to_string();
        let text = match argument.get_long() {
            None => Some(part.to_owned()),
            Some(long) => options.remove(&format!("--{long}")),
        };
        let Some(text) = text else {
            faults.push(format!("does not describe {id}"));
            continue;
        };
        if !says(&text, &help) {
            faults.push(format!("does not say of {id}: {help:?}"));
        }
        for default in argument.get_default_values() {
            let default = default.to_string_lossy();
            if argument.get_action().takes_values() && !text.contains(&*default) {
                faults.push(format!("does not say that {id} is {default} by default"));
            }
        }
    }
    options.retain(|name, _| !above.contains(name) && !["-h", "--help"].contains(&&**name));
    faults.extend(options.keys().map(|name| format!("describes {name}, which there is not")));
    faults
}

/// Help and manual come from one source in so far as the manual has every word of the help.
#[test]
fn the_manual_says_what_help_says() {
    let general = page("bulkmark.1");
    let for_all = described(general.split("\n.Ss Options of all commands\n").nth(1).unwrap());
    for option in ["-h", "--help", "-V", "--version"] {
        assert!(for_all.contains_key(option), "bulkmark.1 has no {option}");
    }
    let program = Cli::command();
    let mut waiting: Vec<_> =
        program.get_subcommands().map(|command| (command, String::new(), Vec::new())).collect();
    let (mut seen, mut wrong) = (0, Vec::new());
    while let Some((command, before, above)) = waiting.pop() {
        if command.is_hide_set() {
            continue;
        }
        seen += 1;
        let name = format!("{before} {}", command.get_name());
        let title = format!("\n.Ss bulkmark{name}\n");
        let section =
            general.split_once(&title).unwrap_or_else(|| panic!("bulkmark.1 has no section{title}")).1;
        let part = match &*name {
            " milter" => page("bulkmark-milter.8"),
            " doors" => page("bulkmark-doors.8"),
            " server" => page("bulkmark-server.8"),
            _ => section.split("\n.Ss ").next().unwrap().split("\n.Sh ").next().unwrap().to_owned(),
        };
        wrong.extend(
            faults(command, &part, &above).iter().map(|fault| format!("bulkmark{name}: the manual {fault}")),
        );
        let options = command.get_arguments().filter_map(|argument| argument.get_long());
        let above: Vec<_> = options.map(|long| format!("--{long}")).chain(above).collect();
        waiting.extend(command.get_subcommands().map(|below| (below, name.clone(), above.clone())));
    }
    assert!(seen >= 15, "{seen} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_worked_example_is_right() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/signatures.md");
    let text = fs::read_to_string(document).unwrap();
    let message = text.split_once("```eml\n").unwrap().1.split_once("```").unwrap().0;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.eml"), message).unwrap();
    let mut command = Command::new(program());
    let output = command.args(["signature", "letter.eml"]).current_dir(directory.path()).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let line = lines.lines().next().unwrap();
    assert!(line.contains("\tbody\t") && text.contains(line), "{line}");
}
