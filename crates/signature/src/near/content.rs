// SPDX-License-Identifier: GPL-3.0-or-later
//! The content of a message: all that was read of its parts, and the part of it that counts.

use super::lines::TOO_FEW;
use super::things::{Enclosed, MAX_FILES, Page};
use crate::payload::Found;
use std::ops::Range;

/// Words that are read of a message, some hundred pages. Others are ignored.
pub(super) const MAX_WORDS: usize = 1 << 16;

/// Own words up to which a message counts as its quote: "FYI", or nothing. A longer answer ("yes, that is fine") is the author's own.
pub(super) const NO_ANSWER: usize = 2;

/// Hidden words that are read.
pub(super) const MAX_HIDDEN: usize = 1 << 10;

/// How well a mail program can show a part; the best is last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rendering {
    /// Not shown.
    #[default]
    Nothing,
    /// As a file: a calendar entry, an unknown type.
    AsFile,
    /// As text.
    Text,
    /// With pictures and links.
    Page,
}

impl Rendering {
    /// Whether mail programs show a text part of this subtype inline.
    pub(super) fn is_shown(subtype: &str) -> bool {
        matches!(subtype, "" | "plain" | "html" | "enriched" | "richtext")
    }
}

/// The place of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The number of the text or HTML part, from 1.
    pub part: usize,
    /// The line in it, from 1; in HTML, a line of the visible text.
    pub line: usize,
    /// The word as written, without control characters.
    pub word: String,
}

/// The content of a message, or of some parts of it.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Keyed hashes of the words.
    pub(super) words: Vec<u64>,
    /// The place of each word, if wanted.
    pub(super) positions: Vec<Position>,
    /// Links and visible pictures.
    pub(super) page: Page,
    /// The attached files, without duplicates, the largest first.
    pub(super) files: Vec<Enclosed>,
    /// Keyed hashes of the words that style hides; a few hundred.
    pub(super) hidden: Vec<u64>,
    /// The payload: addresses and numbers that a reader may use to answer.
    pub(crate) payload: Found,
    /// How well mail programs can show it.
    pub(super) rendering: Rendering,
    /// Whether a file is attached, even if little of it is read.
    pub(super) has_files: bool,
    /// Whether its own lines have content, even without many words.
    pub(super) has_text: bool,
    /// Keyed hashes of the words of names below the text, kept only if the text is short.
    pub(super) names: Vec<u64>,
    /// The ranges of words that belong to enclosed messages.
    pub(super) enclosed: Vec<Range<usize>>,
    /// The quoted text, kept only if the own text is short; and the text behind rules, kept only if there is no own text.
    pub(super) quoted: Option<Box<Self>>,
    pub(super) footer: Option<Box<Self>>,
    /// The text of attached files, and that of calendars that are shown as an invitation.
    pub(super) attached: Option<Box<Self>>,
    pub(super) calendar: Option<Box<Self>>,
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
        self.rendering = self.rendering.max(other.rendering);
        other.hidden.truncate(MAX_HIDDEN - self.hidden.len().min(MAX_HIDDEN));
        self.hidden.append(&mut other.hidden);
        other.names.truncate(MAX_HIDDEN - self.names.len().min(MAX_HIDDEN));
        self.names.append(&mut other.names);
        self.has_files |= other.has_files;
        self.has_text |= other.has_text;
        append_kept(&mut self.quoted, other.quoted);
        append_kept(&mut self.footer, other.footer);
        append_kept(&mut self.attached, other.attached);
        append_kept(&mut self.calendar, other.calendar);
    }

    /// Adds, to a message with few own words, its calendar; to one with nearly none the text that it quotes, or else its attached text, or the
    /// text behind a rule.
    pub(super) fn with_fallbacks(mut self) -> Self {
        let own = self.words.len();
        if let Some(calendar) = self.calendar.take().filter(|_| own < TOO_FEW) {
            self.append(*calendar);
        }
        if self.has_text || own > NO_ANSWER {
            return self;
        }
        let (quoted, footer, attached) = (self.quoted.take(), self.footer.take(), self.attached.take());
        if let Some(quoted) = quoted {
            self.append(*quoted);
        }
        if let Some(attached) = attached.filter(|_| self.words.len() < TOO_FEW) {
            self.append(*attached);
        }
        // The sender of a file without text may have a signature.
        let is_empty = own == 0 && self.words.len() < TOO_FEW && !self.has_files;
        if let Some(footer) = footer.filter(|_| is_empty) {
            self.append(*footer);
        }
        self
    }

    /// Adds files. The largest are kept: small ones in front of them must not hide them.
    pub(super) fn add_files(&mut self, files: Vec<Enclosed>) {
        for file in files {
            if self.files.iter().all(|known| known.digest != file.digest) {
                let place = self.files.partition_point(|known| known.size >= file.size);
                self.files.insert(place, file);
                self.files.truncate(MAX_FILES);
            }
        }
    }

    /// Adds the next alternative, which replaces this one if mail programs can show it at least as well. Attachments of any alternative
    /// stay, and so do calendars, which mail programs show beside the text.
    pub(super) fn or_better(&mut self, mut next: Self) {
        let has_files = self.has_files || next.has_files;
        let rank = next.rank();
        self.add_files(std::mem::take(&mut next.files));
        if rank > Rendering::Nothing && rank >= self.rank() {
            next.files = std::mem::take(&mut self.files);
            std::mem::swap(self, &mut next);
        }
        append_kept(&mut self.attached, next.attached.filter(|_| next.has_files));
        append_kept(&mut self.calendar, next.calendar);
        self.has_files = has_files;
    }

    /// How well mail programs can show it, if it has content.
    fn rank(&self) -> Rendering {
        let has_words = !self.words.is_empty()
            || self.quoted.is_some()
            || self.footer.is_some()
            || self.attached.is_some()
            || self.calendar.is_some();
        let is_empty = !has_words && self.page.is_empty() && !self.has_files;
        if is_empty { Rendering::Nothing } else { self.rendering }
    }
}

fn append_kept(kept: &mut Option<Box<Content>>, other: Option<Box<Content>>) {
    match (kept, other) {
        (Some(kept), Some(other)) => kept.append(*other),
        (kept @ None, other) => *kept = other,
        (Some(_), None) => (),
    }
}
