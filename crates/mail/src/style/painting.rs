// SPDX-License-Identifier: GPL-3.0-or-later
//! The paint of letters, and the background.

use super::cascade::{Slot, Value};
use super::colour::{Colour, HALF, PAGE, PLAIN_INK, Paint, alike, of_gradient, over, paint};
use super::flow::{FLAT, share};
use super::length::{AWAY, BLURRED, arguments, closing, functions, length, number, words};
use cssparser::color::parse_named_color;

pub(super) fn is_of_paint(name: &str) -> bool {
    matches!(
        name,
        "color"
            | "background"
            | "background-color"
            | "background-image"
            | "background-clip"
            | "background-size"
            | "background-repeat"
            | "box-shadow"
            | "mix-blend-mode"
            | "fill"
            | "fill-opacity"
            | "stroke"
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
        "color" if word("initial") => set(Slot::Colour, Value::Colour(PLAIN_INK)),
        "color" if is_invalid(value) => (),
        "color" => set(Slot::Colour, ink(value)),
        "-webkit-text-fill-color" if is_around => set(Slot::Fill, Value::Inherit),
        "-webkit-text-fill-color" if is_invalid(value) => (),
        "-webkit-text-fill-color" => set(Slot::Fill, ink(value)),
        "fill" => set(Slot::Drawn, fill(&value.to_ascii_lowercase())),
        "fill-opacity" => set(Slot::DrawnOpacity, share(number(value))),
        "stroke" => {
            set(Slot::Stroke, if is_none { Value::Hides(true) } else { outline(value) });
            set(Slot::StrokeWidth, Value::Hides(false));
        }
        "text-shadow" => set(Slot::Shadow, shadow(value)),
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
        // A broad one is like a background.
        "box-shadow" => set(Slot::InnerShadow, inner_shadow(value)),
        "mix-blend-mode" => {
            // Of all modes, these make white letters on white visible.
            let turns = word("difference") || word("exclusion");
            set(Slot::Blends, Value::Hides(turns));
        }
        "background-size" | "background-repeat" => set(Slot::PictureInPart, Value::Hides(is_of_part(value))),
        "background-image" => set(Slot::Picture, picture(value)),
        "background-color" if is_none => set(Slot::Background, Value::Inherit),
        "background-color" if word("currentcolor") => set(Slot::Background, Value::OfLetters),
        "background-color" if is_invalid(value) => (),
        "background-color" => set(Slot::Background, backdrop(value)),
        _ => {
            set(Slot::Picture, picture(value));
            let clips = words(value).any(|word| word.eq_ignore_ascii_case("text"));
            set(Slot::ClipsToText, Value::Hides(clips));
            let size = words(value).any(|word| word.starts_with('/') || word.ends_with('/'));
            set(Slot::PictureInPart, Value::Hides(size || words(value).any(is_of_part)));
            let behind = match words(value).find_map(paint) {
                _ if is_none => Value::Inherit,
                None if words(value).any(|word| word.eq_ignore_ascii_case("currentcolor")) => {
                    Value::OfLetters
                }
                Some(paint) => of_backdrop(paint),
                None if is_of_picture(value) => Value::Inherit,
                None => Value::Unknown,
            };
            set(Slot::Background, behind);
        }
    }
}

/// Functions whose value is a colour, or any value.
#[rustfmt::skip]
const COLOURS: [&str; 22] = ["rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab", "oklch", "ictcp", "color", "color-mix", "light-dark",
    "contrast-color", "color-contrast", "device-cmyk", "color-layers", "alpha", "var", "env", "attr", "if"];

/// Whether browsers ignore a value since it is no colour.
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
    let lower = value.trim().to_ascii_lowercase();
    if let Some((name, after)) = lower.split_once('(') {
        let end = closing(after).unwrap_or(after.len());
        let is_custom = name.starts_with('-') || after.contains("var(") || after.contains("env(");
        let is_one = after.len() <= end + 1;
        return !(is_custom || is_one && COLOURS.contains(&name) && has_channels(name, &after[..end]));
    }
    // Of browsers' own colours, most names end alike. Pages without a document type may omit the mark.
    let is_word = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let is_own = is_word(&lower) && (lower.starts_with('-') || OWN.iter().any(|end| lower.ends_with(end)));
    let is_old = lower.len() == 3 && lower.bytes().all(|b| b.is_ascii_digit());
    paint(value).is_none() && !is_own && !is_old && !matches!(&*lower, "initial" | "revert" | "revert-layer")
}

/// Whether the arguments of a colour's function may be its channels and an opacity.
fn has_channels(name: &str, list: &str) -> bool {
    let is_plain = matches!(name, "rgb" | "rgba" | "hsl" | "hsla" | "hwb");
    if !is_plain || list.contains('(') || list.trim_start().starts_with("from ") {
        return true;
    }
    let is_number =
        |part: &str| part == "none" || part.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let parts: Vec<&str> =
        list.split([',', '/', ' ', '\t', '\n', '\r']).filter(|part| !part.is_empty()).collect();
    let commas = list.matches(',').count();
    parts.iter().all(|part| is_number(part))
        && matches!(parts.len(), 3 | 4)
        && (commas == 0 || commas + 1 == parts.len())
}

/// Whether a size or a repetition may leave some of the background free.
fn is_of_part(value: &str) -> bool {
    let is_whole = |word: &str| {
        ["auto", "cover", "100%", "repeat", "round"].iter().any(|whole| word.eq_ignore_ascii_case(whole))
    };
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    words(value).any(|word| {
        !is_whole(word)
            && (is_number(word) || word.to_ascii_lowercase().ends_with("repeat") || word.contains("repeat-"))
    })
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
        Some(Paint::Partly(colour, opacity)) => Value::Partly(colour, opacity),
        Some(Paint::Transparent) => Value::Inherit,
        None => Value::Unknown,
    }
}

/// The colour of a shadow or an outline, by which letters may be visible that are not drawn. Of several, one distinct from the page.
fn outline(value: &str) -> Value {
    let is_no_length = |word: &&str| number(word).is_none();
    let colours = || words(value).filter(is_no_length).map(ink);
    let is_distinct = |ink: &Value| match *ink {
        Value::Colour(colour) => !alike(colour, PAGE),
        Value::Partly(colour, opacity) => !alike(over(colour, opacity, PAGE), PAGE),
        _ => false,
    };
    let is_known = |ink: &Value| matches!(ink, Value::Colour(_) | Value::Partly(..));
    colours().find(is_distinct).or_else(|| colours().find(is_known)).unwrap_or(Value::Hides(true))
}

/// The colour of a shadow of letters. One so blurred or far away that nobody reads it is none.
pub(super) fn shadow(value: &str) -> Value {
    let is_seen = |shadow: &&str| {
        let sides: Vec<f32> = words(shadow).filter_map(length).take(3).map(f32::abs).collect();
        sides.iter().all(|&side| side < AWAY) && sides.get(2).is_none_or(|&blur| blur < BLURRED)
    };
    outline(&arguments(value).filter(is_seen).collect::<Vec<_>>().join(" "))
}

/// The colour of a shadow within a box that covers more than its edges.
fn inner_shadow(value: &str) -> Value {
    let is_broad = |shadow: &&str| {
        words(shadow).any(|word| word.eq_ignore_ascii_case("inset"))
            && words(shadow).filter_map(length).any(|pixels| pixels.abs() >= FLAT)
    };
    match arguments(value).find(is_broad).map(|shadow| words(shadow).find_map(paint)) {
        Some(Some(Paint::Opaque(colour) | Paint::Partly(colour, _))) => Value::Partly(colour, HALF),
        Some(None) => Value::Unknown,
        _ => Value::Inherit,
    }
}

/// Whether an outline is wide enough to make its letter readable.
fn has_width(value: &str) -> bool {
    words(&value.to_ascii_lowercase()).any(|word| {
        matches!(word, "thin" | "medium" | "thick") || length(word).is_some_and(|width| width >= 0.25)
    })
}

/// The colour of letters in a drawing.
fn fill(value: &str) -> Value {
    match value {
        "none" => Value::Transparent,
        "inherit" | "unset" => Value::Inherit,
        _ => ink(value),
    }
}

/// The paint of letters with this colour.
pub(super) fn ink(text: &str) -> Value {
    match paint(text) {
        Some(Paint::Opaque(colour)) => Value::Colour(colour),
        Some(Paint::Partly(colour, opacity)) => Value::Partly(colour, opacity),
        Some(Paint::Transparent) => Value::Transparent,
        None => Value::Unknown,
    }
}

/// The colour of an attribute of old HTML (HTML standard, 2.3.6): any text but these names has one.
pub(super) fn legacy_colour(text: &str) -> Option<Colour> {
    let text = text.trim().to_ascii_lowercase();
    if text.is_empty() || text == "transparent" {
        return None;
    }
    if let Ok((red, green, blue)) = parse_named_color(&text) {
        return Some([red, green, blue]);
    }
    let digit = |c: char| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let short: Option<Vec<u8>> = text
        .strip_prefix('#')
        .filter(|digits| digits.len() == 3)
        .and_then(|d| d.chars().map(digit).collect());
    if let Some(&[red, green, blue]) = short.as_deref() {
        return Some([red, green, blue].map(|digit| digit * 17));
    }
    let starts_with_mark = text.starts_with('#');
    let zeros = |c: char| std::iter::repeat_n(digit(c).unwrap_or(0), if c > '\u{FFFF}' { 2 } else { 1 });
    let text = text.chars().flat_map(zeros).take(128);
    let mut digits: Vec<u8> = text.skip(usize::from(starts_with_mark)).collect();
    digits.resize(digits.len().max(1).next_multiple_of(3), 0);
    let third = digits.len() / 3;
    let parts = [0, 1, 2].map(|n| &digits[n * third + third.saturating_sub(8)..(n + 1) * third]);
    // Zeros that all three begin with do not count, and of the rest the first two digits do.
    let length = parts[0].len();
    let zeros =
        (0..length).take_while(|&at| at + 2 < length && parts.iter().all(|part| part[at] == 0)).count();
    Some(parts.map(|part| part[zeros..].iter().take(2).fold(0, |all, digit| all * 16 + digit)))
}

/// The background with this colour.
pub(super) fn backdrop(text: &str) -> Value {
    paint(text).map_or(Value::Unknown, of_backdrop)
}

const fn of_backdrop(paint: Paint) -> Value {
    match paint {
        Paint::Opaque(colour) => Value::Colour(colour),
        Paint::Partly(colour, opacity) => Value::Partly(colour, opacity),
        Paint::Transparent => Value::Inherit,
    }
}
