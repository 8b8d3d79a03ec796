// SPDX-License-Identifier: GPL-3.0-or-later
//! Attributes of drawings, which look like declarations (SVG 2, 6.6).

use super::cascade::{Slot, Value};
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
