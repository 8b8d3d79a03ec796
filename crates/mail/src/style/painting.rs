// SPDX-License-Identifier: GPL-3.0-or-later
//! The paint of letters, and the background.

use super::cascade::{Slot, Value};
use super::colour::{PAGE, Paint, alike, of_gradient, paint};
use super::length::{functions, length, number, words};

pub(super) fn is_of_paint(name: &str) -> bool {
    matches!(
        name,
        "color"
            | "background"
            | "background-color"
            | "background-image"
            | "background-clip"
            | "-webkit-background-clip"
            | "-webkit-text-fill-color"
            | "-webkit-text-stroke"
            | "-webkit-text-stroke-color"
            | "-webkit-text-stroke-width"
            | "text-shadow"
            | "mask"
            | "mask-image"
            | "-webkit-mask"
            | "-webkit-mask-image"
    )
}

/// Colours and backgrounds.
pub(super) fn paints(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let word = |word: &str| value.eq_ignore_ascii_case(word);
    let is_around = word("inherit") || word("unset") || word("currentcolor");
    let is_none = word("none") || word("transparent") || word("inherit") || word("initial") || word("unset");
    match name {
        "color" if is_around => set(Slot::Colour, Value::Inherit),
        "color" if is_invalid(value) => (),
        "color" => set(Slot::Colour, ink(value)),
        "-webkit-text-fill-color" if is_around => set(Slot::Fill, Value::Inherit),
        "-webkit-text-fill-color" => set(Slot::Fill, ink(value)),
        "text-shadow" => set(Slot::Shadow, outline(value)),
        "-webkit-text-stroke" => {
            set(Slot::Stroke, outline(value));
            set(Slot::StrokeWidth, Value::Hides(!has_width(value)));
        }
        "-webkit-text-stroke-color" => set(Slot::Stroke, outline(value)),
        "-webkit-text-stroke-width" => set(Slot::StrokeWidth, Value::Hides(!has_width(value))),
        "mask" | "mask-image" | "-webkit-mask" | "-webkit-mask-image" => {
            set(Slot::Mask, Value::Hides(of_gradient(value) == Some(Paint::Transparent)));
        }
        "background-clip" | "-webkit-background-clip" => set(Slot::ClipsToText, Value::Hides(word("text"))),
        "background-image" => set(Slot::Picture, picture(value)),
        "background-color" if is_none => set(Slot::Background, Value::Inherit),
        "background-color" => set(Slot::Background, backdrop(value)),
        _ => {
            set(Slot::Picture, picture(value));
            let clips = words(value).any(|word| word.eq_ignore_ascii_case("text"));
            set(Slot::ClipsToText, Value::Hides(clips));
            let behind = match words(value).find_map(paint) {
                _ if is_none => Value::Inherit,
                Some(Paint::Opaque(colour)) => Value::Colour(colour),
                Some(Paint::Transparent) => Value::Inherit,
                None if is_of_picture(value) => Value::Inherit,
                None => Value::Unknown,
            };
            set(Slot::Background, behind);
        }
    }
}

/// Whether a value is a word that names no colour, so that browsers ignore it. Of their own colours, most names end alike.
fn is_invalid(value: &str) -> bool {
    const OWN: [&str; 13] = [
        "text",
        "face",
        "color",
        "border",
        "highlight",
        "shadow",
        "caption",
        "background",
        "frame",
        "item",
        "mark",
        "menu",
        "workspace",
    ];
    let lower = value.to_ascii_lowercase();
    paint(value).is_none()
        && !matches!(&*lower, "initial" | "revert" | "revert-layer")
        && lower.bytes().all(|b| b.is_ascii_lowercase())
        && !OWN.iter().any(|end| lower.ends_with(end))
}

/// Whether a value has a picture, which hides the colour behind it.
fn is_of_picture(value: &str) -> bool {
    functions(value).any(|(name, _)| {
        let name =
            name.rsplit(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default().to_ascii_lowercase();
        !matches!(
            &*name,
            "rgb"
                | "rgba"
                | "hsl"
                | "hsla"
                | "hwb"
                | "lab"
                | "lch"
                | "oklab"
                | "oklch"
                | "color"
                | "color-mix"
                | "light-dark"
                | "calc"
        )
    })
}

/// The picture of a background: none, an unknown one, or one colour.
fn picture(value: &str) -> Value {
    if !is_of_picture(value) {
        return Value::Inherit;
    }
    match of_gradient(value) {
        Some(Paint::Opaque(colour)) => Value::Colour(colour),
        Some(Paint::Transparent) => Value::Inherit,
        None => Value::Unknown,
    }
}

/// The colour of a shadow or an outline, by which letters may be visible that are not drawn. Of several, one distinct from the page.
fn outline(value: &str) -> Value {
    let is_no_length = |word: &&str| number(word).is_none();
    let colour = |word| match paint(word) {
        Some(Paint::Opaque(colour)) => Some(colour),
        _ => None,
    };
    let colours = || words(value).filter(is_no_length).filter_map(colour);
    let distinct = colours().find(|&colour| !alike(colour, PAGE)).or_else(|| colours().next());
    distinct.map_or(Value::Hides(true), Value::Colour)
}

/// Whether an outline has a width; without one it is not drawn.
fn has_width(value: &str) -> bool {
    words(&value.to_ascii_lowercase()).any(|word| {
        matches!(word, "thin" | "medium" | "thick") || length(word).is_some_and(|width| width > 0.0)
    })
}

/// The paint of letters with this colour.
pub(super) fn ink(text: &str) -> Value {
    match paint(text) {
        Some(Paint::Opaque(colour)) => Value::Colour(colour),
        Some(Paint::Transparent) => Value::Transparent,
        None => Value::Unknown,
    }
}

/// The background with this colour.
pub(super) fn backdrop(text: &str) -> Value {
    match paint(text) {
        Some(Paint::Opaque(colour)) => Value::Colour(colour),
        Some(Paint::Transparent) => Value::Inherit,
        None => Value::Unknown,
    }
}
