// SPDX-License-Identifier: GPL-3.0-or-later
//! Sizes and margins of boxes, as far as they decide which lines of a box with a height are cut off.

use super::cascade::{Cascade, Slot, Value, WHOLE};
use super::length::{length, number, words};

/// Pixels of a box below which no letter in it is readable.
pub(super) const FLAT: f32 = 5.0;

/// A height, width or distance.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    #[default]
    None,
    Pixels(i16),
    /// In 64ths of the size of letters.
    Times(u32),
    /// It depends on others.
    Unknown,
}

impl Extent {
    fn of(cascade: &Cascade, slot: Slot) -> Self {
        match cascade.get(slot) {
            None | Some(Value::Inherit) => Self::None,
            Some(Value::Number(pixels) | Value::High(pixels) | Value::Away(pixels)) => Self::Pixels(pixels),
            Some(Value::Times(times)) => Self::Times(times),
            _ => Self::Unknown,
        }
    }

    /// A margin: only negative ones matter if they are unknown.
    fn of_margin(cascade: &Cascade, slot: Slot) -> Self {
        match cascade.get(slot) {
            Some(Value::Hides(false)) => Self::None,
            _ => Self::of(cascade, slot),
        }
    }

    /// A height that may be next to nothing.
    fn of_height(cascade: &Cascade, slot: Slot) -> Self {
        if cascade.hides(slot) { Self::Pixels(0) } else { Self::of(cascade, slot) }
    }
}

/// The height of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineHeight {
    /// That of the font.
    Normal,
    /// In 64ths of the size of letters.
    Times(u32),
    /// In 64ths of a pixel.
    Of(u32),
}

/// How an element takes part in the lines around it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Whether it cuts off what is below its height.
    pub(crate) cuts: bool,
    pub(crate) height: Extent,
    pub(crate) max_height: Extent,
    pub(crate) width: Extent,
    /// Above and below its content.
    pub(crate) padding: [Extent; 2],
    pub(crate) margin: [Extent; 2],
    /// How far its content is from its left side.
    pub(crate) left: [Extent; 2],
    /// Whether its content may stand above or beside the lines before it.
    pub(crate) is_placed: bool,
    /// Whether lines around it continue beside it.
    pub(crate) is_beside: bool,
}

impl Flow {
    pub(super) fn of(cascade: &Cascade) -> Self {
        let hides = |slot| cascade.hides(slot);
        let sets = |slot| cascade.get(slot).is_some_and(|value| value != Value::Inherit);
        let moves =
            [Slot::Transform, Slot::Translate, Slot::Scale, Slot::Rotate, Slot::Zoom, Slot::OtherFlow];
        let sides = [Slot::Left, Slot::Right, Slot::Top, Slot::Bottom];
        let is_placed = moves.into_iter().any(sets)
            || hides(Slot::OutOfFlow)
            || hides(Slot::LaysOut)
            || sides.into_iter().any(sets);
        let is_in_line = hides(Slot::Block) && !hides(Slot::Parts) && cascade.get(Slot::Parts).is_some();
        let [width, most] = [Slot::Width, Slot::MaxWidth].map(|slot| Extent::of(cascade, slot));
        Self {
            cuts: hides(Slot::Cuts) && !hides(Slot::MinHeight) && !is_placed,
            height: Extent::of_height(cascade, Slot::Height),
            max_height: Extent::of_height(cascade, Slot::MaxHeight),
            width: match (width, most) {
                (Extent::Pixels(width), Extent::Pixels(most)) => Extent::Pixels(width.min(most)),
                (Extent::None | Extent::Unknown, Extent::Pixels(_) | Extent::Times(_)) => most,
                _ => width,
            },
            padding: [Slot::PaddingTop, Slot::PaddingBottom].map(|slot| Extent::of_margin(cascade, slot)),
            margin: [Slot::MarginTop, Slot::MarginBottom].map(|slot| Extent::of_margin(cascade, slot)),
            left: [Slot::MarginLeft, Slot::PaddingLeft].map(|slot| Extent::of_margin(cascade, slot)),
            is_placed,
            is_beside: hides(Slot::Float) || is_in_line,
        }
    }
}

/// The height of lines that an element sets.
pub(super) fn line_height(cascade: &Cascade) -> Option<LineHeight> {
    match cascade.get(Slot::LineHeight)? {
        Value::Hides(_) => Some(LineHeight::Of(0)),
        Value::Times(times) => Some(LineHeight::Times(times)),
        Value::Size(size) => Some(LineHeight::Of(size)),
        Value::Unknown => Some(LineHeight::Normal),
        _ => None,
    }
}

/// A height or width: whether it is below `flat`, else its pixels.
pub(super) fn extent(value: &str, flat: f32) -> Value {
    if length(value).is_some_and(|pixels| pixels < flat) {
        return Value::Hides(true);
    }
    if matches!(value, "auto" | "none" | "inherit" | "initial" | "unset") {
        return Value::Inherit;
    }
    distance(value).unwrap_or(Value::Hides(false))
}

/// A height. Shares of what is around mostly have no effect, as that is as high as its content.
pub(super) fn heights(value: &str) -> Value {
    if value.ends_with('%') { Value::Hides(false) } else { extent(value, FLAT) }
}

/// A length whose pixels do not depend on the window or the box around.
fn distance(value: &str) -> Option<Value> {
    if let Some(times) = value.strip_suffix("em").filter(|times| !times.ends_with('r')) {
        let times = times.parse::<f32>().ok().filter(|times| *times >= 0.0)?;
        return Some(Value::Times(in_64ths(times)));
    }
    let is_plain = value.ends_with(|c: char| c.is_ascii_digit() || c == '.')
        || ["px", "pt", "pc", "in", "cm", "mm"].iter().any(|unit| value.ends_with(unit));
    length(value).filter(|_| is_plain).map(|pixels| Value::Number(rounded(pixels)))
}

/// A padding or a least height, by which content below a height may be visible.
pub(super) fn height_of_more(value: &str, flat: f32) -> Value {
    match distance(value) {
        Some(Value::Number(pixels)) if f32::from(pixels) >= flat => Value::High(pixels),
        found => match length(value) {
            Some(pixels) => Value::Hides(pixels >= flat),
            None => found.unwrap_or(Value::Hides(false)),
        },
    }
}

/// Whether a length is one in which a letter is readable.
pub(super) fn is_high(value: &str) -> Value {
    let is_of_content = matches!(value, "min-content" | "max-content" | "fit-content");
    if is_of_content { Value::Hides(true) } else { height_of_more(value, FLAT) }
}

/// A margin that does not move its box away.
pub(super) fn margin(value: &str) -> Value {
    match distance(value) {
        Some(value) => value,
        // It may be negative.
        None if value.starts_with('-') || value.contains('(') => Value::Unknown,
        None => Value::Hides(false),
    }
}

/// `line-height`: a bare number is a multiple of the letters' size.
pub(super) fn height_of_lines(value: &str) -> Value {
    if value == "normal" || value == "initial" {
        return Value::Unknown;
    }
    if matches!(value, "inherit" | "unset") {
        return Value::Inherit;
    }
    if length(value).is_some_and(|pixels| pixels < 0.1) {
        return Value::Hides(true);
    }
    let times =
        number(value).or_else(|| value.strip_suffix("em").filter(|n| !n.ends_with('r'))?.parse().ok());
    match (times.filter(|_| !value.contains('(')), distance(value)) {
        (Some(times), _) => Value::Times(in_64ths(times)),
        (None, Some(Value::Number(pixels))) => Value::Size(in_64ths(f32::from(pixels))),
        _ => Value::Hides(false),
    }
}

/// The height of lines by `font`: behind a slash, or normal.
pub(super) fn lines_of_font(value: &str) -> Value {
    let (_, after) = value.rsplit_once('/').unwrap_or(("", ""));
    words(after).next().map_or(Value::Unknown, height_of_lines)
}

/// Whether lines break only where the author breaks them.
pub(super) fn breaks_nowhere(value: &str) -> Value {
    match value {
        "inherit" | "unset" => Value::Inherit,
        _ => Value::Hides(words(value).any(|word| matches!(word, "nowrap" | "pre"))),
    }
}

/// A share of the outer opacity or scale; without a number, all of it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
#[allow(clippy::cast_precision_loss, reason = "a power of two")]
pub(super) fn share(number: Option<f32>) -> Value {
    let number = number.filter(|number| number.is_finite());
    Value::Share(number.map_or(WHOLE, |number| (number.clamp(0.0, 1000.0) * WHOLE as f32).round() as u32))
}

#[allow(clippy::cast_possible_truncation, reason = "clamped")]
fn rounded(pixels: f32) -> i16 {
    pixels.ceil().clamp(-30000.0, 30000.0) as i16
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(super) fn in_64ths(number: f32) -> u32 {
    (number.clamp(0.0, 1000.0) * 64.0).round() as u32
}
