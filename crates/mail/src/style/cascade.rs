// SPDX-License-Identifier: GPL-3.0-or-later
//! Decides which of several declarations for one element counts.

use super::colour::Colour;
use super::length::{PLAIN, TINY};

/// The effect of a declaration. Some properties have two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// All others, which it resets.
    All,
    /// The element is not displayed.
    NotDisplayed,
    /// The element is a block, so that sizes apply.
    Block,
    /// The element has no box, but its content has.
    OfContents,
    /// Words end at its edges.
    Parts,
    Float,
    /// Its lines end at its right side.
    AlignsRight,
    Invisible,
    Faint,
    Height,
    MaxHeight,
    Width,
    MaxWidth,
    /// The element is higher, or wider, than its height or width.
    MinHeight,
    MinWidth,
    /// Overflowing content is visible in its padding.
    PaddingBottom,
    /// The same, of its padding above.
    PaddingTop,
    LineHeight,
    /// Lines break only where the author breaks them.
    NoWrap,
    /// Lines do not stand below one another.
    OtherFlow,
    /// The element is one of the boxes in a flex container or grid.
    Item,
    /// It takes no width (or height) in a flex container, or what others leave.
    FlexBasis,
    FlexGrow,
    /// Inner boxes are laid out by numbers and directions, which may be reversed.
    LaysOut,
    Reversed,
    /// Its number among such boxes.
    Order,
    /// Overflowing content is cut off, by `overflow` or `contain`.
    Clips,
    /// What overflows below can only be cut off, not scrolled to.
    Cuts,
    Contains,
    /// Its content does not decide its height.
    Sized,
    /// The element may be moved from its place.
    Moved,
    /// The element is taken out of the flow.
    OutOfFlow,
    /// Its place is one in the window.
    Fixed,
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
    MarginBottom,
    Clip,
    ClipPath,
    Transform,
    Translate,
    Scale,
    /// The scale of a `transform`.
    Shrinks,
    Rotate,
    Zoom,
    Filter,
    Mask,
    ContentHidden,
    /// The element stands behind its outer element.
    Behind,
    /// The element is a layer: its content stands in front of it, with any level.
    Layer,
    RightToLeft,
    /// Letters follow `direction`, regardless of script.
    Override,
    FontSize,
    LetterSpacing,
    Colour,
    /// The fill of letters, which replaces their colour.
    Fill,
    /// A shadow or an outline, which may make undrawn letters visible; whether the outline has no width.
    Shadow,
    Stroke,
    StrokeWidth,
    /// The fill of letters in a drawing, and its opacity.
    Drawn,
    DrawnOpacity,
    /// The background shows only through the letters.
    ClipsToText,
    /// A broad shadow within the box.
    InnerShadow,
    /// White letters are visible on white.
    Blends,
    Background,
    Picture,
    /// The picture may leave some of the background free.
    PictureInPart,
}

/// The value of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// Whether it contributes to hiding the text.
    Hides(bool),
    Colour(Colour),
    /// With an opacity, of 255.
    Partly(Colour, u8),
    Transparent,
    /// An unknown colour, or a picture.
    Unknown,
    /// The colour of the letters.
    OfLetters,
    /// The value of the outer element.
    Inherit,
    /// The size of letters in 64ths of a pixel, or in 64ths of the outer size.
    Size(u32),
    Times(u32),
    /// A share of the outer opacity or scale, of [`WHOLE`].
    Share(u32),
    /// The number of a box, or a length in pixels.
    Number(i16),
    /// A length in pixels by which a box leaves every window.
    Away(i16),
    /// By how many pixels a box is moved to the right and down.
    By(i16, i16),
    /// A length in pixels that keeps a box from hiding its content.
    High(i16),
}

/// The share that changes nothing.
pub(crate) const WHOLE: u32 = 1 << 16;

/// The precedence of a declaration: important ones first, then the element's own, then the more specific one, then the later one (CSS
/// Cascading and Inheritance, 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) is_important: bool,
    pub(super) origin: Origin,
    /// Ids, classes and types in the selector; eight bits for classes and types each.
    pub(super) specificity: u32,
    /// The number of the rule.
    pub(super) order: u32,
}

/// The place of a declaration, weakest first.
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

/// The effect of a declaration that may not apply: it hides nothing, but may show text that another one hides.
pub(super) const fn perhaps(slot: Slot, value: Value) -> Option<Value> {
    match (slot, value) {
        (
            Slot::Colour | Slot::Fill | Slot::Drawn | Slot::Background | Slot::Picture | Slot::InnerShadow,
            _,
        ) => Some(Value::Unknown),
        (Slot::MarginTop | Slot::MarginBottom, Value::Number(_)) => Some(Value::Unknown),
        (Slot::PaddingTop, _) => None,
        (_, Value::High(_)) => Some(value),
        (Slot::All | Slot::LaysOut | Slot::Reversed | Slot::Order | Slot::Parts, _) => None,
        (Slot::Shadow | Slot::Stroke, Value::Colour(_)) => Some(Value::Unknown),
        // Shares that hide nothing alone.
        (_, Value::Share(share)) => {
            if share >= WHOLE / 10 {
                Some(Value::Share(WHOLE))
            } else {
                None
            }
        }
        (Slot::FontSize, Value::Size(TINY..)) => Some(value),
        (Slot::FontSize, Value::Times(64..)) => Some(Value::Size(PLAIN)),
        (Slot::FontSize, _) => None,
        // These show text that others hide.
        (
            Slot::ClipsToText
            | Slot::Blends
            | Slot::OfContents
            | Slot::NoWrap
            | Slot::OtherFlow
            | Slot::FlexGrow
            | Slot::Layer
            | Slot::AlignsRight
            | Slot::PictureInPart,
            Value::Hides(is_shown),
        ) => {
            if is_shown {
                Some(value)
            } else {
                None
            }
        }
        (_, Value::Hides(true) | Value::Away(_)) => None,
        _ => Some(Value::Hides(false)),
    }
}

/// The number of slots.
const SLOTS: usize = Slot::PictureInPart as usize + 1;

/// A declaration of a rule.
pub(super) type Found = (Slot, Rank, Value);

/// The declarations that count for one element. Adding one takes the same time in any of them.
#[derive(Debug)]
pub(crate) struct Cascade {
    /// A bit for each slot with a declaration, and for each slot that contributes to hiding the text.
    declared: u128,
    hides: u128,
    /// The rank of the declaration that resets all others.
    reset: Option<Rank>,
    /// By slot; only those of `declared`.
    found: [(Rank, Value); SLOTS],
}

impl Default for Cascade {
    fn default() -> Self {
        Self { declared: 0, hides: 0, reset: None, found: [(Rank::HINT, Value::Unknown); SLOTS] }
    }
}

impl Cascade {
    /// Adds a declaration, which counts unless a higher one exists.
    pub(super) fn add(&mut self, slot: Slot, rank: Rank, value: Value) {
        if self.reset.is_some_and(|reset| reset > rank) {
            return;
        }
        if slot == Slot::All {
            self.reset_to(rank, value);
            return;
        }
        let (bit, there) = (1 << slot as u32, &mut self.found[slot as usize]);
        if self.declared & bit != 0 && there.0 > rank {
            return;
        }
        self.declared |= bit;
        *there = (rank, value);
        self.hides = if matches!(value, Value::Hides(true) | Value::High(_) | Value::Away(_)) {
            self.hides | bit
        } else {
            self.hides & !bit
        };
    }

    /// Removes all declarations of this rank and lower ones, but with [`Value::Inherit`] not those of attributes.
    fn reset_to(&mut self, rank: Rank, value: Value) {
        let is_kept = |there: Rank| there > rank || value == Value::Inherit && there.origin == Origin::Hint;
        for (at, (there, _)) in self.found.iter().enumerate() {
            if !is_kept(*there) {
                let bit = 1_u128 << at;
                (self.declared, self.hides) = (self.declared & !bit, self.hides & !bit);
            }
        }
        if value != Value::Inherit {
            self.reset = Some(rank);
        }
    }

    /// Removes all declarations.
    pub(super) const fn clear(&mut self) {
        (self.declared, self.hides, self.reset) = (0, 0, None);
    }

    /// Whether any of these slots has a declaration.
    pub(super) const fn has_any(&self, slots: &[Slot]) -> bool {
        let (mut mask, mut at) = (0, 0);
        while at < slots.len() {
            mask |= 1_u128 << slots[at] as u32;
            at += 1;
        }
        self.declared & mask != 0
    }

    pub(super) fn get(&self, slot: Slot) -> Option<Value> {
        (self.declared & (1 << slot as u32) != 0).then(|| self.found[slot as usize].1)
    }

    /// Whether any slot contributes to hiding the text.
    pub(super) const fn hides_any(&self) -> bool {
        self.hides != 0
    }

    /// Whether this slot contributes to hiding the text.
    pub(super) const fn hides(&self, slot: Slot) -> bool {
        self.hides & (1 << slot as u32) != 0
    }
}
