// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages, and the words in them.

use bulkmark_samples::prose::Prose;

/// A message for all readers.
pub(super) struct Row {
    /// Kind and name, by which differences are listed.
    pub(super) name: String,
    pub(super) raw: Vec<u8>,
    /// Its page, if it is one, for readers of pages alone.
    pub(super) page: Option<String>,
    /// Whether letters are compared by their place in the window, not by source order.
    pub(super) by_place: bool,
}

impl Row {
    pub(super) fn new(name: &str, raw: Vec<u8>) -> Self {
        Self { name: name.to_owned(), raw, page: None, by_place: false }
    }

    /// A message of one page.
    pub(super) fn of_page(name: &str, page: &str) -> Self {
        let raw =
            message("Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n", page);
        Self { page: Some(page.to_owned()), ..Self::new(name, raw) }
    }
}

/// A message with usual fields, further ones, and a body.
pub(super) fn message(fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = "From: Reader <reader@example.org>\r\nTo: other@example.net\r\nSubject: zzz\r\n\
        Date: Mon, 06 Jul 2026 10:00:00 +0000\r\nMessage-ID: <row@example.org>\r\nMIME-Version: 1.0\r\n";
    [format!("{head}{fields}\r\n").as_bytes(), body.as_ref()].concat()
}

/// Writes passages of invented words, the same for the same row.
pub(super) struct Writer(Prose);

impl Writer {
    pub(super) fn new(name: &str) -> Self {
        // FNV-1a.
        let number = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Self(Prose::new(number))
    }

    /// `count` words on one line.
    pub(super) fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.0.word()).collect();
        words.join(" ")
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    /// A text with passages, between blanks, for `{a}` to `{f}`.
    pub(super) fn fill(&mut self, text: &str) -> String {
        ["{a}", "{b}", "{c}", "{d}", "{e}", "{f}"]
            .into_iter()
            .fold(text.to_owned(), |text, mark| text.replace(mark, &format!(" {} ", self.words(12))))
    }
}
