// SPDX-License-Identifier: GPL-3.0-or-later
//! Attributes of drawings, which look like declarations (SVG 2, 6.6).

use super::cascade::{Cascade, Slot, Value};
use super::colour::{Paint, paint};
use super::element::{Ink, is_faint};
use super::painting::paints;
use super::place::places;

/// Declarations by an attribute of an element in a drawing.
pub(super) fn of_attribute(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let value = value.trim().to_ascii_lowercase();
    match name {
        "fill" | "fill-opacity" | "stroke" => paints(name, &value, set),
        "display" | "visibility" | "opacity" | "font-size" => places(name, &value, set),
        _ => (),
    }
}

/// The colour of letters by `fill`.
pub(super) fn fill(value: &str) -> Value {
    match value {
        "none" => Value::Transparent,
        "inherit" | "unset" => Value::Inherit,
        _ => match paint(value) {
            Some(Paint::Opaque(colour) | Paint::Partly(colour, _)) => Value::Colour(colour),
            Some(Paint::Transparent) => Value::Transparent,
            None => Value::Unknown,
        },
    }
}

/// The paint of letters in a drawing.
pub(super) fn ink(cascade: &Cascade) -> Option<Ink> {
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
