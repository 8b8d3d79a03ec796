// SPDX-License-Identifier: GPL-3.0-or-later
//! The documents for people: links lead to existing targets, and the commands, options and files that they name exist.

use crate::layering::all_sources;
use bulkmark::command::Cli;
use bulkmark_testing::repository;
use clap::{Command, CommandFactory as _};
use std::fs;
use std::path::PathBuf;

/// All documents with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let directories = ["", "docs", "docs/decisions", "fuzz", "crates/filter", "crates/study/docs"]
        .map(|name| repository().join(name));
    let files = directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap());
    let mut documents: Vec<_> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    documents.sort();
    assert!(documents.len() > 20, "{documents:?}");
    documents
}

/// Lines of code, and text between backticks in the others. A line that ends in a backslash continues in the next.
fn code(text: &str) -> Vec<String> {
    let (mut all, mut is_fenced) = (Vec::new(), false);
    for line in text.replace("\\\n", " ").lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            all.push(line.trim().to_owned());
        }
    }
    // Text between backticks may continue in the next line.
    all.extend(prose(text).split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")));
    all
}

/// The text without lines of code.
fn prose(text: &str) -> String {
    let mut is_fenced = false;
    let is_prose = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        is_fenced ^= fence;
        !is_fenced && !fence && !line.starts_with("    ")
    };
    text.lines().filter(is_prose).map(|line| format!("{line}\n")).collect()
}

/// The anchor of a heading in links.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// The usual ports of other filters beside an MTA: OpenDKIM and its neighbours, rspamd, Amavis, SpamAssassin, ClamAV.
#[test]
fn default_ports_are_nobody_elses() {
    let (milter, server) = (bulkmark::config::MilterFile::default(), bulkmark::config::ServerFile::default());
    let ours = [
        format!("{:?}", milter.listen),
        milter.status.listen.to_string(),
        format!("{:?}", server.listen),
        server.status.listen.to_string(),
    ];
    let taken = [
        783, 3310, 7357, 8890, 8891, 8892, 8893, 8894, 10024, 10025, 11332, 11333, 11334, 12301, 12345, 54321,
    ];
    for (i, address) in ours.iter().enumerate() {
        let port = address.rsplit(':').next().unwrap().trim_end_matches(|c: char| !c.is_ascii_digit());
        let port: u16 = port.parse().unwrap();
        assert!(!taken.contains(&port), "{address} is another filter's");
        assert!(!ours[..i].contains(address), "{address} is used twice");
    }
}

#[test]
fn links_lead_somewhere() {
    let mut found = 0;
    for (path, text) in documents() {
        for (i, _) in text.match_indices("](") {
            let target = text[i + 2..].split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            found += 1;
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(file.exists(), "{}: there is no {target}", path.display());
            if !place.is_empty() {
                let there = fs::read_to_string(&file).unwrap();
                assert!(anchors(&there).iter().any(|name| name == place), "{}: {target}", path.display());
            }
        }
    }
    assert!(found > 100, "{found}");
}

/// The fault in a command line after `bulkmark`.
fn fault(mut command: &Command, rest: &str) -> Option<String> {
    let end = rest.find(['|', ';', '&', '>', '#', '(', ')']).unwrap_or(rest.len());
    let mut options: Vec<_> = command.get_arguments().collect();
    let mut is_command = true;
    for word in rest[..end].split_whitespace() {
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap();
            if !["help", "version"].contains(&name) && !options.iter().any(|o| o.get_long() == Some(name)) {
                return Some(format!("bulkmark {} has no --{name}", command.get_name()));
            }
        } else if is_command && command.has_subcommands() {
            match command.find_subcommand(word) {
                Some(below) => command = below,
                None => return Some(format!("{} has no command {word}", command.get_name())),
            }
            options.extend(command.get_arguments());
        } else {
            is_command = false;
        }
    }
    None
}

#[test]
fn commands_and_their_options_exist() {
    let mut program = Cli::command();
    program.build();
    let mut found = 0;
    for (path, text) in documents() {
        for code in code(&text) {
            for (i, _) in code.match_indices("bulkmark ") {
                // A command begins the line, or follows a word that runs another command.
                let before = code[..i].trim_end();
                let begins = ["", "$", "#", "sudo", "&&", "|", "do"].iter().any(|&word| {
                    before == word || before.strip_suffix(word).is_some_and(|rest| rest.ends_with(' '))
                });
                let rest = &code[i + "bulkmark ".len()..];
                let is_name = rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '-');
                // A daemon's output about itself, with its version.
                let is_output = rest.split_whitespace().nth(1).is_some_and(|word| word.starts_with("0."));
                if begins && is_name && !is_output {
                    found += 1;
                    if let Some(fault) = fault(&program, rest) {
                        panic!("{}: {code}: {fault}", path.display());
                    }
                }
            }
        }
    }
    assert!(found > 50, "{found}");
}

/// Files of the source, targets of make, tests and benches.
#[test]
fn files_and_targets_exist() {
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    let is_target = |name: &str| makefile.lines().any(|line| line.split(':').next() == Some(name));
    let is_one_of = |paths: &[String]| paths.iter().any(|path| repository().join(path).exists());
    let is_test = |name: &str| is_one_of(&[format!("tests/{name}.rs"), format!("tests/{name}/main.rs")]);
    let is_bench = |name: &str| {
        is_one_of(&[
            format!("benches/{name}.rs"),
            format!("benches/{name}/main.rs"),
            format!("crates/counts/benches/{name}.rs"),
            format!("crates/filter/benches/{name}.rs"),
            format!("crates/filter/speed/{name}.rs"),
        ])
    };
    let mut found = 0;
    for (path, text) in documents() {
        let there = path.parent().unwrap();
        for code in code(&text) {
            // Without comments.
            let words: Vec<_> = code.split(" # ").next().unwrap().split_whitespace().collect();
            let at = |message: &str| format!("{}: {code}: {message}", path.display());
            for pair in words.windows(2) {
                let name = pair[1].trim_end_matches([',', '.']);
                let exists = match pair[0] {
                    // Not a target of another directory.
                    "make" if name != "-C" => is_target(name),
                    "--test" => is_test(name),
                    "--bench" => is_bench(name),
                    _ => continue,
                };
                found += 1;
                assert!(exists, "{}", at(name));
            }
            for word in words {
                let is_source = ["src/", "tests/", "benches/", "crates/", "conf/", "packaging/", "systemd/"]
                    .iter()
                    .any(|directory| word.starts_with(directory));
                if is_source {
                    found += 1;
                    assert!(repository().join(word).exists() || there.join(word).exists(), "{}", at(word));
                }
            }
        }
    }
    assert!(found > 50, "{found}");
}

/// The last section of docs/interfaces.md names each test before its file, and both exist.
#[test]
fn tests_of_clients_exist() {
    let text = fs::read_to_string(repository().join("docs/interfaces.md")).unwrap();
    let text = text.split_once("\n## Tested clients\n").unwrap().1;
    let spans: Vec<_> = prose(text).split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let (mut names, mut found) = (Vec::new(), 0);
    for span in spans {
        if span.ends_with(".rs") && span.contains('/') {
            let source =
                fs::read_to_string(repository().join(&span)).unwrap_or_else(|e| panic!("{span}: {e}"));
            for name in names.drain(..) {
                found += 1;
                assert!(
                    source.contains(&format!("#[test]\nfn {name}()"))
                        || source.contains(&format!("    fn {name}()")),
                    "{span} has no test {name}"
                );
            }
        } else if span.contains('_')
            && span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        {
            names.push(span);
        }
    }
    assert!(names.is_empty(), "in which file? {names:?}");
    assert!(found >= 18, "{found}");
}

/// The book of `make docs` has a chapter for each page and for each document that a page links to, so no link in it is dead.
#[test]
fn every_page_is_in_the_book() {
    let directory = repository().join("docs");
    let targets = |text: &str| -> Vec<String> {
        text.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap().to_owned()).collect()
    };
    let chapters: Vec<_> = targets(&fs::read_to_string(directory.join("SUMMARY.md")).unwrap())
        .iter()
        .map(|name| directory.join(name).canonicalize().unwrap())
        .collect();
    for (path, text) in documents() {
        if !path.starts_with(&directory) || path.ends_with("SUMMARY.md") {
            continue;
        }
        assert!(
            chapters.contains(&path.canonicalize().unwrap()),
            "{} is not in docs/SUMMARY.md",
            path.display()
        );
        for target in
            targets(&text).iter().filter(|target| target.ends_with(".md") && !target.contains("://"))
        {
            let linked = path.parent().unwrap().join(target).canonicalize().unwrap();
            assert!(chapters.contains(&linked), "{}: {target} is not in docs/SUMMARY.md", path.display());
        }
    }
}

/// Words after which `who` takes the place of a noun, as in "the word of who reports it".
const NO_NOUNS: [&str; 44] = [
    "of", "to", "for", "by", "from", "with", "says", "say", "said", "shows", "show", "know", "knows",
    "known", "tell", "tells", "told", "ask", "asks", "see", "sees", "or", "and", "but", "than", "only", "is",
    "are", "was", "not", "on", "at", "as", "if", "so", "since", "because", "while", "that", "about", "names",
    "", "read", "reads",
];

/// Counts of `what`, and of `who` or `whoever`, in the place of a noun; and the number of words.
fn pronouns(text: &str) -> [usize; 3] {
    let [mut what, mut who, mut words] = [0; 3];
    let mut before = String::new();
    // Text between backticks is code.
    for word in prose(text).split('`').step_by(2).flat_map(str::split_whitespace) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if bare.is_empty() {
            continue;
        }
        words += 1;
        let is_noun = NO_NOUNS.contains(&before.as_str());
        match bare.as_str() {
            "what" => what += 1,
            "whoever" | "whomever" => who += 1,
            "who" | "whom" if is_noun => who += 1,
            _ => {}
        }
        // No word precedes the first one of a sentence.
        before = if word.ends_with(['.', ':', ';', '|']) { String::new() } else { bare };
    }
    [what, who, words]
}

/// Sentences name their things: of 1,000 words at most 3 are "what", and one is "who" or "whoever" without a noun before it.
#[test]
fn documents_name_their_things() {
    assert_eq!(
        pronouns("Of what is told, and who says so: `what`, users who agree. Whoever asks"),
        [1, 2, 13]
    );
    let faults: Vec<_> = documents()
        .into_iter()
        .filter_map(|(path, text)| unnamed(&path.to_string_lossy(), &text, 3))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The same for the comments of each crate, with 4 "what" of 1,000 words.
#[test]
fn comments_name_their_things() {
    let comments = |files: Vec<(PathBuf, String)>| -> String {
        let lines = files.iter().flat_map(|(_, text)| text.lines());
        let comments = lines.filter_map(|line| line.trim_start().strip_prefix("//"));
        comments.map(|line| format!("{}\n", line.trim_start_matches(['/', '!']).trim_start())).collect()
    };
    let faults: Vec<_> = all_sources()
        .into_iter()
        .filter_map(|(folder, files)| unnamed(&folder, &comments(files), 4))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The numbers of a text that has too many pronouns for things: more "what" of 1,000 words than `what_most`, or more than one "who".
fn unnamed(name: &str, text: &str, what_most: usize) -> Option<String> {
    let most = |words: usize, of_a_thousand: usize| (words * of_a_thousand).div_ceil(1000);
    let [what, who, words] = pronouns(text);
    (what > most(words, what_most) || who > most(words, 1))
        .then(|| format!("{name}: {what} what and {who} who in {words} words"))
}

/// The first line of a page names its readers.
#[test]
fn pages_say_who_they_are_for() {
    let [pages, studies] = ["docs", "crates/study/docs"].map(|name| repository().join(name));
    let is_page = |path: &PathBuf| {
        (path.starts_with(&pages) || path.starts_with(&studies)) && !path.ends_with("SUMMARY.md")
    };
    for (path, text) in documents().into_iter().filter(|(path, _)| is_page(path)) {
        let first = text.lines().skip(1).find(|line| !line.is_empty()).unwrap();
        assert!(first.starts_with("For "), "{}: {first}", path.display());
    }
}
