// SPDX-License-Identifier: GPL-3.0-or-later
//! The paint of letters, and the background.

use super::cascade::{Slot, Value};
use super::colour::{PAGE, Paint, alike, of_gradient, paint};
use super::length::{functions, number, words};

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
        "text-shadow" => set(Slot::Shadow, Value::Hides(!draws(value))),
        "-webkit-text-stroke" | "-webkit-text-stroke-color" => {
            set(Slot::Stroke, Value::Hides(!draws(value)));
        }
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

/// Whether a shadow or an outline makes undrawn letters visible: one in a colour distinct from the page.
fn draws(value: &str) -> bool {
    let is_no_length = |word: &&str| number(word).is_none();
    let mut colours = words(value).filter(is_no_length).filter_map(paint);
    colours.any(|colour| matches!(colour, Paint::Opaque(colour) if !alike(colour, PAGE)))
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
