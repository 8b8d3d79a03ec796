// SPDX-License-Identifier: GPL-3.0-or-later
//! The pieces of HTML.

/// A piece of an HTML part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Characters that a reader sees, with references such as `&amp;` resolved. A word may come in several pieces.
    Text(&'a str),
    /// The same, of an answered message.
    Quoted(&'a str),
    /// Characters that the style of their element hides.
    Hidden(&'a str),
    /// The target of a link, form or remote picture.
    Target(&'a str),
    /// A visible picture; if it is remote, its [`Target`](Self::Target) came before it.
    Picture {
        /// Its place: an address, or another part of the message by its Content-ID (`cid:`).
        source: &'a str,
        /// Width and height in its element, in pixels.
        size: (Option<u32>, Option<u32>),
    },
    /// A word ends here: a line break, or the edge of a paragraph, cell or picture.
    Break,
    /// An element begins. Its [`Target`](Self::Target)s follow.
    Start {
        /// Its name in lower case.
        name: &'a str,
        /// The address that a click on it opens (`a`, `area`), that its form sends to (`form`), or that relative links start from (`base`);
        /// `None` if the element is not displayed.
        link: Option<&'a str>,
    },
    /// The end tag of an element of this name, in lower case; elements may also end without one.
    End(&'a str),
    /// Boxes follow, up to their [end](Self::BoxesEnd), whose visual order differs from source order: by their [numbers](Self::Box) and
    /// then by source order, or all of that reversed.
    Boxes {
        /// Whether the last comes first.
        reversed: bool,
    },
    /// An inner box begins.
    Box {
        /// Boxes with a lower number come before it.
        order: i16,
    },
    /// The innermost boxes end. Left out at the end of a page.
    BoxesEnd,
    /// Characters behind the start tag of a title, style sheet or script that is never closed, read as if that tag were missing. Programs
    /// that follow the HTML standard show none of it, others do.
    Swallowed(&'a str),
    /// The target of a link in such a place.
    SwallowedTarget(&'a str),
}
