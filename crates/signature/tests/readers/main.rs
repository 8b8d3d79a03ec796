// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether bulkmark reads a message as mail programs show it: messages of many kinds through Thunderbird, Chromium, GMime and Python's
//! `email`. `differences.txt` lists the differences that stay, each with its reason; any other one fails. `make readers` runs it.
//!
//! `READERS_ONLY=css/,mixed/` selects rows by the beginning of their names; `READERS_SEED` and `READERS_MIXED` make other mixed rows, and
//! more; `READERS_ASK="email chromium"` selects readers, and `READERS_SHOW=1` prints the text that each reads.

mod ask;
mod disguises;
mod fields;
mod mime;
mod mixed;
mod pages;
mod paint;
mod rows;
mod structure;

use ask::Texts;
use rows::Row;
use std::collections::BTreeSet;

/// Rows, readers (`*` is any; a name may end with it), and the reason for the difference.
const DIFFERENCES: &str = include_str!("differences.txt");

fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    pages::rows(&mut all);
    disguises::rows(&mut all);
    paint::rows(&mut all);
    structure::rows(&mut all);
    fields::rows(&mut all);
    mixed::rows(&mut all, &variable("READERS_SEED", "1"), variable("READERS_MIXED", "80").parse().unwrap());
    let only = variable("READERS_ONLY", "");
    all.retain(|row| only.split(',').any(|start| row.name.starts_with(start)));
    all
}

/// Letters of a run that is no word: a line of base64.
const NO_WORD: usize = 32;

/// The words of a text: runs of letters and digits, in small letters.
fn words(text: &str) -> Vec<String> {
    // Zero-width marks stand inside words.
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
        .collect();
    // Scripts without blanks are split into letters.
    let is_cut = |c: char| matches!(c, '\u{e00}'..='\u{e7f}' | '\u{2e80}'..='\u{9fff}');
    let text: String =
        text.chars().flat_map(|c| if is_cut(c) { [' ', c, ' '] } else { ['\0', c, '\0'] }).collect();
    text.replace('\0', "")
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && word.len() < NO_WORD)
        .map(str::to_lowercase)
        .collect()
}

/// Words of one that the other lacks, or has less often; at most twelve.
fn beyond(these: &[String], those: &[String]) -> String {
    let mut left = those.to_vec();
    let mut found = Vec::new();
    for word in these {
        match left.iter().position(|there| there == word) {
            Some(at) => drop(left.swap_remove(at)),
            None => found.push(word.as_str()),
        }
    }
    let more = if found.len() > 12 { " ..." } else { "" };
    found.truncate(12);
    found.join(" ") + more
}

/// How the words that bulkmark reads differ from those of another reader.
fn difference(ours: &str, theirs: &str) -> Option<String> {
    let (ours, theirs) = (words(ours), words(theirs));
    if ours == theirs {
        return None;
    }
    let (more, less) = (beyond(&ours, &theirs), beyond(&theirs, &ours));
    Some(match (more.is_empty(), less.is_empty()) {
        (true, true) => "the same words in another order".to_owned(),
        (false, true) => format!("only bulkmark reads: {more}"),
        (true, false) => format!("bulkmark does not read: {less}"),
        (false, false) => format!("bulkmark reads: {more}; and not: {less}"),
    })
}

/// A difference that stays.
struct Known<'a> {
    name: &'a str,
    reader: &'a str,
}

impl<'a> Known<'a> {
    fn all() -> Vec<Self> {
        let lines = DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, rest) = line.split_once(" | ").expect(line);
                let (reader, reason) = rest.split_once(" | ").expect(line);
                assert!(!reason.trim().is_empty(), "{line}");
                Self { name: name.trim(), reader: reader.trim() }
            })
            .collect()
    }

    fn is(&self, name: &str, reader: &str) -> bool {
        let is_name = match self.name.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == self.name,
        };
        is_name && (self.reader == "*" || self.reader.split(' ').any(|known| known == reader))
    }
}

#[test]
fn messages_are_read_as_mail_programs_show_them() {
    let rows = rows();
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("rows");
    std::fs::create_dir(&files).unwrap();
    ask::lay_out(&rows, &files);
    let wanted = variable("READERS_ASK", "email gmime chromium thunderbird");
    let ask = |reader: &str| match reader {
        "chromium" => ask::chromium(&rows, directory.path()),
        "thunderbird" => ask::thunderbird(&files, directory.path()),
        _ => ask::parts(reader, &files),
    };
    let readers: Vec<(&str, Option<Texts>)> = wanted.split(' ').map(|reader| (reader, ask(reader))).collect();
    let known = Known::all();
    let shows = !variable("READERS_SHOW", "").is_empty();
    let mut met = BTreeSet::new();
    let (mut new, mut listed) = (Vec::new(), 0);
    for (number, row) in rows.iter().enumerate() {
        let ours = ask::bulkmark(row);
        for (reader, texts) in &readers {
            // Only some readers know style sheets.
            let is_asked = row.page.is_none() || matches!(*reader, "chromium" | "thunderbird");
            let theirs = texts.as_ref().filter(|_| is_asked).and_then(|texts| texts.get(&number));
            if let Some(theirs) = theirs.filter(|_| shows) {
                println!("{} | {reader} reads: {theirs}\n{} | bulkmark reads: {ours}", row.name, row.name);
            }
            let Some(found) = theirs.and_then(|theirs| difference(&ours, theirs)) else { continue };
            match known.iter().position(|known| known.is(&row.name, reader)) {
                Some(at) => {
                    met.insert(at);
                    listed += 1;
                }
                None => new.push(format!("{} | {reader} | {found}", row.name)),
            }
        }
    }
    for (reader, texts) in &readers {
        match texts {
            Some(texts) => println!("{reader}: {} of {} messages", texts.len(), rows.len()),
            None => println!("SKIPPED: {reader} is not installed"),
        }
    }
    for (_, known) in known.iter().enumerate().filter(|(at, _)| !met.contains(at)) {
        println!("no longer differs, or not asked: {} | {}", known.name, known.reader);
    }
    println!("{} messages; differences: {listed} listed, {} new", rows.len(), new.len());
    assert!(new.is_empty(), "bulkmark reads otherwise:\n{}", new.join("\n"));
}
