// SPDX-License-Identifier: GPL-3.0-or-later
//! What a reader gets of a message: its words, its links, and what is attached.

use super::lines::own_lines;
use super::words::{Token, domain_of, tokens};
use crate::mail::{File, Piece, Text, Visitor, pieces};
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;
use std::collections::BTreeSet;
use std::hash::Hasher;

/// Words that are read of a message, some hundred pages; what follows is left out.
const MAX_WORDS: usize = 1 << 16;

/// Different links that are counted.
const MAX_LINKS: usize = 64;

/// Attached files that are read.
pub(super) const MAX_FILES: usize = 2;

/// Bytes of an attached file below which it is a mark or an icon.
const SMALL: usize = 1024;

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
    /// Keyed hashes of the links.
    pub(super) links: BTreeSet<u64>,
    /// The domains to which they lead.
    pub(super) domains: BTreeSet<String>,
    /// Digests of the attached files, each once.
    pub(super) files: Vec<[u8; 32]>,
}

impl Content {
    fn append(&mut self, mut other: Self) {
        other.words.truncate(MAX_WORDS - self.words.len().min(MAX_WORDS));
        other.positions.truncate(other.words.len());
        self.words.append(&mut other.words);
        self.positions.append(&mut other.positions);
        self.links.append(&mut other.links);
        self.domains.append(&mut other.domains);
        self.add_files(&other.files);
    }

    fn add_files(&mut self, files: &[[u8; 32]]) {
        for file in files {
            if self.files.len() < MAX_FILES && !self.files.contains(file) {
                self.files.push(*file);
            }
        }
    }

    fn link(&mut self, link: &str, hash: u64) {
        if self.links.len() < MAX_LINKS && self.links.insert(hash) {
            self.domains.extend(domain_of(link));
        }
    }

    /// The next of several alternatives: it is shown instead if it shows anything. What is attached to any of them stays.
    fn alternative(&mut self, mut next: Self) {
        self.add_files(&std::mem::take(&mut next.files));
        if !next.words.is_empty() || !next.links.is_empty() {
            next.files = std::mem::take(&mut self.files);
            *self = next;
        }
    }
}

/// Reads a message.
pub(in crate::signature) struct Reader {
    key: [u8; 16],
    traced: bool,
    /// What is read of the message, and of the alternatives that are open, outermost first.
    read: Content,
    open: Vec<Content>,
    /// Reports of programs that are open; what is in them was not written to anybody.
    reports: usize,
    parts: usize,
    /// The text of the HTML part that is read, a line for each block.
    html: String,
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
            reports: 0,
            parts: 0,
            html: String::new(),
            html_links: Content::default(),
            folded: String::new(),
        }
    }

    /// What was read.
    pub(super) fn finish(self) -> Content {
        self.read
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(bytes);
        hasher.finish()
    }

    fn read_text(&mut self, text: &str, mut part: Content) {
        self.parts += 1;
        let mut folded = std::mem::take(&mut self.folded);
        for (line, text) in own_lines(text) {
            if part.words.len() >= MAX_WORDS {
                break;
            }
            tokens(text, &mut folded, &mut |token| match token {
                // A line may be a whole message long.
                Token::Word(..) if part.words.len() >= MAX_WORDS => (),
                Token::Word(word, token) => {
                    part.words.push(self.hash(word.as_bytes()));
                    if self.traced {
                        // It is shown to people; what would control their terminal is no part of a word.
                        let word = token.chars().filter(|c| !c.is_control()).collect();
                        part.positions.push(Position { part: self.parts, line, word });
                    }
                }
                Token::Link(link) => part.link(link, self.hash(link.as_bytes())),
            });
        }
        self.folded = folded;
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
            Piece::Text(text) | Piece::Swallowed(text) => {
                // Line ends in HTML are blanks.
                for (i, line) in text.split('\n').enumerate() {
                    if i > 0 {
                        self.html.push(' ');
                    }
                    self.html.push_str(line);
                }
            }
            Piece::Break => self.html.push('\n'),
            Piece::Target(target) | Piece::SwallowedTarget(target) => {
                let hash = self.hash(target.as_bytes());
                self.html_links.link(target, hash);
            }
            Piece::Quoted(_) | Piece::Hidden(_) => (),
        }
    }

    /// The HTML part ends whose pieces were shown.
    pub(in crate::signature) fn html_end(&mut self) {
        let mut html = std::mem::take(&mut self.html);
        let links = std::mem::take(&mut self.html_links);
        self.read_text(&html, links);
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

    /// Of files, the first half at least: noise at the end of a picture makes it no other one.
    fn file(&mut self, file: File<'_>) {
        let bytes = file.shown;
        if bytes.len() < SMALL {
            return;
        }
        let length = 1 << (bytes.len() - bytes.len() / 8).ilog2();
        let digest = Sha256::digest(&bytes[..length]);
        self.keep(Content { files: vec![digest.into()], ..Content::default() });
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
