// SPDX-License-Identifier: GPL-3.0-or-later
//! What a reader gets of a message: its words, its links, and what is attached.

use super::characters::{self, Apart, Lengths};
use super::content::{Content, MAX_HIDDEN, MAX_WORDS, NO_ANSWER, Position, Shows};
use super::frames::Frame;
use super::lines::{Line, Lines, unfold};
use super::words::{Token, tokens};
use crate::mail::{File, Piece, Text, Visitor, pieces};
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Bytes of an attached file below which it is a mark or an icon.
const SMALL: usize = 1024;

/// Words that are left out of a message before its links say nothing about it.
const FEW_CUT: usize = 8;

/// Bytes of own lines that say nothing: "see below", a number that differs in each copy.
const SHORT: usize = 24;

/// Reads a message.
pub(in crate::signature) struct Reader {
    key: [u8; 16],
    traced: bool,
    /// What is read of the message, and of the multiparts and messages that are open, outermost first.
    read: Content,
    open: Vec<Frame>,
    parts: usize,
    /// The text of the HTML part that is read, a line for each block.
    html: String,
    /// The same of what it quotes, and of what it hides.
    html_quoted: String,
    html_hidden: String,
    html_links: Content,
    folded: String,
}

impl Reader {
    /// `key` is that of the words' hashes; `traced` keeps where each word stands.
    pub(super) fn new(key: [u8; 16], traced: bool) -> Self {
        Self {
            key,
            traced,
            read: Content::default(),
            open: Vec::new(),
            parts: 0,
            html: String::new(),
            html_quoted: String::new(),
            html_hidden: String::new(),
            html_links: Content::default(),
            folded: String::new(),
        }
    }

    /// What was read.
    pub(super) fn finish(self) -> Content {
        self.read.whole()
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(bytes);
        hasher.finish()
    }

    /// Reads a part; `quoted` is what is marked as another message's in it by other means than lines.
    fn read_text(&mut self, text: &str, quoted: &str, mut part: Content) {
        self.parts += 1;
        let mut lines = Lines::of(text);
        if !quoted.is_empty() {
            lines.quoted.extend(Lines::all(quoted));
        }
        part.was_cut = lines.leave_out(FEW_CUT);
        // Who answers with a link or a line of code has answered, though it has no words.
        part.speaks = lines.own.iter().map(|(_, line)| line.len()).sum::<usize>() > SHORT;
        self.read_lines(&lines.own, &mut part);
        if part.words.len() <= NO_ANSWER {
            part.quoted = self.kept(lines.quoted);
        }
        if part.words.is_empty() {
            part.footer = self.kept(lines.footer);
        }
        self.keep(part);
    }

    /// What is read of lines that are read only if a message has no others.
    fn kept(&mut self, lines: Vec<Line<'_>>) -> Option<Box<Content>> {
        let lines = if lines.is_empty() { lines } else { unfold(lines) };
        let mut content = Content::default();
        self.read_lines(&lines, &mut content);
        (!content.words.is_empty()).then(|| Box::new(content))
    }

    fn read_lines(&mut self, lines: &[Line<'_>], part: &mut Content) {
        let start = part.words.len();
        let mut folded = std::mem::take(&mut self.folded);
        let mut lengths = Lengths::default();
        let mut apart = Apart::default();
        for &(line, text) in lines {
            if part.words.len() >= MAX_WORDS {
                break;
            }
            tokens(text, &mut folded, &mut |token| match token {
                // A line may be a whole message long.
                Token::Word(..) if part.words.len() >= MAX_WORDS => (),
                Token::Word(word, token) => {
                    lengths.word(word, token.len());
                    if !apart.take(word, part.words.len()) {
                        self.join(&mut apart, line, part);
                    }
                    self.push(word, token, line, part);
                }
                Token::Link(link) => {
                    lengths.link(link.len());
                    part.link(link, self.hash(link.as_bytes()));
                }
            });
        }
        self.join(&mut apart, lines.last().map_or(0, |(line, _)| *line), part);
        self.folded = folded;
        if lengths.say_little(lines) {
            part.words.truncate(start);
            part.positions.truncate(start);
            characters::pieces(lines, &mut |piece, line| self.push(piece, piece, line, part));
        }
    }

    /// A word of a line, folded and as it stands.
    fn push(&self, word: &str, token: &str, line: usize, part: &mut Content) {
        if part.words.len() >= MAX_WORDS {
            return;
        }
        part.words.push(self.hash(word.as_bytes()));
        if self.traced {
            // It is shown to people; what would control their terminal is no part of a word.
            let word = token.chars().filter(|c| !c.is_control()).collect();
            part.positions.push(Position { part: self.parts, line, word });
        }
    }

    /// Letters that stood apart end; enough of them are read as one row.
    fn join(&self, apart: &mut Apart, line: usize, part: &mut Content) {
        if apart.letters >= characters::APART {
            part.words.truncate(apart.start);
            part.positions.truncate(apart.start);
            characters::pieces_of(&apart.row, &mut |piece| self.push(piece, piece, line, part));
        }
        apart.clear();
    }

    fn keep(&mut self, part: Content) {
        match self.open.last_mut() {
            Some(frame) => frame.add(part),
            None => self.read.append(part),
        }
    }

    /// What was begun last ends.
    fn close(&mut self) {
        if let Some(frame) = self.open.pop() {
            self.keep(frame.finish());
        }
    }

    /// A piece of an HTML part; [`html_end`](Self::html_end) comes after the last.
    pub(in crate::signature) fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) => push_text(&mut self.html, text),
            Piece::Quoted(text) => push_text(&mut self.html_quoted, text),
            Piece::Hidden(text) => push_text(&mut self.html_hidden, text),
            Piece::Break => {
                self.html.push('\n');
                for other in [&mut self.html_quoted, &mut self.html_hidden] {
                    if !other.is_empty() && !other.ends_with('\n') {
                        other.push('\n');
                    }
                }
            }
            Piece::Target(target) => {
                let hash = self.hash(target.as_bytes());
                self.html_links.link(target, hash);
            }
        }
    }

    /// The HTML part ends whose pieces were shown.
    pub(in crate::signature) fn html_end(&mut self) {
        let mut html = std::mem::take(&mut self.html);
        let mut quoted = std::mem::take(&mut self.html_quoted);
        let mut page = std::mem::take(&mut self.html_links);
        page.shows = Shows::Page;
        page.hidden = self.hidden();
        self.read_text(&html, &quoted, page);
        html.clear();
        quoted.clear();
        (self.html, self.html_quoted) = (html, quoted);
    }

    /// The hidden words of the HTML part.
    fn hidden(&mut self) -> Vec<u64> {
        let (mut words, mut folded) = (Vec::new(), std::mem::take(&mut self.folded));
        for line in self.html_hidden.lines() {
            if words.len() >= MAX_HIDDEN {
                break;
            }
            tokens(line, &mut folded, &mut |token| match token {
                Token::Word(word, _) if words.len() < MAX_HIDDEN => words.push(self.hash(word.as_bytes())),
                Token::Word(..) | Token::Link(_) => (),
            });
        }
        self.folded = folded;
        self.html_hidden.clear();
        words
    }
}

/// Line ends in HTML are blanks.
fn push_text(all: &mut String, text: &str) {
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            all.push(' ');
        }
        all.push_str(line);
    }
}

impl Visitor for Reader {
    fn text(&mut self, text: Text<'_>) {
        // The header of the message that a report is about.
        if text.subtype == "rfc822-headers" && matches!(self.open.last(), Some(Frame::Report { .. })) {
            return;
        }
        let shows = Shows::text(text.subtype, text.is_attachment);
        self.read_text(text.shown, "", Content { shows, ..Content::default() });
    }

    fn html(&mut self, html: Text<'_>) {
        pieces(html.shown, &mut |piece| self.piece(piece));
        self.html_end();
    }

    /// Of files, the first half at least: noise at the end of a picture makes it no other one.
    fn file(&mut self, file: File<'_>) {
        if let Some(frame) = self.open.last_mut() {
            frame.see_type(file.media);
        }
        let bytes = file.shown;
        if bytes.len() < SMALL {
            return;
        }
        let length = 1 << (bytes.len() - bytes.len() / 8).ilog2();
        let digest = Sha256::digest(&bytes[..length]);
        let files = vec![digest.into()];
        self.keep(Content { files, has_files: true, shows: Shows::AsFile, ..Content::default() });
    }

    fn message(&mut self, _fields: &[&[u8]]) {
        self.open.push(Frame::Message(Content::default()));
    }

    fn message_end(&mut self) {
        let Some(message) = self.open.pop().map(Frame::finish) else {
            return;
        };
        match self.open.last_mut() {
            Some(frame) => frame.add_message(message),
            None => self.read.append(message),
        }
    }

    fn report(&mut self) {
        self.open.push(Frame::report());
    }

    fn report_end(&mut self) {
        self.close();
    }

    fn alternatives(&mut self) {
        self.open.push(Frame::alternatives());
    }

    fn alternative(&mut self) {
        if let Some(frame) = self.open.last_mut() {
            frame.next_alternative();
        }
    }

    /// Of alternatives, the one that mail programs show best, the last of these. What is attached in any of them counts.
    fn alternatives_end(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::RawMessage;

    fn read(html: &str) -> Content {
        let raw = format!("Content-Type: text/html\n\n{html}");
        let mut reader = Reader::new([7; 16], false);
        RawMessage::from_bytes(raw.as_bytes()).unwrap().visit(&mut reader);
        reader.finish()
    }

    #[test]
    fn hidden_words_are_kept_apart() {
        let shown = read("<p>One two three</p>");
        let both = read(
            "<p>One <i style='display:none'>four<br>five</i>two three</p><p hidden>six\nseven http://a.example</p>",
        );
        assert_eq!((both.words, both.links.len()), (shown.words, 0));
        assert_eq!(both.hidden, read("<p>four five six seven</p>").words);
        let many = read(&format!("<p hidden>{}</p>yes", "word ".repeat(5000)));
        assert_eq!((many.words.len(), many.hidden.len()), (1, MAX_HIDDEN));
    }

    #[test]
    fn what_was_left_out_is_known() {
        let quote =
            "<blockquote type=cite>This has been written by somebody else, and at another time.</blockquote>";
        assert!(read(&format!("yes {quote}")).was_cut);
        assert!(!read("yes <blockquote type=cite>see you there</blockquote>").was_cut);
        assert!(
            !read("<p hidden>This is by nobody else, and was never written at another time.</p>").was_cut
        );
    }
}
