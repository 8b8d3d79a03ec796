// SPDX-License-Identifier: GPL-3.0-or-later
//! How an element is shown, by its attributes and the style sheets.

use super::cascade::{Cascade, Rank, Slot, Value};
use super::colour::Colour;
use super::declaration::{self, backdrop, ink};
use super::sheet::Sheet;
use crate::names::is_block;
use html5ever::local_name;
use html5ever::tokenizer::Tag;

/// What letters are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Of(Colour),
    Transparent,
    /// A colour that cannot be told.
    Unknown,
}

/// What is said of one element. `None` is: nothing, it is as around it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// It takes no place, or none where anybody looks; nor does what is in it.
    pub(crate) hidden: bool,
    /// Its letters take place and are not drawn.
    pub(crate) invisible: Option<bool>,
    /// Its letters are too small to read, or have a size that can be read.
    pub(crate) tiny: Option<bool>,
    /// Its letters stand on one another.
    pub(crate) squeezed: Option<bool>,
    pub(crate) ink: Option<Ink>,
    /// The colour behind it; `Some(None)` where that cannot be told.
    pub(crate) background: Option<Option<Colour>>,
}

impl Style {
    /// Reads the attributes of a start tag, and what `sheet` says of such an element.
    pub(crate) fn of(tag: &Tag, sheet: &Sheet) -> Self {
        let mut cascade = Cascade::default();
        let mut is_styled = sheet.apply(tag, &mut cascade);
        for attribute in &tag.attrs {
            let value = attribute.value.trim();
            let mut hint = |slot, value| cascade.add(slot, Rank::HINT, value);
            match attribute.name.local {
                local_name!("style") => declaration::of_attribute(value, &mut |found| {
                    cascade.add(found.slot, Rank::inline(found.is_important), found.value);
                }),
                local_name!("hidden") => hint(Slot::NotDisplayed, Value::Hides(true)),
                local_name!("color") if tag.name == local_name!("font") => hint(Slot::Colour, ink(value)),
                local_name!("text") if tag.name == local_name!("body") => hint(Slot::Colour, ink(value)),
                // Links have a colour of their own.
                local_name!("href") if tag.name == local_name!("a") => hint(Slot::Colour, Value::Unknown),
                local_name!("bgcolor") => hint(Slot::Background, backdrop(value)),
                local_name!("background") => hint(Slot::Picture, Value::Unknown),
                _ => continue,
            }
            is_styled = true;
        }
        if is_styled { Self::by(&cascade, tag) } else { Self::default() }
    }

    fn by(cascade: &Cascade, tag: &Tag) -> Self {
        let flag = |slot| match cascade.get(slot) {
            Some(Value::Hides(hides)) => Some(hides),
            _ => None,
        };
        Self {
            hidden: is_hidden(cascade, tag),
            invisible: flag(Slot::Invisible),
            tiny: flag(Slot::FontSize),
            squeezed: flag(Slot::LetterSpacing),
            ink: match cascade.get(Slot::Colour) {
                Some(Value::Colour(colour)) => Some(Ink::Of(colour)),
                Some(Value::Transparent) => Some(Ink::Transparent),
                Some(Value::Unknown) => Some(Ink::Unknown),
                _ => None,
            },
            background: match (cascade.get(Slot::Picture), cascade.get(Slot::Background)) {
                (Some(Value::Unknown), _) | (_, Some(Value::Unknown)) => Some(None),
                (_, Some(Value::Colour(colour))) => Some(Some(colour)),
                _ => None,
            },
        }
    }
}

/// Whether an element takes no place, or none where anybody looks.
fn is_hidden(cascade: &Cascade, tag: &Tag) -> bool {
    let hides = |slot| cascade.hides(slot);
    // Sizes mean nothing to what flows in a line, and a cell grows with what is in it.
    let is_block = hides(Slot::Float)
        || hides(Slot::OutOfFlow)
        || match cascade.get(Slot::Block) {
            Some(value) => value == Value::Hides(true),
            None => is_block(&tag.name),
        };
    let sizes = [Slot::Height, Slot::MaxHeight, Slot::Width, Slot::MaxWidth, Slot::LineHeight];
    let is_flat = is_block && hides(Slot::Clips) && sizes.into_iter().any(hides);
    let sides = [Slot::Left, Slot::Right, Slot::Top, Slot::Bottom];
    let is_moved = hides(Slot::Moved) && sides.into_iter().any(hides);
    hides(Slot::NotDisplayed)
        || hides(Slot::Faint)
        || hides(Slot::MarginLeft)
        || hides(Slot::ClipPath)
        || is_flat
        || is_moved
        || is_block && (hides(Slot::Indent) || hides(Slot::Transform))
        || hides(Slot::OutOfFlow) && hides(Slot::Clip)
}
