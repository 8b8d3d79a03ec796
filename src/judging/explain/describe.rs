// SPDX-License-Identifier: GPL-3.0-or-later
//! Descriptions of the content that signatures were made from.

use bulkmark_mail::{File, RawMessage, Text, Visitor};
use bulkmark_signature::near::{Passage, Position, Scheme, Thing};

/// Describes a thing, such as a picture or the links.
pub(super) fn describe_thing(thing: Thing) -> String {
    match thing {
        Thing::File(n) => format!("attached file {}, its main pieces or its beginning", n + 1),
        Thing::Links => "the targets of its links".to_owned(),
        Thing::Path(n) => format!("picture {} on the web, its path", n + 1),
        Thing::Hidden => "text that its style hides".to_owned(),
        Thing::Answer => "its few words, and the text that it quotes below them".to_owned(),
        Thing::Band(n) => format!("the look of its picture, {} of 7", n + 1),
    }
}

/// The words that contain a passage, and their place.
pub(super) fn words(passage: &Passage, positions: &[Position]) -> String {
    let reach = Scheme::SHIPPED.reach().min(positions.len());
    let words: Vec<&Position> = positions.iter().cycle().skip(passage.at).take(reach).collect();
    let text = words.iter().map(|place| &*place.word).collect::<Vec<_>>().join(" ");
    match (words.first(), words.last()) {
        (Some(first), Some(last)) if first.part == last.part && first.line < last.line => {
            format!("part {}, lines {} to {}: {text}", first.part, first.line, last.line)
        }
        (Some(first), _) => format!("part {}, from line {} on: {text}", first.part, first.line),
        _ => text,
    }
}

/// The parts of a message.
pub(super) fn outline(message: &RawMessage) -> String {
    let mut outline = Outline(Vec::new());
    message.visit(&mut outline);
    outline.0.join("; ")
}

struct Outline(Vec<String>);

impl Visitor for Outline {
    fn text(&mut self, text: Text<'_>) {
        self.0.push(format!("text of {} lines", text.shown.lines().count()));
    }

    fn html(&mut self, html: Text<'_>) {
        self.0.push(format!("HTML of {} bytes", html.shown.len()));
    }

    fn file(&mut self, file: File<'_>) {
        self.0.push(format!("file of {} bytes", file.shown.len()));
    }

    fn message(&mut self, _fields: &[&[u8]]) {
        self.0.push("enclosed message:".to_owned());
    }

    fn message_end(&mut self) {}
}
