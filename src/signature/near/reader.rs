// SPDX-License-Identifier: GPL-3.0-or-later
//! What a reader gets of a message: its words, its links, and what is attached.

use super::lines::own_lines;
use super::links;
use super::product::WordKey;
use super::things::{Enclosed, FEW, MAX_DECODED, MAX_FILES, Page, Shown, Source, words_in};
use super::words::{Token, Word, Words};
use crate::mail::{File, Piece, Text, Visitor, pieces};

/// Words that are read of a message, some hundred pages; what follows is left out.
const MAX_WORDS: usize = 1 << 16;

/// Where a word stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The number of the text or HTML part, from 1.
    pub part: usize,
    /// The line in it, from 1; in HTML, of what is shown.
    pub line: usize,
    /// The word as it stands, without control characters.
    pub word: String,
}

/// The content of a message, or of some parts of it.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Keyed hashes of the words.
    pub(super) words: Vec<u64>,
    /// Where each stands, when that is wanted.
    pub(super) positions: Vec<Position>,
    /// Links, and pictures that are shown.
    pub(super) page: Page,
    /// The attached files, each once.
    pub(super) files: Vec<Enclosed>,
}

impl Content {
    fn append(&mut self, mut other: Self) {
        other.words.truncate(MAX_WORDS - self.words.len().min(MAX_WORDS));
        other.positions.truncate(other.words.len());
        self.words.append(&mut other.words);
        self.positions.append(&mut other.positions);
        self.page.append(other.page);
        self.add_files(other.files);
    }

    fn add_files(&mut self, files: Vec<Enclosed>) {
        for file in files {
            if self.files.len() < MAX_FILES && self.files.iter().all(|known| known.digest != file.digest) {
                self.files.push(file);
            }
        }
    }

    /// The next of several alternatives: it is shown instead if it shows anything. What is attached to any of them stays.
    fn alternative(&mut self, mut next: Self) {
        self.add_files(std::mem::take(&mut next.files));
        if !next.words.is_empty() || !next.page.is_empty() {
            next.files = std::mem::take(&mut self.files);
            *self = next;
        }
    }
}

/// Reads a message.
pub(in crate::signature) struct Reader {
    key: WordKey,
    words: Words,
    traced: bool,
    /// What is read of the message, and of the alternatives that are open, outermost first.
    read: Content,
    open: Vec<Content>,
    /// Reports of programs that are open; what is in them was not written to anybody.
    reports: usize,
    parts: usize,
    /// The text of the HTML part that is read, a line for each block.
    html: String,
    html_page: Page,
    /// Pictures that were decoded.
    decoded: usize,
}

impl Reader {
    /// `key` is that of the words' hashes; `traced` keeps where each word stands.
    pub(super) fn new(key: WordKey, traced: bool) -> Self {
        Self {
            key,
            words: Words::new(key),
            traced,
            read: Content::default(),
            open: Vec::new(),
            reports: 0,
            parts: 0,
            html: String::new(),
            html_page: Page::default(),
            decoded: 0,
        }
    }

    /// What was read.
    pub(super) fn finish(self) -> Content {
        self.read
    }

    fn read_text(&mut self, text: &str, mut part: Content) {
        self.parts += 1;
        for (line, text) in own_lines(text) {
            if part.words.len() >= MAX_WORDS {
                break;
            }
            self.words.read(text, &mut |token| match token {
                // A line may be a whole message long.
                Token::Word(..) if part.words.len() >= MAX_WORDS => (),
                Token::Word(Word { hash, token, .. }) => {
                    part.words.push(hash);
                    if self.traced {
                        // It is shown to people; what would control their terminal is no part of a word.
                        let word = token.chars().filter(|c| !c.is_control()).collect();
                        part.positions.push(Position { part: self.parts, line, word });
                    }
                }
                Token::Link(link) => {
                    if let Some(page) = links::page_of(link) {
                        part.page.link(self.key.hash(page.as_bytes()));
                    }
                }
            });
        }
        if part.words.len() < FEW {
            part.page.text(text);
        }
        self.keep(part);
    }

    fn keep(&mut self, part: Content) {
        if self.reports > 0 {
            return;
        }
        match self.open.last_mut() {
            Some(shown) => shown.alternative(part),
            None => self.read.append(part),
        }
    }

    /// A piece of an HTML part; [`html_end`](Self::html_end) comes after the last.
    pub(in crate::signature) fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) => {
                // Line ends in HTML are blanks.
                for (i, line) in text.split('\n').enumerate() {
                    if i > 0 {
                        self.html.push(' ');
                    }
                    self.html.push_str(line);
                }
            }
            Piece::Break => self.html.push('\n'),
            Piece::Target(target) => {
                if let Some(page) = links::page_of(target) {
                    self.html_page.link(self.key.hash(page.as_bytes()));
                }
            }
            Piece::Picture { source, size } => self.picture(source, size),
            Piece::Quoted(text) => self.html_page.text(text),
            Piece::Hidden(_) => (),
        }
    }

    fn picture(&mut self, source: &str, size: (Option<u32>, Option<u32>)) {
        if let Some(page) = links::page_of(source) {
            self.html_page.is_no_link(self.key.hash(page.as_bytes()));
        }
        let place = match source.split_at_checked(4) {
            Some((scheme, id)) if scheme.eq_ignore_ascii_case("cid:") => {
                Some(Source::Part(self.key.hash(id.as_bytes())))
            }
            _ => links::picture_of(source).map(|path| Source::Path(self.key.hash(path.as_bytes()))),
        };
        if let Some(source) = place
            && self.html_page.shows_more()
        {
            let behind_text = words_in(&self.html, 1) > 0;
            self.html_page.show(Shown { source, size, behind_text });
        }
    }

    /// The HTML part ends whose pieces were shown.
    pub(in crate::signature) fn html_end(&mut self) {
        let mut html = std::mem::take(&mut self.html);
        let page = std::mem::take(&mut self.html_page);
        self.read_text(&html, Content { page, ..Content::default() });
        html.clear();
        self.html = html;
    }
}

impl Visitor for Reader {
    fn text(&mut self, text: Text<'_>) {
        if text.is_html() {
            return self.html(text);
        }
        self.read_text(text.shown, Content::default());
    }

    fn html(&mut self, html: Text<'_>) {
        pieces(html.shown, &mut |piece| self.piece(piece));
        self.html_end();
    }

    fn file(&mut self, file: File<'_>) {
        // Where there is text, files say nothing.
        if self.reports > 0 || self.read.words.len() >= FEW {
            return;
        }
        let id = file.id.map(|id| self.key.hash(id.as_bytes()));
        let decode = self.decoded < MAX_DECODED;
        if let Some(enclosed) = Enclosed::of(file.shown, id, decode) {
            self.decoded += usize::from(enclosed.is_picture());
            self.keep(Content { files: vec![enclosed], ..Content::default() });
        }
    }

    fn message(&mut self, _fields: &[&[u8]]) {}

    fn message_end(&mut self) {}

    fn report(&mut self) {
        self.reports += 1;
    }

    fn report_end(&mut self) {
        self.reports = self.reports.saturating_sub(1);
    }

    fn alternatives(&mut self) {
        self.open.push(Content::default());
    }

    /// Of alternatives, the last one that shows anything, as a reader would see it. What is attached in any of them counts.
    fn alternatives_end(&mut self) {
        if let Some(shown) = self.open.pop() {
            self.keep(shown);
        }
    }
}
