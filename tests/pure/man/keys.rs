// SPDX-License-Identifier: GPL-3.0-or-later
//! The manual's section on a configuration, made from the file in conf/ with its comments, keys and defaults.
//!
//! A comment is above the keys or the table that it describes, `## Text` is a heading, and `#key = value` a key without a default.

use super::roff::{escaped, literal, prose};

/// The section on the configuration with this text.
pub(crate) fn section(text: &str) -> String {
    let mut section = Section::default();
    // The first paragraph names the file, as the section's title does.
    let (_, text) = text.split_once("\n#\n").expect("a second paragraph");
    text.lines().chain([""]).for_each(|line| section.line(line));
    section.below("");
    section.text
}

#[derive(Default)]
struct Section<'a> {
    text: String,
    comment: String,
    keys: Vec<&'a str>,
    example: Vec<&'a str>,
    /// Kept until a key or a text follows it. Tables have a name, and need none.
    heading: &'a str,
    is_in_list: bool,
}

impl<'a> Section<'a> {
    fn line(&mut self, line: &'a str) {
        let comment = if line == "#" { Some("") } else { line.strip_prefix("# ") };
        if let Some(comment) = comment {
            if !self.keys.is_empty() {
                self.flush();
            }
            self.comment += &format!("{comment}\n");
        } else if let Some(heading) = line.strip_prefix("## ") {
            self.heading = heading;
        } else if line.is_empty() {
            self.flush();
        } else if line.starts_with("#[[") || !self.example.is_empty() {
            self.example.push(&line[1..]);
        } else if line.trim_start_matches('#').starts_with('[') {
            self.below(line.trim_start_matches('#'));
            self.flush();
        } else {
            self.keys.push(line);
        }
    }

    /// Writes the collected lines: keys with their comment, a list of tables with its example, or a text.
    fn flush(&mut self) {
        if let Some(name) = self.example.first().copied() {
            self.below(name);
            let comment = std::mem::take(&mut self.comment);
            self.text += &(prose(&comment) + &literal(&std::mem::take(&mut self.example).join("\n")));
            return;
        }
        if (!self.comment.is_empty() || !self.keys.is_empty()) && !self.heading.is_empty() {
            self.below(self.heading);
        }
        if !self.keys.is_empty() && !self.is_in_list {
            self.text += ".Bl -tag -width Ds\n";
            self.is_in_list = true;
        }
        for key in self.keys.drain(..) {
            self.text += &format!(".It Ic \"{}\"\n", escaped(key));
        }
        self.text += &prose(&std::mem::take(&mut self.comment));
    }

    /// Begins a subsection, or ends the last one if there is no title.
    fn below(&mut self, title: &str) {
        if std::mem::take(&mut self.is_in_list) {
            self.text += ".El\n";
        }
        self.heading = "";
        if !title.is_empty() {
            self.text += &format!(".Ss \"{}\"\n", escaped(title));
        }
    }
}
