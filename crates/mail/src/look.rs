// SPDX-License-Identifier: GPL-3.0-or-later
//! How the text of an element is shown, by its style and that of outer elements.

use super::names::{
    has_no_box, is_block, is_cell, is_control, is_drawn_text, is_folded, is_never_shown, is_override,
    is_quote, is_unwrapped,
};
use super::piece::Piece;
use super::style::{
    Backdrop, Colour, Ink, LineHeight, PAGE, PLAIN, PLAIN_INK, Place, Size, Spacing, Style, TINY, WHOLE,
    alike, is_away, is_faint, moved, over, times,
};
use html5ever::local_name;
use html5ever::tokenizer::Tag;

/// How the text of an element is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Shown,
    Quoted,
    Hidden,
}

impl Visibility {
    /// The piece of a text that is shown so.
    pub(super) const fn piece(self, text: &str) -> Piece<'_> {
        match self {
            Self::Shown => Piece::Text(text),
            Self::Quoted => Piece::Quoted(text),
            Self::Hidden => Piece::Hidden(text),
        }
    }
}

/// The look of an element, with the properties that inner elements inherit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) hidden: bool,
    /// Whether an outer element cuts it off, but not inner boxes with a place of their own.
    pub(super) clipped: bool,
    /// Its place, that of the boxes with a place in it, and that of fixed ones, in pixels from where they are written.
    pub(super) place: Place,
    pub(super) inner_place: Place,
    pub(super) fixed_place: Place,
    /// Whether the first line of a block in it begins outside of every window, and whether that of the block around its text does.
    pub(super) indent: bool,
    pub(super) indented: bool,
    pub(super) right_to_left: bool,
    /// Whether its content has no boxes, or only some beside the lines around it: words do not end there.
    pub(super) unboxed: bool,
    /// Whether it is a drawing, which shows no text outside of some elements.
    pub(super) is_drawing: bool,
    /// The opacity and the scale, of [`WHOLE`].
    pub(super) opacity: u32,
    pub(super) scale: u32,
    /// Whether it is shown only after a reader opens an outer element.
    pub(super) folded: bool,
    pub(super) invisible: bool,
    /// Size of letters, in 64ths of a pixel.
    pub(super) size: u32,
    /// How far letters are apart, in 64ths of a pixel.
    pub(super) spacing: i32,
    /// Whether lines without height are cut off.
    pub(super) is_line_flat: bool,
    pub(super) quoted: bool,
    pub(super) ink: Ink,
    /// The fill of letters, which replaces their colour.
    pub(super) fill: Option<Ink>,
    /// The shadow and the outline of letters.
    pub(super) outlines: [Ink; 2],
    pub(super) background: Option<Colour>,
    /// Whether it covers inner content that stands behind it.
    pub(super) covers: bool,
    pub(super) reversed: bool,
    /// The height of lines, and whether only the author breaks them.
    pub(super) line: LineHeight,
    /// Whether it is a flex container or grid.
    pub(super) holds_items: bool,
    pub(super) no_wrap: bool,
}

impl Look {
    /// The look of a page.
    pub(super) const START: Self = Self {
        hidden: false,
        clipped: false,
        place: [0; 2],
        inner_place: [0; 2],
        fixed_place: [0; 2],
        indent: false,
        indented: false,
        right_to_left: false,
        unboxed: false,
        is_drawing: false,
        opacity: WHOLE,
        scale: WHOLE,
        folded: false,
        invisible: false,
        size: PLAIN,
        spacing: 0,
        is_line_flat: false,
        quoted: false,
        ink: Ink::Of(PLAIN_INK),
        fill: None,
        outlines: [Ink::Transparent; 2],
        background: Some(PAGE),
        covers: false,
        reversed: false,
        line: LineHeight::Normal,
        holds_items: false,
        no_wrap: false,
    };

    /// The look of an element within one of this look.
    pub(super) fn within(self, style: &Style, tag: &Tag, is_announced: bool) -> Self {
        let outer = match tag.name {
            _ if is_control(&tag.name) => self.of_control(),
            // Letters of a drawing have a paint of their own, and those of a page in it are not drawn on the page around.
            local_name!("svg") => Self { ink: Ink::Of(PLAIN_INK), fill: None, ..self },
            _ if self.is_drawing && &*tag.name == "foreignobject" => {
                Self { ink: Ink::Unknown, background: None, ..self }
            }
            _ => self,
        };
        let is_never_shown = is_never_shown(tag);
        Self {
            hidden: outer.hidden || is_never_shown,
            unboxed: !self.holds_box(style, tag) || is_never_shown,
            is_drawing: is_drawn_text(&tag.name).map_or(self.is_drawing, |is_text| !is_text),
            ..outer
        }
        .with(style, tag, is_announced)
    }

    /// Whether an element has a box, within one of this look.
    pub(super) fn holds_box(&self, style: &Style, tag: &Tag) -> bool {
        let is_unseen = || style.hidden || style.clipped || is_away(self.place_of(style));
        let is_absent = style.is_none || style.is_apart && is_unseen();
        !(self.unboxed || self.folded || is_absent || has_no_box(tag))
    }

    /// The outer look of a field or button, whose letters do not look like those around it.
    fn of_control(self) -> Self {
        let (ink, background) = (Ink::Of(PLAIN_INK), Some(PAGE));
        let outlines = [Ink::Transparent, self.outlines[1]];
        Self { size: PLAIN, spacing: 0, ink, background, outlines, ..self }
    }

    fn with(self, style: &Style, tag: &Tag, is_announced: bool) -> Self {
        let is_page = matches!(tag.name, local_name!("body") | local_name!("html"));
        let behind = style.behind && self.covers;
        // A layer does not cover its own content.
        let covers =
            !style.is_layer && (self.covers || !is_page && style.background.is_some_and(Backdrop::covers));
        let clipped = self.clipped && !style.escapes;
        let place = self.place_of(style);
        let indent = style.indent.unwrap_or(self.indent);
        let through = |ink| if ink == Ink::Transparent { style.through.unwrap_or(ink) } else { ink };
        let ink = through(style.ink.unwrap_or(self.ink));
        let size = match style.size {
            None => self.size,
            Some(Size::Of(size)) => size,
            Some(Size::Times(times)) => self.size.saturating_mul(times) / 64,
        };
        let is_box = style.is_box.unwrap_or_else(|| is_block(&tag.name) || is_cell(&tag.name));
        Self {
            // Nothing leaves a container in an element that is cut off.
            hidden: self.hidden || style.hidden || behind || clipped && style.is_container,
            clipped: clipped || style.clipped,
            place,
            inner_place: if style.is_container { place } else { self.inner_place },
            fixed_place: if style.shift.holds_fixed { place } else { self.fixed_place },
            indent,
            indented: if is_box { indent } else { self.indented },
            right_to_left: style.right_to_left.unwrap_or(self.right_to_left),
            opacity: times(self.opacity, style.opacity.unwrap_or(WHOLE)),
            scale: times(self.scale, style.scale.unwrap_or(WHOLE)),
            folded: is_folded(tag).unwrap_or(self.folded),
            invisible: style.invisible.unwrap_or(self.invisible),
            size,
            spacing: match style.spacing {
                None => self.spacing,
                Some(Spacing::Of(spacing)) => spacing,
                Some(Spacing::Times(times)) => times.saturating_mul(i32::try_from(size).unwrap_or(0)) / 64,
            },
            is_line_flat: style.is_line_flat || self.is_line_flat && !style.escapes,
            quoted: self.quoted || is_quote(tag, is_announced),
            ink,
            fill: style.fill.unwrap_or(self.fill).map(through),
            outlines: [0, 1].map(|at| style.outlines[at].unwrap_or(self.outlines[at])),
            background: match style.background {
                None => self.background,
                Some(Backdrop::Of(colour)) => Some(colour),
                Some(Backdrop::Over(colour, opacity)) => {
                    self.background.map(|behind| over(colour, opacity, behind))
                }
                Some(Backdrop::OfLetters) => match ink {
                    Ink::Of(colour) | Ink::Partly(colour, _) => Some(colour),
                    _ => None,
                },
                Some(Backdrop::Unknown) => None,
            },
            covers,
            reversed: style.reversed.or_else(|| is_override(tag)).unwrap_or(self.reversed),
            holds_items: style.lays_out.is_some(),
            line: style.line.unwrap_or(self.line),
            no_wrap: style.no_wrap.or_else(|| is_unwrapped(tag)).unwrap_or(self.no_wrap),
            ..self
        }
    }

    /// The place of an element in one with this look.
    fn place_of(&self, style: &Style) -> Place {
        let shift = &style.shift;
        let around = if shift.is_fixed { self.fixed_place } else { self.inner_place };
        let from = [0, 1].map(|at| if shift.is_placed[at] { around[at] } else { self.place[at] });
        moved(from, shift.by)
    }

    /// Whether content with this look takes space that somebody sees.
    pub(super) const fn is_displayed(&self) -> bool {
        !(self.hidden
            || self.clipped
            || is_away(self.place)
            || is_faint(self.opacity)
            || is_faint(self.scale))
    }

    /// Whether a reader can distinguish this paint from what is behind it, as faint as both are.
    fn is_distinct(&self, ink: Ink) -> bool {
        let (colour, opacity) = match ink {
            Ink::Of(colour) => (colour, u8::MAX),
            Ink::Partly(colour, opacity) => (colour, opacity),
            Ink::Transparent => return false,
            Ink::Unknown => return true,
        };
        let Some(behind) = self.background else { return true };
        // Nearly all letters are opaque.
        if opacity == u8::MAX && self.opacity >= WHOLE {
            return !alike(colour, behind);
        }
        let seen = times(self.opacity.min(WHOLE), u32::from(opacity));
        !alike(over(colour, u8::try_from(seen).unwrap_or(u8::MAX), behind), behind)
    }

    /// How text with this look is shown.
    pub(super) fn visibility(&self) -> Visibility {
        let paints = [self.fill.unwrap_or(self.ink)].into_iter().chain(self.outlines);
        let is_drawn = paints.into_iter().any(|ink| self.is_distinct(ink));
        // Most letters are narrower than that, so they stand one upon the other.
        let is_squeezed = i64::from(self.spacing) * 5 <= i64::from(self.size) * -3 && self.spacing < 0;
        let is_flat = self.is_line_flat && self.line == LineHeight::Of(0);
        let is_tiny = is_squeezed || is_flat || times(self.size, self.scale) < TINY;
        let is_unseen = self.folded || self.invisible || self.indented || is_tiny || !is_drawn;
        if !self.is_displayed() || self.is_drawing || is_unseen {
            Visibility::Hidden
        } else if self.quoted {
            Visibility::Quoted
        } else {
            Visibility::Shown
        }
    }
}

#[cfg(test)]
mod tests;
