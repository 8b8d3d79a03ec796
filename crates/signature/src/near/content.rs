// SPDX-License-Identifier: GPL-3.0-or-later
//! The content of a message: what was read of all its parts, and what of that counts.

use super::lines::TOO_FEW;
use super::things::{Enclosed, MAX_FILES, Page};
use crate::payload::Found;
use std::ops::Range;

/// Words that are read of a message, some hundred pages; what follows is left out.
pub(super) const MAX_WORDS: usize = 1 << 16;

/// Words of its own with which a message is what it quotes: "FYI", or nothing. Who answers a letter with "yes, fine" did not
/// write the letter.
pub(super) const NO_ANSWER: usize = 2;

/// Hidden words that are read.
pub(super) const MAX_HIDDEN: usize = 1 << 10;

/// How well a mail program can show something, the best last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shows {
    /// Not at all.
    #[default]
    Nothing,
    /// It is a file to it: a calendar entry, a type that it does not know.
    AsFile,
    /// As text.
    Text,
    /// With pictures and links.
    Page,
}

impl Shows {
    /// A text part of this subtype that a reader is shown where it stands.
    pub(super) fn is_shown(subtype: &str) -> bool {
        matches!(subtype, "" | "plain" | "html" | "enriched" | "richtext")
    }
}

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
pub(crate) struct Content {
    /// Keyed hashes of the words.
    pub(super) words: Vec<u64>,
    /// Where each stands, when that is wanted.
    pub(super) positions: Vec<Position>,
    /// Links, and pictures that are shown.
    pub(super) page: Page,
    /// The attached files, each once.
    pub(super) files: Vec<Enclosed>,
    /// Keyed hashes of the words that its style hides; a few hundred.
    pub(super) hidden: Vec<u64>,
    /// What a reader may answer to.
    pub(crate) payload: Found,
    /// How well mail programs can show it.
    pub(super) shows: Shows,
    /// Whether something is attached, however little is read of that.
    pub(super) has_files: bool,
    /// Whether its own lines say something, however few words it has.
    pub(super) speaks: bool,
    /// Keyed hashes of the words of names below the text, kept only while it has few words.
    pub(super) names: Vec<u64>,
    /// Which of the words are those of enclosed messages.
    pub(super) enclosed: Vec<Range<usize>>,
    /// What it quotes, kept only while it has few words, and what stands behind rules, while it has none.
    pub(super) quoted: Option<Box<Self>>,
    pub(super) footer: Option<Box<Self>>,
    /// The text of attached files.
    pub(super) attached: Option<Box<Self>>,
}

impl Content {
    pub(super) fn append(&mut self, mut other: Self) {
        other.words.truncate(MAX_WORDS - self.words.len().min(MAX_WORDS));
        other.positions.truncate(other.words.len());
        let (before, read) = (self.words.len(), other.words.len());
        let enclosed = other.enclosed.into_iter().map(|words| words.start.min(read)..words.end.min(read));
        self.enclosed.extend(enclosed.map(|words| before + words.start..before + words.end));
        self.words.append(&mut other.words);
        self.positions.append(&mut other.positions);
        self.page.append(other.page);
        self.add_files(other.files);
        self.payload.append(other.payload);
        self.shows = self.shows.max(other.shows);
        other.hidden.truncate(MAX_HIDDEN - self.hidden.len().min(MAX_HIDDEN));
        self.hidden.append(&mut other.hidden);
        other.names.truncate(MAX_HIDDEN - self.names.len().min(MAX_HIDDEN));
        self.names.append(&mut other.names);
        self.has_files |= other.has_files;
        self.speaks |= other.speaks;
        append_kept(&mut self.quoted, other.quoted);
        append_kept(&mut self.footer, other.footer);
        append_kept(&mut self.attached, other.attached);
    }

    /// A message that has nearly no words of its own is what it quotes, or else the text that is attached, or what stands behind a rule.
    pub(super) fn whole(mut self) -> Self {
        let own = self.words.len();
        if self.speaks || own > NO_ANSWER {
            return self;
        }
        let (quoted, footer, attached) = (self.quoted.take(), self.footer.take(), self.attached.take());
        if let Some(quoted) = quoted {
            self.append(*quoted);
        }
        if let Some(attached) = attached.filter(|_| self.words.len() < TOO_FEW) {
            self.append(*attached);
        }
        // Who sends a file without a word may have a signature.
        let is_empty = own == 0 && self.words.len() < TOO_FEW && !self.has_files;
        if let Some(footer) = footer.filter(|_| is_empty) {
            self.append(*footer);
        }
        self
    }

    fn add_files(&mut self, files: Vec<Enclosed>) {
        for file in files {
            if self.files.len() < MAX_FILES && self.files.iter().all(|known| known.digest != file.digest) {
                self.files.push(file);
            }
        }
    }

    /// The next of several alternatives: it is shown instead if mail programs can show it at least as well. What is attached to
    /// any of them stays.
    pub(super) fn or_better(&mut self, mut next: Self) {
        let has_files = self.has_files || next.has_files;
        let rank = next.rank();
        self.add_files(std::mem::take(&mut next.files));
        if rank > Shows::Nothing && rank >= self.rank() {
            next.files = std::mem::take(&mut self.files);
            std::mem::swap(self, &mut next);
        }
        append_kept(&mut self.attached, next.attached.filter(|_| next.has_files));
        self.has_files = has_files;
    }

    /// How well mail programs can show it, if there is anything to be shown.
    fn rank(&self) -> Shows {
        let has_words = !self.words.is_empty()
            || self.quoted.is_some()
            || self.footer.is_some()
            || self.attached.is_some();
        let is_empty = !has_words && self.page.is_empty() && !self.has_files;
        if is_empty { Shows::Nothing } else { self.shows }
    }
}

fn append_kept(kept: &mut Option<Box<Content>>, other: Option<Box<Content>>) {
    match (kept, other) {
        (Some(kept), Some(other)) => kept.append(*other),
        (kept @ None, other) => *kept = other,
        (Some(_), None) => (),
    }
}
