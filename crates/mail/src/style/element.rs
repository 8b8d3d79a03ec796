// SPDX-License-Identifier: GPL-3.0-or-later
//! The style of an element, from its attributes and the style sheets.

use super::cascade::{Cascade, Rank, Slot, Value, WHOLE};
use super::colour::Colour;
use super::declaration::Attributes;
use super::drawing;
use super::flow::{Flow, LineHeight, line_height};
use super::painting::legacy_colour;
use super::place::{is_small, legacy_size};
use super::sheet::Sheet;
use super::shift::{Shift, holds_fixed, is_back};
use super::tree::Node;
use super::vars::Scope;
use crate::names::{has_background, is_block, is_undisplayed};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

/// The paint of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Of(Colour),
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

/// State that elements of a page share: memory, and cached `style` attributes.
#[derive(Debug, Default)]
pub(crate) struct PageState {
    /// Whether the next element stands in one that cuts it off.
    pub(crate) is_cut: bool,
    /// Whether it stands in a drawing.
    pub(crate) is_drawn: bool,
    /// Whether it is a box in a flex container or grid.
    pub(crate) is_item: bool,
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
    /// Whether its letters overlap.
    pub(crate) squeezed: Option<bool>,
    pub(crate) ink: Option<Ink>,
    /// The fill of letters, which replaces their colour; `Some(None)` resets it to their colour.
    pub(crate) fill: Option<Option<Ink>>,
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
        let PageState { is_cut, is_drawn, is_item, cascade, attributes } = known;
        cascade.clear();
        let mut is_styled = sheet.apply(tag, node, cascade);
        if is_undisplayed(tag) {
            cascade.add(Slot::NotDisplayed, Rank::HINT, Value::Hides(true));
            is_styled = true;
        }
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
                local_name!("href") if tag.name == local_name!("a") => hint(Slot::Colour, Value::Unknown),
                local_name!("dir") => {
                    hint(Slot::RightToLeft, Value::Hides(value.eq_ignore_ascii_case("rtl")))
                }
                local_name!("width") if is_picture(&tag.name) => hint(Slot::Width, is_small(value)),
                local_name!("height") if is_picture(&tag.name) => hint(Slot::Height, is_small(value)),
                local_name!("bgcolor") if has_background(&tag.name) => colour(Slot::Background),
                local_name!("background") if has_background(&tag.name) => hint(Slot::Picture, Value::Unknown),
                _ if *is_drawn => drawing::of_attribute(&attribute.name.local, value, &mut hint),
                _ => continue,
            }
            is_styled = true;
        }
        if *is_drawn && &*tag.name == "foreignobject" {
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
        let has_flow = *is_cut || cascade.hides(Slot::Cuts);
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
        let (is_flat, is_container) = (is_flat(cascade, name), is_container(cascade, name));
        let style = Self {
            hidden: is_hidden(cascade, name) || is_flat && is_container,
            clipped: is_flat,
            escapes: cascade.hides(Slot::OutOfFlow),
            is_container,
            shift: Shift::of(cascade, is_box(cascade, name)),
            indent: flag(Slot::Indent).map(|indent| indent && !cascade.hides(Slot::PaddingLeft)),
            is_box: if is_box(cascade, name) { Some(true) } else { flag(Slot::Block) },
            right_to_left: flag(Slot::RightToLeft),
            is_none: cascade.hides(Slot::NotDisplayed),
            is_apart: is_apart(cascade),
            parts: flag(Slot::Parts),
            is_small: is_picture(name) && is_thin(cascade),
            opacity: shares.opacity,
            scale: shares.scale,
            invisible: flag(Slot::Invisible),
            size: size(cascade),
            squeezed: flag(Slot::LetterSpacing),
            ink: if clips_to_text { Some(Ink::Unknown) } else { ink(Slot::Colour) },
            fill: match cascade.get(Slot::Fill) {
                _ if clips_to_text => Some(None),
                Some(Value::Inherit) => Some(None),
                _ => ink(Slot::Fill).map(Some),
            },
            outlines: outlines(cascade),
            background: background(cascade),
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

/// The paint of letters.
fn ink(cascade: &Cascade, slot: Slot) -> Option<Ink> {
    match cascade.get(slot) {
        Some(Value::Colour(colour)) => Some(Ink::Of(colour)),
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
    match cascade.get(Slot::Drawn)? {
        Value::Colour(colour) => Some(Ink::Of(colour)),
        Value::Transparent => Some(Ink::Transparent),
        Value::Unknown => Some(Ink::Unknown),
        _ => None,
    }
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

/// The colour behind an element.
fn background(cascade: &Cascade) -> Option<Backdrop> {
    match (cascade.get(Slot::Picture), cascade.get(Slot::Background)) {
        (Some(Value::Colour(_)), _) if cascade.hides(Slot::PictureInPart) => Some(Backdrop::Unknown),
        (Some(Value::Colour(colour)), _) => Some(Backdrop::Of(colour)),
        (Some(Value::Unknown), _) | (_, Some(Value::Unknown)) => Some(Backdrop::Unknown),
        (_, Some(Value::Colour(colour))) => Some(Backdrop::Of(colour)),
        (_, Some(Value::Partly(colour, opacity))) => Some(Backdrop::Over(colour, opacity)),
        (_, Some(Value::OfLetters)) => Some(Backdrop::OfLetters),
        _ => None,
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

/// Whether a share of opacity or scale leaves nothing to read.
pub(crate) const fn is_faint(share: u32) -> bool {
    share < WHOLE / 20
}

/// Elements whose sides are attributes, and which cut their content.
fn is_picture(name: &LocalName) -> bool {
    matches!(*name, local_name!("img") | local_name!("svg"))
}

/// Whether sizes apply to an element: not to inline ones, and a cell grows with its content.
fn is_box(cascade: &Cascade, name: &LocalName) -> bool {
    let is_cut_item = || cascade.hides(Slot::Item) && cascade.hides(Slot::Clips);
    cascade.hides(Slot::Float)
        || cascade.hides(Slot::OutOfFlow)
        || is_cut_item()
        || match cascade.get(Slot::Block) {
            Some(value) => value == Value::Hides(true),
            None => is_block(name),
        }
}

/// Whether the lines around an element continue beside its box.
fn is_apart(cascade: &Cascade) -> bool {
    let is_in_line = cascade.hides(Slot::Block) && !cascade.hides(Slot::Parts);
    cascade.hides(Slot::Float) || cascade.hides(Slot::OutOfFlow) || is_in_line
}

/// Whether a picture has nearly no width or height.
fn is_thin(cascade: &Cascade) -> bool {
    let hides = |slot| cascade.hides(slot);
    (hides(Slot::Width) || hides(Slot::MaxWidth)) && !hides(Slot::MinWidth)
        || (hides(Slot::Height) || hides(Slot::MaxHeight)) && !hides(Slot::MinHeight)
}

/// The shares of opacity and scale that an element leaves to its content.
struct Shares {
    opacity: Option<u32>,
    scale: Option<u32>,
}

impl Shares {
    fn of(cascade: &Cascade, name: &LocalName) -> Self {
        // An animation may end otherwise.
        if cascade.hides(Slot::Moves) {
            return Self { opacity: None, scale: None };
        }
        let share = |slot| match cascade.get(slot) {
            Some(Value::Share(share)) => Some(share),
            _ => None,
        };
        let in_a_box = [Slot::Scale, Slot::Shrinks].map(|slot| share(slot).filter(|_| is_box(cascade, name)));
        // A page sets no letters in a zoom that small for reading.
        let zoom = share(Slot::Zoom).map(|zoom| if zoom < WHOLE / 10 { 0 } else { zoom });
        let scales = in_a_box.into_iter().chain([zoom]).flatten();
        Self { opacity: share(Slot::Faint), scale: scales.reduce(times) }
    }
}

/// A share of a share.
pub(crate) fn times(outer: u32, share: u32) -> u32 {
    let product = u64::from(outer) * u64::from(share) / u64::from(WHOLE);
    u32::try_from(product).unwrap_or(u32::MAX)
}

/// Whether an element is a box so small that nobody sees its content.
fn is_flat(cascade: &Cascade, name: &LocalName) -> bool {
    let hides = |slot| cascade.hides(slot);
    let clips = hides(Slot::Clips) || hides(Slot::Contains);
    let cuts = is_box(cascade, name) && clips || *name == local_name!("svg");
    let heights = [Slot::Height, Slot::MaxHeight, Slot::LineHeight];
    let is_low = heights.into_iter().any(hides) && !hides(Slot::MinHeight) && !hides(Slot::PaddingBottom);
    let is_thin = (hides(Slot::Width) || hides(Slot::MaxWidth)) && !hides(Slot::MinWidth);
    let has_height = matches!(cascade.get(Slot::Height), Some(value) if value != Value::Inherit);
    let is_empty =
        hides(Slot::Sized) && !has_height && !hides(Slot::MinHeight) && !hides(Slot::PaddingBottom);
    let is_item = hides(Slot::Item) && hides(Slot::FlexBasis) && !hides(Slot::FlexGrow);
    let is_shrunk = is_item && !hides(Slot::MinWidth) && !hides(Slot::MinHeight);
    // An animation may enlarge it after a while.
    cuts && (is_empty || is_shrunk || is_low || is_thin || hides(Slot::IndentOut)) && !hides(Slot::Moves)
}

/// Whether inner boxes with a place of their own have it in an element (CSS Positioned Layout Module Level 3, 2.1).
fn is_container(cascade: &Cascade, name: &LocalName) -> bool {
    cascade.hides(Slot::Moved) || holds_fixed(cascade) || *name == local_name!("svg")
}

/// Whether an element takes no space, or only space that nobody sees, in any place.
fn is_hidden(cascade: &Cascade, name: &LocalName) -> bool {
    let hides = |slot| cascade.hides(slot);
    let anywhere = [Slot::NotDisplayed, Slot::ClipPath, Slot::Filter, Slot::Mask];
    let in_a_box = [Slot::Transform, Slot::Rotate, Slot::ContentHidden];
    // An animation may show its content after a while.
    if hides(Slot::Moves) && !hides(Slot::NotDisplayed) {
        return false;
    }
    let is_away = in_a_box.into_iter().any(hides) || hides(Slot::PaddingLeft) && !is_back(cascade);
    anywhere.into_iter().any(hides)
        || is_box(cascade, name) && is_away
        || hides(Slot::OutOfFlow) && hides(Slot::Clip)
}
