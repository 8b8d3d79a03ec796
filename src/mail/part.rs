// SPDX-License-Identifier: GPL-3.0-or-later
//! The parts of a message, as they are shown to a visitor.

/// A text or HTML part.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// Its characters, decoded strictly: what is invalid in its transfer encoding or charset stays as it stands. So two texts never
    /// become one. `body/1` is made of these.
    pub exact: &'a str,
    /// Its characters as mail programs show them: what is invalid is skipped or replaced. In nearly all mail the same as
    /// `exact`, in the same place in memory.
    pub shown: &'a str,
    /// The second half of its type, in lower case: `plain`, `html`, `calendar`.
    pub subtype: &'a str,
    /// Whether it is to be stored and not shown (Content-Disposition).
    pub is_attachment: bool,
}

impl Text<'_> {
    /// Whether both forms are the same text.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        std::ptr::eq(self.exact, self.shown) || self.exact == self.shown
    }
}

/// A part that is neither text nor HTML.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Its bytes, with the transfer encoding taken off if they are valid in it.
    pub exact: &'a [u8],
    /// Its bytes as mail programs read them: what is invalid in the transfer encoding is skipped.
    pub shown: &'a [u8],
    /// Its type in lower case, such as `image` and `png`.
    pub media: (&'a str, &'a str),
    /// Its Content-ID without angle brackets: HTML names it by this (`cid:`).
    pub id: Option<&'a str>,
    /// Whether it is to be stored and not shown (Content-Disposition).
    pub is_attachment: bool,
}
