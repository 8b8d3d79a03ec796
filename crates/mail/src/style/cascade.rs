// SPDX-License-Identifier: GPL-3.0-or-later
//! Which of several declarations for one element counts.

use super::colour::Colour;
use super::length::{PLAIN, TINY};

/// What a declaration is about. Some properties are about two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// It is not displayed.
    NotDisplayed,
    /// It changes while it is looked at.
    Moves,
    /// It is a box of its own, to which sizes apply.
    Block,
    Float,
    Invisible,
    Faint,
    Height,
    MaxHeight,
    Width,
    MaxWidth,
    LineHeight,
    /// The boxes in it are laid out by numbers and directions; these may be the other way round.
    LaysOut,
    Reversed,
    /// Its number among such boxes.
    Order,
    /// What does not fit into its box is cut off.
    Clips,
    /// It may be moved from its place.
    Moved,
    /// It is taken out of its place.
    OutOfFlow,
    Left,
    Right,
    Top,
    Bottom,
    Indent,
    /// The text begins where its box ends.
    IndentOut,
    MarginLeft,
    PaddingLeft,
    MarginTop,
    Clip,
    ClipPath,
    Transform,
    Translate,
    Scale,
    Rotate,
    Zoom,
    Filter,
    Mask,
    ContentHidden,
    /// It stands behind what it stands in.
    Behind,
    /// What is in it stands before it, whatever it says.
    Layer,
    RightToLeft,
    /// Letters stand in the order of `direction`, whatever they are.
    Override,
    FontSize,
    LetterSpacing,
    Colour,
    /// What letters are drawn with instead of their colour.
    Fill,
    /// No shadow shows letters that are not drawn, nor an outline.
    Shadow,
    Stroke,
    /// Letters are cut out of what is behind them.
    ClipsToText,
    Background,
    Picture,
}

/// What a declaration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// Whether it does its part in hiding the text.
    Hides(bool),
    Colour(Colour),
    Transparent,
    /// A colour that cannot be told, a picture.
    Unknown,
    /// As it is around the element.
    Inherit,
    /// Letters of this size, in 64ths of a pixel, or of so many times the size around them, in 64ths.
    Size(u32),
    Times(u32),
    /// The number of a box.
    Number(i16),
}

/// One of two declarations counts: the important one, then the element's own, then the more specific one, then the later
/// one (CSS Cascading and Inheritance, 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) is_important: bool,
    pub(super) origin: Origin,
    /// Ids, classes and types in the selector, eight bits each but for the ids.
    pub(super) specificity: u32,
    /// The number of the rule.
    pub(super) order: u32,
}

/// Where a declaration stands, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// An attribute such as `bgcolor`.
    Hint,
    /// Rules in an `@layer`.
    Layer,
    Sheet,
    Inline,
}

impl Rank {
    pub(super) const HINT: Self =
        Self { is_important: false, origin: Origin::Hint, specificity: 0, order: 0 };

    pub(super) const fn inline(is_important: bool) -> Self {
        Self { is_important, origin: Origin::Inline, specificity: 0, order: 0 }
    }
}

/// What a declaration says that may not apply: it hides nothing, but may show what another one hides.
pub(super) const fn perhaps(slot: Slot, value: Value) -> Option<Value> {
    match (slot, value) {
        (Slot::Colour | Slot::Fill | Slot::Background | Slot::Picture, _) => Some(Value::Unknown),
        (Slot::LaysOut | Slot::Reversed | Slot::Order, _) => None,
        (Slot::FontSize, Value::Size(TINY..)) => Some(value),
        (Slot::FontSize, Value::Times(64..)) => Some(Value::Size(PLAIN)),
        (Slot::FontSize, _) => None,
        // These show what others hide.
        (Slot::ClipsToText | Slot::Layer | Slot::Moves, Value::Hides(true)) => Some(value),
        (Slot::ClipsToText | Slot::Layer | Slot::Moves, _) | (_, Value::Hides(true)) => None,
        _ => Some(Value::Hides(false)),
    }
}

/// A declaration of a rule.
pub(super) type Found = (Slot, Rank, Value);

/// The declarations that count for one element.
#[derive(Debug, Default)]
pub(crate) struct Cascade {
    /// A bit for each slot that something is said of, and for each that does its part in hiding the text.
    said: u64,
    hides: u64,
    found: Vec<(Slot, Rank, Value)>,
}

impl Cascade {
    /// Adds a declaration, which counts unless a higher one is there.
    pub(super) fn add(&mut self, slot: Slot, rank: Rank, value: Value) {
        let bit = 1 << slot as u32;
        if self.said & bit == 0 {
            self.said |= bit;
            self.found.push((slot, rank, value));
        } else if let Some(there) = self.found.iter_mut().find(|there| there.0 == slot) {
            if there.1 > rank {
                return;
            }
            *there = (slot, rank, value);
        }
        self.hides = if value == Value::Hides(true) { self.hides | bit } else { self.hides & !bit };
    }

    /// Forgets all of them, and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.said, self.hides) = (0, 0);
        self.found.clear();
    }

    pub(super) fn get(&self, slot: Slot) -> Option<Value> {
        if self.said & (1 << slot as u32) == 0 {
            return None;
        }
        self.found.iter().find(|there| there.0 == slot).map(|&(_, _, value)| value)
    }

    /// Whether something does its part in hiding the text.
    pub(super) const fn hides(&self, slot: Slot) -> bool {
        self.hides & (1 << slot as u32) != 0
    }
}
