// SPDX-License-Identifier: GPL-3.0-or-later
//! Visibility the text of an element is shown, by its style and that of outer elements.

use super::names::{is_folded, is_never_shown, is_override, is_quote};
use super::style::{Colour, Ink, PAGE, PLAIN, Size, Style, TINY, alike};
use html5ever::local_name;
use html5ever::tokenizer::Tag;

/// Visibility the text of an element is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Shown,
    Quoted,
    Hidden,
}

/// The look of an element, with the properties that inner elements inherit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) hidden: bool,
    /// Whether it is shown only after a reader opens an outer element.
    pub(super) folded: bool,
    pub(super) invisible: bool,
    /// Size of letters, in 64ths of a pixel.
    pub(super) size: u32,
    pub(super) squeezed: bool,
    pub(super) quoted: bool,
    pub(super) ink: Ink,
    /// The fill of letters, which replaces their colour.
    pub(super) fill: Option<Ink>,
    /// Whether an outline or shadow makes letters visible that are not drawn.
    pub(super) outlined: bool,
    pub(super) background: Option<Colour>,
    /// Whether it covers inner content that stands behind it.
    pub(super) covers: bool,
    pub(super) reversed: bool,
}

impl Look {
    /// The look of a page.
    pub(super) const START: Self = Self {
        hidden: false,
        folded: false,
        invisible: false,
        size: PLAIN,
        squeezed: false,
        quoted: false,
        ink: Ink::Unknown,
        fill: None,
        outlined: false,
        background: Some(PAGE),
        covers: false,
        reversed: false,
    };

    /// The look of an element within one of this look.
    pub(super) fn within(self, style: &Style, tag: &Tag, is_announced: bool) -> Self {
        let is_page = matches!(tag.name, local_name!("body") | local_name!("html"));
        let behind = style.behind && self.covers;
        // A layer does not cover its own content.
        let covers =
            !style.is_layer && (self.covers || !is_page && matches!(style.background, Some(Some(_))));
        Self {
            hidden: self.hidden || style.hidden || behind || is_never_shown(tag),
            folded: is_folded(tag).unwrap_or(self.folded),
            invisible: style.invisible.unwrap_or(self.invisible),
            size: match style.size {
                None => self.size,
                Some(Size::Of(size)) => size,
                Some(Size::Times(times)) => self.size.saturating_mul(times) / 64,
            },
            squeezed: style.squeezed.unwrap_or(self.squeezed),
            quoted: self.quoted || is_quote(tag, is_announced),
            ink: style.ink.unwrap_or(self.ink),
            fill: style.fill.unwrap_or(self.fill),
            outlined: style.outlined.unwrap_or(self.outlined),
            background: style.background.unwrap_or(self.background),
            covers,
            reversed: style.reversed.or_else(|| is_override(tag)).unwrap_or(self.reversed),
        }
    }

    /// Visibility the text of an element with this look is shown.
    pub(super) fn visibility(&self) -> Visibility {
        let is_drawn = match (self.fill.unwrap_or(self.ink), self.background) {
            (Ink::Of(ink), Some(background)) => !alike(ink, background),
            (Ink::Transparent, _) => false,
            _ => true,
        };
        let is_seen = is_drawn || self.outlined;
        if self.hidden || self.folded || self.invisible || self.size < TINY || self.squeezed || !is_seen {
            Visibility::Hidden
        } else if self.quoted {
            Visibility::Quoted
        } else {
            Visibility::Shown
        }
    }
}
