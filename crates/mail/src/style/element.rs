// SPDX-License-Identifier: GPL-3.0-or-later
//! The style of an element, from its attributes and the style sheets.

use super::boxes::{
    Shares, cuts_itself, is_apart, is_box, is_container, is_faint, is_flat, is_hidden, is_line_flat, is_thin,
};
use super::cascade::{Cascade, Rank, Slot, Value};
use super::colour::{Colour, HALF, PAGE, PLAIN_INK, over};
use super::declaration::Attributes;
use super::drawing;
use super::flow::{FLAT, Flow, LineHeight, extent, heights, line_height};
use super::painting::legacy_colour;
use super::place::{is_small, legacy_size};
use super::sheet::Sheet;
use super::shift::Shift;
use super::tree::Node;
use super::vars::Scope;
use crate::names::{has_background, is_undisplayed};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

/// The paint of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Of(Colour),
    /// With an opacity, of 255.
    Partly(Colour, u8),
    Transparent,
    /// An unknown colour.
    Unknown,
}

/// The colour behind an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backdrop {
    Of(Colour),
    /// A translucent one, with an opacity of 255, in front of that behind the outer element.
    Over(Colour, u8),
    /// That of its letters.
    OfLetters,
    Unknown,
}

impl Backdrop {
    /// Whether nothing is visible through it.
    pub(crate) const fn covers(self) -> bool {
        !matches!(self, Self::Unknown | Self::Over(..))
    }
}

/// The size of letters, in 64ths of a pixel, or of the outer size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Of(u32),
    Times(u32),
}

/// The distance of letters, in 64ths of a pixel, or of their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    Of(i32),
    Times(i32),
}

/// State that elements of a page share: memory, and cached `style` attributes.
#[derive(Debug, Default)]
pub(crate) struct PageState {
    /// Whether the next element stands in one that cuts it off.
    pub(crate) is_cut: bool,
    /// Whether it stands in a drawing.
    pub(crate) is_drawn: bool,
    /// Whether it is a box in a flex container or grid.
    pub(crate) is_item: bool,
    /// The colour of links, if the page sets it.
    link: Option<Colour>,
    cascade: Cascade,
    attributes: Attributes,
}

/// The style of one element. `None` means that it inherits from outer elements.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether it and its content take no space, or only space that nobody sees.
    pub(crate) hidden: bool,
    /// Whether it is so small that it cuts off all its content, but for boxes with a place of their own.
    pub(crate) clipped: bool,
    /// Whether it cuts off lines without height.
    pub(crate) is_line_flat: bool,
    /// Whether it has such a place, by which it leaves an outer element that is no container.
    pub(crate) escapes: bool,
    /// Whether inner boxes have their place in it.
    pub(crate) is_container: bool,
    /// Its move from the place where it is written.
    pub(crate) shift: Shift,
    /// Whether the first lines of blocks in it begin outside of every window.
    pub(crate) indent: Option<bool>,
    /// Whether it is a block, if its style decides that.
    pub(crate) is_box: Option<bool>,
    /// Whether its text reads from right to left.
    pub(crate) right_to_left: Option<bool>,
    /// Whether it has no box, by `display: none`.
    pub(crate) is_none: bool,
    /// Whether its box is apart from the lines around it: it floats, has a place of its own, or stands in a line.
    pub(crate) is_apart: bool,
    /// Whether words end at its edges, if its `display` decides that.
    pub(crate) parts: Option<bool>,
    /// Whether it takes nearly no place as a picture.
    pub(crate) is_small: bool,
    /// Shares of the outer opacity and scale, of [`WHOLE`].
    pub(crate) opacity: Option<u32>,
    pub(crate) scale: Option<u32>,
    /// Whether its letters take space but are not drawn.
    pub(crate) invisible: Option<bool>,
    /// The size of its letters.
    pub(crate) size: Option<Size>,
    /// How far its letters are apart, in 64ths of a pixel or of their size.
    pub(crate) spacing: Option<Spacing>,
    pub(crate) ink: Option<Ink>,
    /// The fill of letters, which replaces their colour; `Some(None)` resets it to their colour.
    pub(crate) fill: Option<Option<Ink>>,
    /// The paint of transparent letters, if its background shows only through them.
    pub(crate) through: Option<Ink>,
    /// The shadow and the outline of letters, by which they may be visible if they are not drawn.
    pub(crate) outlines: [Option<Ink>; 2],
    /// The colour behind it.
    pub(crate) background: Option<Backdrop>,
    /// Whether it stands behind its outer element.
    pub(crate) behind: bool,
    /// Whether its content stands in front of it.
    pub(crate) is_layer: bool,
    /// `Some` if it reorders its inner boxes; whether the last comes first.
    pub(crate) lays_out: Option<bool>,
    /// Its number among such boxes.
    pub(crate) order: i16,
    /// The height of its lines, and whether only the author breaks them.
    pub(crate) line: Option<LineHeight>,
    pub(crate) no_wrap: Option<bool>,
    /// Its place among lines, if it may be cut off or cuts off others.
    pub(crate) flow: Flow,
    /// Whether its letters are forced to read from right to left.
    pub(crate) reversed: Option<bool>,
}

impl Style {
    /// Reads the attributes of a start tag, and the rules of `sheet` for the element.
    pub(crate) fn of(tag: &Tag, sheet: &Sheet, node: Option<&Node>, known: &mut PageState) -> Self {
        let PageState { is_cut, is_drawn, is_item, link, cascade, attributes } = known;
        cascade.clear();
        let mut is_styled = sheet.apply(tag, node, cascade);
        is_styled |= by_browser(tag, *is_drawn, cascade);
        for attribute in &tag.attrs {
            let value = attribute.value.trim();
            let mut hint = |slot, value| cascade.add(slot, Rank::HINT, value);
            let mut colour =
                |slot| legacy_colour(value).into_iter().for_each(|colour| hint(slot, Value::Colour(colour)));
            match attribute.name.local {
                local_name!("style") => {
                    let scope = Scope { page: sheet.vars(), own: &[] };
                    attributes.read(value, scope, &mut |found| {
                        cascade.add(found.slot, Rank::inline(found.is_important), found.value);
                    });
                }
                local_name!("hidden") => hint(Slot::NotDisplayed, Value::Hides(true)),
                local_name!("color") if tag.name == local_name!("font") => colour(Slot::Colour),
                local_name!("size") if tag.name == local_name!("font") => {
                    legacy_size(value).into_iter().for_each(|size| hint(Slot::FontSize, size));
                }
                local_name!("text") if tag.name == local_name!("body") => colour(Slot::Colour),
                // Links have their own colour.
                local_name!("href") if tag.name == local_name!("a") => {
                    hint(Slot::Colour, link.map_or(Value::Unknown, Value::Colour));
                }
                local_name!("link") if tag.name == local_name!("body") => *link = legacy_colour(value),
                local_name!("dir") => {
                    hint(Slot::RightToLeft, Value::Hides(value.eq_ignore_ascii_case("rtl")))
                }
                local_name!("width") if is_picture(&tag.name) => hint(Slot::Width, is_small(value)),
                local_name!("height") if is_picture(&tag.name) => hint(Slot::Height, is_small(value)),
                local_name!("width") if cuts_itself(&tag.name) => hint(Slot::Width, extent(value, FLAT)),
                local_name!("height") if cuts_itself(&tag.name) => hint(Slot::Height, heights(value)),
                local_name!("bgcolor") if has_background(&tag.name) => colour(Slot::Background),
                local_name!("background") if has_background(&tag.name) => hint(Slot::Picture, Value::Unknown),
                _ if *is_drawn => drawing::of_attribute(&attribute.name.local, value, &mut hint),
                _ => continue,
            }
            is_styled = true;
        }
        if *is_item {
            cascade.add(Slot::Item, Rank::inline(true), Value::Hides(true));
        }
        if !is_styled {
            return Self::default();
        }
        let mut style = Self::by(cascade, &tag.name);
        if *is_drawn {
            style.ink = drawn_ink(cascade);
        }
        let is_page = matches!(tag.name, local_name!("body") | local_name!("html"));
        let has_flow = *is_cut || cascade.hides(Slot::Cuts) && !is_page;
        Self { flow: if has_flow { Flow::of(cascade) } else { Flow::default() }, ..style }
    }

    /// The style of inserted text, which has no element.
    pub(crate) fn alone(cascade: &Cascade) -> Self {
        Self::by(cascade, &local_name!("span"))
    }

    fn by(cascade: &Cascade, name: &LocalName) -> Self {
        let flag = |slot| match cascade.get(slot) {
            Some(Value::Hides(hides)) => Some(hides),
            _ => None,
        };
        let ink = |slot| ink(cascade, slot);
        let clips_to_text = cascade.hides(Slot::ClipsToText);
        let is_moved = cascade.hides(Slot::Moved);
        let shares = Shares::of(cascade, name);
        let is_container = is_container(cascade, name);
        // Nearly all elements hide nothing.
        let hides_any = cascade.hides_any();
        let is_flat = hides_any && is_flat(cascade, name);
        let style = Self {
            hidden: hides_any && is_hidden(cascade, name) || is_flat && is_container,
            clipped: is_flat,
            is_line_flat: hides_any && is_line_flat(cascade, name),
            escapes: cascade.hides(Slot::OutOfFlow),
            is_container,
            shift: Shift::of(cascade, is_box(cascade, name)),
            indent: flag(Slot::Indent).map(|indent| indent && !cascade.hides(Slot::PaddingLeft)),
            is_box: if is_box(cascade, name) { Some(true) } else { flag(Slot::Block) },
            right_to_left: flag(Slot::RightToLeft),
            is_none: cascade.hides(Slot::NotDisplayed),
            is_apart: hides_any && is_apart(cascade),
            parts: flag(Slot::Parts),
            is_small: is_picture(name) && is_thin(cascade),
            opacity: shares.opacity,
            scale: shares.scale,
            invisible: flag(Slot::Invisible),
            size: size(cascade),
            spacing: spacing(cascade),
            ink: ink(Slot::Colour),
            fill: match cascade.get(Slot::Fill) {
                Some(Value::Inherit) => Some(None),
                _ => ink(Slot::Fill).map(Some),
            },
            through: clips_to_text.then(|| through(background(cascade))),
            outlines: outlines(cascade),
            background: background(cascade).filter(|_| !clips_to_text),
            behind: is_moved && cascade.hides(Slot::Behind),
            is_layer: is_moved && cascade.hides(Slot::Layer),
            lays_out: cascade.hides(Slot::LaysOut).then(|| cascade.hides(Slot::Reversed)),
            order: order(cascade),
            line: line_height(cascade),
            no_wrap: flag(Slot::NoWrap),
            flow: Flow::default(),
            reversed: match (flag(Slot::Override), flag(Slot::RightToLeft)) {
                (Some(true), direction) => Some(direction == Some(true)),
                _ => None,
            },
        };
        if cascade.hides(Slot::OfContents) { style.of_contents() } else { style }
    }

    /// Of an element without a box (`display: contents`): only inner elements inherit from it.
    fn of_contents(self) -> Self {
        Self {
            hidden: false,
            clipped: false,
            is_line_flat: false,
            escapes: false,
            is_container: false,
            shift: Shift::default(),
            is_box: Some(false),
            is_apart: false,
            opacity: None,
            scale: None,
            background: None,
            behind: false,
            is_layer: false,
            lays_out: None,
            flow: Flow::default(),
            ..self
        }
    }
}

/// Adds what the style sheet of browsers says of an element; returns false if that is nothing.
fn by_browser(tag: &Tag, is_drawn: bool, cascade: &mut Cascade) -> bool {
    let mut is_styled = is_undisplayed(tag);
    if is_styled {
        cascade.add(Slot::NotDisplayed, Rank::HINT, Value::Hides(true));
    }
    if let Some(behind) = own_background(&tag.name) {
        cascade.add(Slot::Colour, Rank::HINT, Value::Colour(PLAIN_INK));
        cascade.add(Slot::Background, Rank::HINT, Value::Colour(behind));
        is_styled = true;
    }
    if is_drawn && &*tag.name == "foreignobject" {
        // Without a size it has none.
        for (side, slot) in [("width", Slot::Width), ("height", Slot::Height)] {
            let value = tag.attrs.iter().find(|a| &*a.name.local == side).map_or("0", |a| &a.value);
            cascade.add(slot, Rank::HINT, is_small(value.trim()));
        }
        for slot in [Slot::Block, Slot::Clips] {
            cascade.add(slot, Rank::HINT, Value::Hides(true));
        }
        is_styled = true;
    }
    is_styled
}

/// The paint of letters.
fn ink(cascade: &Cascade, slot: Slot) -> Option<Ink> {
    match cascade.get(slot) {
        Some(Value::Colour(colour)) => Some(Ink::Of(colour)),
        Some(Value::Partly(colour, opacity)) => Some(Ink::Partly(colour, opacity)),
        Some(Value::Transparent) => Some(Ink::Transparent),
        Some(Value::Unknown) => Some(Ink::Unknown),
        _ => None,
    }
}

/// The paint of letters in a drawing.
fn drawn_ink(cascade: &Cascade) -> Option<Ink> {
    if let Some(Value::Share(share)) = cascade.get(Slot::DrawnOpacity)
        && is_faint(share)
    {
        return Some(Ink::Transparent);
    }
    ink(cascade, Slot::Drawn)
}

/// The shadow and the outline of letters.
fn outlines(cascade: &Cascade) -> [Option<Ink>; 2] {
    let outline = |slot| match cascade.get(slot) {
        Some(Value::Hides(_)) => Some(Ink::Transparent),
        _ => ink(cascade, slot),
    };
    let stroke = match (outline(Slot::Stroke), cascade.get(Slot::StrokeWidth)) {
        (None, None) => None,
        (Some(ink), Some(Value::Hides(false))) => Some(ink),
        _ => Some(Ink::Transparent),
    };
    [outline(Slot::Shadow), stroke]
}

/// The colour behind an element: its background, a picture on it and a shadow on both.
fn background(cascade: &Cascade) -> Option<Backdrop> {
    let layers = [Slot::Background, Slot::Picture, Slot::InnerShadow];
    if cascade.hides(Slot::Blends) {
        return Some(Backdrop::Unknown);
    }
    // Nearly all elements have none.
    if !cascade.has_any(&layers) {
        return None;
    }
    let layer = |slot| match cascade.get(slot)? {
        // Some of what is behind it remains.
        Value::Colour(colour) if slot == Slot::Picture && cascade.hides(Slot::PictureInPart) => {
            Some(Backdrop::Over(colour, HALF))
        }
        Value::Colour(colour) => Some(Backdrop::Of(colour)),
        Value::Partly(colour, opacity) => Some(Backdrop::Over(colour, opacity)),
        Value::OfLetters => Some(Backdrop::OfLetters),
        Value::Unknown => Some(Backdrop::Unknown),
        _ => None,
    };
    layers.into_iter().filter_map(layer).reduce(|behind, front| match (behind, front) {
        (Backdrop::Of(behind), Backdrop::Over(colour, opacity)) => {
            Backdrop::Of(over(colour, opacity, behind))
        }
        (Backdrop::Unknown, Backdrop::Over(..)) => Backdrop::Unknown,
        (_, front) => front,
    })
}

/// The paint of letters through which a background shows.
const fn through(background: Option<Backdrop>) -> Ink {
    match background {
        Some(Backdrop::Of(colour)) => Ink::Of(colour),
        Some(Backdrop::Over(colour, opacity)) => Ink::Partly(colour, opacity),
        Some(Backdrop::Unknown) => Ink::Unknown,
        Some(Backdrop::OfLetters) | None => Ink::Transparent,
    }
}

/// The number of an element among boxes.
fn order(cascade: &Cascade) -> i16 {
    match cascade.get(Slot::Order) {
        Some(Value::Number(number)) => number,
        _ => 0,
    }
}

/// The size of letters.
fn size(cascade: &Cascade) -> Option<Size> {
    match cascade.get(Slot::FontSize) {
        Some(Value::Size(size)) => Some(Size::Of(size)),
        Some(Value::Times(times)) => Some(Size::Times(times)),
        _ => None,
    }
}

/// The distance of letters.
fn spacing(cascade: &Cascade) -> Option<Spacing> {
    match cascade.get(Slot::LetterSpacing)? {
        Value::By(pixels, 0) => Some(Spacing::Of(i32::from(pixels))),
        Value::By(_, times) => Some(Spacing::Times(i32::from(times))),
        Value::Hides(_) => Some(Spacing::Of(0)),
        _ => None,
    }
}

/// The background of elements that browsers draw in black on a colour of their own.
const fn own_background(name: &LocalName) -> Option<Colour> {
    match *name {
        local_name!("mark") => Some([255, 255, 0]),
        local_name!("dialog") => Some(PAGE),
        _ => None,
    }
}

/// Elements whose sides are attributes, and which cut their content.
fn is_picture(name: &LocalName) -> bool {
    matches!(*name, local_name!("img") | local_name!("svg"))
}
