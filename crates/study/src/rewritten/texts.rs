// SPDX-License-Identifier: GPL-3.0-or-later
//! The plain text of messages, by sentences.

use bulkmark_mail::{File, RawMessage, Text, Visitor};

/// The words of a sentence, unchanged.
pub(super) type Sentence = Vec<String>;

/// The sentences of a message's plain text, without quoted lines. None if it has only HTML.
pub(super) fn sentences(message: &RawMessage) -> Vec<Sentence> {
    let mut reader = Reader::default();
    message.visit(&mut reader);
    let lines = reader.text.lines().filter(|line| !line.trim_start().starts_with(['>', '|']));
    let (mut all, mut sentence) = (Vec::new(), Sentence::new());
    for line in lines {
        // A heading or an item of a list has no full stop; an empty line ends it.
        if line.trim().is_empty() {
            all.push(std::mem::take(&mut sentence));
        }
        for word in line.split_whitespace() {
            sentence.push(word.to_owned());
            if word.ends_with(['.', '!', '?', ':', ';']) {
                all.push(std::mem::take(&mut sentence));
            }
        }
    }
    all.push(sentence);
    all.retain(|sentence| !sentence.is_empty());
    all
}

#[derive(Default)]
struct Reader {
    text: String,
}

impl Visitor for Reader {
    fn text(&mut self, text: Text<'_>) {
        if text.subtype == "plain" && !text.is_attachment {
            self.text.push_str(text.shown);
            self.text.push_str("\n\n");
        }
    }

    fn html(&mut self, _: Text<'_>) {}

    fn file(&mut self, _: File<'_>) {}

    fn message(&mut self, _: &[&[u8]]) {}

    fn message_end(&mut self) {}
}
