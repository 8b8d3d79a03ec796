// SPDX-License-Identifier: GPL-3.0-or-later
//! What HTML is taken apart into.

/// A piece of an HTML part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Characters that a reader sees, with references such as `&amp;` resolved. A word may come in several pieces.
    Text(&'a str),
    /// The same, of a message that is answered.
    Quoted(&'a str),
    /// Characters that the style of their element keeps from being seen.
    Hidden(&'a str),
    /// The target of a link, form or remote picture.
    Target(&'a str),
    /// A picture that is shown; if it is remote, its [`Target`](Self::Target) came before it.
    Picture {
        /// Where it is: an address, or another part of the message by its Content-ID (`cid:`).
        source: &'a str,
        /// How wide and high its element says it is, in pixels.
        size: (Option<u32>, Option<u32>),
    },
    /// A word ends here: a line break, or the edge of a paragraph, cell or picture.
    Break,
    /// An element begins. Its [`Target`](Self::Target)s follow.
    Start {
        /// Its name in lower case.
        name: &'a str,
        /// The address that a click on it opens (`a`, `area`), its form sends to (`form`), or relative links begin from (`base`); none
        /// where the element is not displayed.
        link: Option<&'a str>,
    },
    /// The end tag of an element of this name, in lower case; elements may also end without one.
    End(&'a str),
    /// Boxes follow, up to the [end](Self::BoxesEnd) of these, which stand in another order than they are written: by their
    /// [numbers](Self::Box), and then by their place in the text, or all of it the other way round.
    Boxes {
        /// The last comes first.
        reversed: bool,
    },
    /// One of these begins.
    Box {
        /// Those with a lower number come before it.
        order: i16,
    },
    /// The boxes that began last end. At the end of a page this is left out.
    BoxesEnd,
    /// Characters behind the start tag of a title, style sheet or script that is never closed, read as if that tag were not
    /// there. Programs by the HTML standard show nothing of it, others do.
    Swallowed(&'a str),
    /// The target of a link in such a place.
    SwallowedTarget(&'a str),
}
