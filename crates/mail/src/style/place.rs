// SPDX-License-Identifier: GPL-3.0-or-later
//! The properties of size and place that may hide text, and their effects.

use super::cascade::{Slot, Value};
use super::colour::FAINT;
use super::flow::{
    FLAT, breaks_nowhere, extent, height_of_lines, heights, in_64ths, is_high, lines_of_font, share,
};
use super::length::{BLURRED, PLAIN, functions, length, number, words};
use super::painting::shadow;
use super::shape::{clips_all, cuts_all, scale_of, transformed, turns_edge_on};
use super::sides::{leaves, sides};

#[rustfmt::skip]
pub(super) fn is_of_place(name: &str) -> bool {
    matches!(name, "display" | "visibility" | "opacity" | "height" | "max-height" | "min-height" | "width" | "max-width" | "min-width" | "line-height" | "overflow"
        | "overflow-x" | "overflow-y" | "position" | "float" | "text-align" | "left" | "right" | "top" | "bottom" | "text-indent" | "margin"
        | "margin-left" | "margin-top" | "clip" | "clip-path" | "transform" | "font" | "font-size" | "letter-spacing"
        | "block-size" | "max-block-size" | "min-block-size" | "inline-size" | "max-inline-size" | "min-inline-size" | "overflow-block" | "overflow-inline" | "inset"
        | "inset-inline" | "inset-block" | "inset-inline-start" | "inset-inline-end" | "inset-block-start" | "inset-block-end"
        | "padding" | "padding-left" | "padding-inline" | "padding-inline-start" | "padding-bottom" | "padding-block" | "padding-block-end"
        | "margin-inline" | "margin-inline-start" | "margin-block" | "margin-block-start" | "translate" | "scale" | "rotate"
        | "zoom" | "filter" | "-webkit-filter" | "backdrop-filter" | "-webkit-backdrop-filter" | "-webkit-clip-path" | "-webkit-transform"
        | "flex" | "flex-basis" | "flex-grow" | "-webkit-flex" | "flex-direction" | "flex-flow" | "-webkit-flex-direction" | "-webkit-flex-flow" | "order" | "-webkit-order"
        | "margin-bottom" | "margin-block-end" | "padding-top" | "padding-block-start" | "white-space" | "text-wrap" | "text-wrap-mode"
        | "writing-mode" | "columns" | "column-count" | "column-width" | "align-content" | "contain" | "content-visibility" | "z-index" | "direction" | "unicode-bidi")
}

/// Whether browsers accept such a value; they ignore declarations with invalid ones. A value that depends on others counts as valid.
pub(super) fn is_valid(name: &str, value: &str) -> bool {
    let is_of_all = matches!(value, "inherit" | "initial" | "unset" | "revert" | "revert-layer");
    let known: Option<&[&str]> = match name {
        "transform" | "-webkit-transform" => Some(&MOVES),
        "filter" | "-webkit-filter" => Some(&FILTERS),
        "clip-path" | "-webkit-clip-path" => Some(&SHAPES),
        _ => None,
    };
    if let Some(known) = known {
        let depends = || ["var(", "env(", "attr(", "if("].iter().any(|function| value.contains(function));
        return is_of_all || is_list(value, known) || depends();
    }
    is_of_all
        || value.contains('(')
        || match name {
            "font" => is_font(value),
            "display" => words(value).all(|word| DISPLAYS.contains(&word)) && !value.is_empty(),
            "visibility" => matches!(value, "visible" | "hidden" | "collapse"),
            "opacity" | "zoom" => number(value).is_some() || name == "zoom" && value == "normal",
            "position" => {
                matches!(value, "static" | "relative" | "absolute" | "fixed" | "sticky" | "-webkit-sticky")
            }
            "float" => matches!(value, "left" | "right" | "none" | "inline-start" | "inline-end"),
            "direction" => matches!(value, "ltr" | "rtl"),
            _ if name.starts_with("overflow") => {
                let is_one =
                    |word| matches!(word, "visible" | "hidden" | "clip" | "scroll" | "auto" | "overlay");
                words(value).all(is_one)
            }
            // These begin with a number or a word; in old pages a number alone is a length.
            "height" | "max-height" | "width" | "max-width" | "font-size" | "text-indent" | "left"
            | "right" | "top" | "bottom" | "line-height" | "letter-spacing" => is_measure(value),
            _ => true,
        }
}

/// Functions and words of lists of them.
#[rustfmt::skip]
const MOVES: [&str; 22] = ["none", "matrix", "matrix3d", "translate", "translatex", "translatey", "translatez", "translate3d", "scale", "scalex",
    "scaley", "scalez", "scale3d", "rotate", "rotatex", "rotatey", "rotatez", "rotate3d", "skew", "skewx", "skewy", "perspective"];
#[rustfmt::skip]
const FILTERS: [&str; 12] = ["none", "blur", "brightness", "contrast", "drop-shadow", "grayscale", "hue-rotate", "invert", "opacity", "saturate",
    "sepia", "url"];
#[rustfmt::skip]
const SHAPES: [&str; 18] = ["none", "inset", "circle", "ellipse", "polygon", "path", "rect", "xywh", "shape", "url", "border-box", "padding-box",
    "content-box", "margin-box", "fill-box", "stroke-box", "view-box", "text"];

/// Whether each word of a value begins with one of these.
fn is_list(value: &str, known: &[&str]) -> bool {
    let mut all = words(value).map(|word| word.split('(').next().unwrap_or(word)).peekable();
    all.peek().is_some() && all.all(|word| known.contains(&word))
}

/// Whether a `font` has a size and a family behind it, or is one of a browser.
fn is_font(value: &str) -> bool {
    let mut words = words(value).map(|word| word.split('/').next().unwrap_or(word));
    // A number alone is a weight.
    let is_size = |word: &str| {
        let is_word = matches!(word, "normal" | "none" | "auto") || word.starts_with('-');
        word == "0" || is_measure(word) && word.parse::<f32>().is_err() && !is_word
    };
    if !words.any(is_size) {
        return matches!(value, "caption" | "icon" | "menu" | "message-box" | "small-caption" | "status-bar");
    }
    words.any(|word| word.starts_with(|c: char| !c.is_ascii_digit() && c != '.'))
}

/// Words of a `display`.
#[rustfmt::skip]
const DISPLAYS: [&str; 36] = ["none", "contents", "block", "inline", "flow", "flow-root", "table", "flex", "grid", "ruby", "math",
    "list-item", "inline-block", "inline-table", "inline-flex", "inline-grid", "inline-list-item", "table-row-group", "table-header-group",
    "table-footer-group", "table-row", "table-cell", "table-column-group", "table-column", "table-caption", "ruby-base", "ruby-text",
    "ruby-base-container", "ruby-text-container", "block-ruby", "grid-lanes", "inline-grid-lanes", "-webkit-box",
    "-webkit-inline-box", "-webkit-flex", "-webkit-inline-flex"];

/// Keywords for a length.
#[rustfmt::skip]
const MEASURES: [&str; 20] = ["auto", "none", "normal", "content", "contain", "stretch", "min-content", "max-content", "fit-content", "xx-small",
    "x-small", "small", "medium", "large", "x-large", "xx-large", "xxx-large", "larger", "smaller", "math"];

/// Whether a value has a length, a percentage, or a keyword for one.
fn is_measure(value: &str) -> bool {
    words(value).any(|word| {
        let is_of_vendor = word.starts_with('-') && word[1..].starts_with(|c: char| c.is_ascii_alphabetic());
        let is_share = || word.strip_suffix('%').is_some_and(|share| number(share).is_some());
        is_of_vendor || MEASURES.contains(&word) || length(word).is_some() || is_share()
    })
}

/// Size and place. The value is in small letters.
pub(super) fn places(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    if !is_valid(name, value) {
        return;
    }
    match name {
        "display" => displays(value, set),
        "visibility" => set(
            Slot::Invisible,
            match value {
                "hidden" | "collapse" => Value::Hides(true),
                "inherit" | "unset" => Value::Inherit,
                _ => Value::Hides(false),
            },
        ),
        "opacity" => set(Slot::Faint, share(number(value))),
        "height" | "block-size" => set(Slot::Height, heights(value)),
        "max-height" | "max-block-size" => set(Slot::MaxHeight, heights(value)),
        "min-height" | "min-block-size" => set(Slot::MinHeight, is_high(value)),
        "min-width" | "min-inline-size" => set(Slot::MinWidth, is_high(value)),
        "width" | "inline-size" => set(Slot::Width, extent(value, FLAT)),
        "max-width" | "max-inline-size" => set(Slot::MaxWidth, extent(value, FLAT)),
        "line-height" => set(Slot::LineHeight, height_of_lines(value)),
        "white-space" | "text-wrap" | "text-wrap-mode" => set(Slot::NoWrap, breaks_nowhere(value)),
        "writing-mode" => set(Slot::OtherFlow, unless(value, "horizontal-tb")),
        "columns" | "column-count" | "column-width" => set(Slot::OtherFlow, unless(value, "auto")),
        "align-content" => set(Slot::OtherFlow, unless(value, "normal")),
        "position" | "float" | "text-align" | "direction" | "unicode-bidi" => flows(name, value, set),
        "clip" => set(Slot::Clip, Value::Hides(clips_all(value))),
        "font" | "font-size" => {
            set(Slot::FontSize, letters(name, value));
            if name == "font" {
                set(Slot::LineHeight, lines_of_font(value));
            }
        }
        "letter-spacing" => set(
            Slot::LetterSpacing,
            match value {
                "inherit" | "unset" => Value::Inherit,
                _ => letter_spacing(value),
            },
        ),
        _ if name.contains("flex") || name.ends_with("order") => orders(name, value, set),
        _ if name.starts_with("overflow") => overflows(name, value, set),
        _ if ["margin", "padding", "inset"].into_iter().any(|start| name.starts_with(start)) => {
            sides(name, value, set)
        }
        "left" | "right" | "top" | "bottom" => sides(name, value, set),
        _ => transforms(name, value, set),
    }
}

/// By how much letters are closer together than usual, in 64ths of a pixel or, as a second number, of their size.
#[allow(clippy::cast_possible_truncation, reason = "clamped")]
fn letter_spacing(value: &str) -> Value {
    let in_64ths = |number: f32| (number.clamp(-100.0, 0.0) * 64.0).round() as i16;
    match (value.strip_suffix("em").filter(|n| !n.ends_with('r')).map(str::parse), length(value)) {
        (Some(Ok(times)), _) if in_64ths(times) < 0 => Value::By(0, in_64ths(times)),
        (None, Some(pixels)) if in_64ths(pixels) < 0 => Value::By(in_64ths(pixels), 0),
        _ => Value::Hides(false),
    }
}

/// The kind of a box.
fn displays(value: &str, set: &mut dyn FnMut(Slot, Value)) {
    // Table columns have no content.
    let is_none = matches!(value, "none" | "table-column" | "table-column-group");
    set(Slot::NotDisplayed, Value::Hides(is_none));
    set(Slot::Block, Value::Hides(is_block(value)));
    set(Slot::OfContents, Value::Hides(value == "contents"));
    set(Slot::Parts, parts_words(value));
    set(Slot::LaysOut, Value::Hides(lays_out(value)));
}

/// Whether content is cut off that overflows a box.
fn overflows(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    if !matches!(name, "overflow-x" | "overflow-inline") {
        set(Slot::Cuts, Value::Hides(words(value).all(|word| matches!(word, "hidden" | "clip"))));
    }
    // That leaves what overflows below visible, or cut by an earlier declaration.
    if (name, value) != ("overflow-x", "clip") {
        let is_clip = |word| matches!(word, "hidden" | "clip" | "scroll" | "auto" | "overlay");
        set(Slot::Clips, Value::Hides(value != "clip visible" && words(value).any(is_clip)));
    }
}

/// The place of a box among others, and the direction of its text.
fn flows(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    match name {
        "position" => {
            // A sticky box never leaves the box around it.
            set(Slot::Moved, Value::Hides(matches!(value, "absolute" | "fixed" | "relative")));
            set(Slot::Fixed, Value::Hides(value == "fixed"));
            set(Slot::OutOfFlow, Value::Hides(matches!(value, "absolute" | "fixed")));
        }
        "text-align" => {
            set(
                Slot::AlignsRight,
                Value::Hides(matches!(value, "right" | "end" | "-webkit-right" | "-moz-right")),
            );
        }
        "float" => {
            set(Slot::Float, Value::Hides(matches!(value, "left" | "right" | "inline-start" | "inline-end")));
        }
        "direction" if matches!(value, "ltr" | "rtl") => set(Slot::RightToLeft, Value::Hides(value == "rtl")),
        "direction" => set(Slot::RightToLeft, Value::Inherit),
        _ => {
            set(Slot::Override, Value::Hides(value.ends_with("bidi-override") || value == "isolate-override"))
        }
    }
}

/// A value other than the usual one.
fn unless(value: &str, usual: &str) -> Value {
    if matches!(value, "initial" | "unset" | "inherit") || value == usual {
        Value::Inherit
    } else {
        Value::Hides(true)
    }
}

/// The order of boxes.
fn orders(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let zero = |basis: &str| length(basis).is_some_and(|pixels| pixels < FLAT);
    if name == "flex-basis" {
        set(Slot::FlexBasis, Value::Hides(zero(value)));
    } else if name == "flex-grow" {
        set(Slot::FlexGrow, Value::Hides(number(value) != Some(0.0)));
    } else if name.ends_with("flex") {
        let all: Vec<&str> = words(value).take(3).collect();
        let grow = all.first().and_then(|word| number(word)).filter(|_| !value.contains("auto"));
        let basis =
            all.iter().find(|word| number(word).is_none() || word.ends_with('%')).or_else(|| all.get(2));
        set(Slot::FlexBasis, Value::Hides(grow.is_some() && basis.is_none_or(|basis| zero(basis))));
        set(Slot::FlexGrow, Value::Hides(grow != Some(0.0)));
    } else if name.contains("flex") {
        let is_reversed = words(value).any(|word| matches!(word, "row-reverse" | "column-reverse"));
        set(Slot::Reversed, Value::Hides(is_reversed));
    } else if let Ok(number) = value.parse::<i64>() {
        // Numbers with too many digits are clamped.
        let number = number.clamp(i64::from(i16::MIN), i64::from(i16::MAX));
        set(Slot::Order, Value::Number(i16::try_from(number).unwrap_or(0)));
    }
}

/// Properties that move a box like a picture, or make it small or faint.
fn transforms(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    match name {
        "text-indent" => {
            let is_around = matches!(value, "inherit" | "unset" | "revert" | "revert-layer");
            set(Slot::Indent, if is_around { Value::Inherit } else { leaves(value) });
            // By the width of its box, which hides it if the box clips.
            let is_out = value.strip_suffix('%').and_then(number).is_some_and(|share| share >= 100.0);
            set(Slot::IndentOut, Value::Hides(is_out));
        }
        "clip-path" | "-webkit-clip-path" => set(Slot::ClipPath, Value::Hides(cuts_all(value))),
        "translate" => {
            let by = |at: usize| words(value).nth(at).and_then(length).unwrap_or(0.0);
            let down = if words(value).nth(1).is_some_and(|by| by.ends_with('%')) { 0.0 } else { by(1) };
            set(Slot::Translate, if value == "none" { Value::Inherit } else { moved([by(0), down]) });
        }
        "scale" => {
            let factors = words(value).take(2).filter_map(number).map(f32::abs);
            set(Slot::Scale, share(factors.reduce(f32::min)));
        }
        "rotate" => set(Slot::Rotate, Value::Hides(turns_edge_on(value))),
        // 0 has no effect.
        "zoom" => set(Slot::Zoom, share(number(value).filter(|&factor| factor > 0.0))),
        "filter" | "-webkit-filter" => {
            let filters = Value::Hides(functions(value).any(filters_all));
            if turns_colours(value) {
                set(Slot::Picture, Value::Unknown);
            }
            for (_, list) in functions(value).filter(|(name, _)| *name == "drop-shadow") {
                set(Slot::Shadow, shadow(list));
            }
            set(Slot::Filter, if value == "none" { Value::Inherit } else { filters });
        }
        "backdrop-filter" | "-webkit-backdrop-filter" => {
            if turns_colours(value) {
                set(Slot::Picture, Value::Unknown);
            }
        }
        "contain" => {
            let is_cut = words(value).any(|word| matches!(word, "paint" | "strict" | "content"));
            set(Slot::Contains, Value::Hides(is_cut));
            let is_sized = words(value).any(|word| matches!(word, "size" | "strict"));
            set(Slot::Sized, Value::Hides(is_sized));
        }
        "content-visibility" => set(Slot::ContentHidden, Value::Hides(value == "hidden")),
        "z-index" => {
            let level = value.parse::<i32>().ok();
            set(Slot::Behind, Value::Hides(level.is_some_and(|level| level < 0)));
            set(Slot::Layer, Value::Hides(level.is_some()));
        }
        _ => {
            let moved = transformed(value).map_or(Value::Hides(true), moved);
            set(Slot::Transform, if value == "none" { Value::Inherit } else { moved });
            set(Slot::Shrinks, share(Some(functions(value).map(scale_of).product())));
        }
    }
}

/// By how many pixels a box is moved to the right, and down.
#[allow(clippy::cast_possible_truncation, reason = "clamped")]
fn moved(by: [f32; 2]) -> Value {
    let [x, y] = by.map(|by| by.clamp(-30000.0, 30000.0).round() as i16);
    Value::By(x, y)
}

/// Whether the side of a replaced element that an attribute states takes nearly no place.
pub(super) fn is_small(side: &str) -> Value {
    let pixels = side.strip_suffix("px").unwrap_or(side).trim_end().parse::<f32>();
    Value::Hides(pixels.is_ok_and(|pixels| pixels < 2.0))
}

/// Whether words end at the edges of boxes with this `display`; for boxes in a line, the element decides.
fn parts_words(display: &str) -> Value {
    match display {
        "inline" | "contents" | "initial" | "unset" => Value::Hides(false),
        "inherit" | "revert" | "revert-layer" => Value::Inherit,
        _ if display.contains(['(', ' ']) || display.contains("inline") || display.contains("ruby") => {
            Value::Inherit
        }
        _ => Value::Hides(true),
    }
}

fn lays_out(display: &str) -> bool {
    display.split_ascii_whitespace().any(|word| word.ends_with("flex") || word.ends_with("grid"))
}

fn is_block(display: &str) -> bool {
    display.split_ascii_whitespace().any(|word| {
        matches!(
            word,
            "block"
                | "inline-block"
                | "flex"
                | "inline-flex"
                | "grid"
                | "inline-grid"
                | "list-item"
                | "flow-root"
        )
    })
}

/// Whether a `filter` makes black or white another colour, so that the colours that a reader sees are unknown.
fn turns_colours(value: &str) -> bool {
    let mut ends = [0.0_f32, 1.0];
    for (name, list) in functions(value) {
        let by = number(list).unwrap_or(1.0);
        let turned = |light: f32| match name {
            "brightness" => light * by,
            "contrast" => (light - 0.5).mul_add(by, 0.5),
            "invert" => light + by * (1.0 - 2.0 * light),
            _ => light,
        };
        ends = ends.map(|light| turned(light).clamp(0.0, 1.0));
        if name == "url" {
            return true;
        }
    }
    ends[0] > 0.1 || ends[1] < 0.9
}

/// Whether a function of a `filter` hides all.
fn filters_all((name, argument): (&str, &str)) -> bool {
    match name {
        "opacity" => number(argument).is_some_and(|opacity| opacity < FAINT),
        "blur" => length(argument).is_some_and(|radius| radius >= BLURRED),
        _ => false,
    }
}

/// The size of letters by `font-size` or `font`, in 64ths of a pixel or of the outer size.
fn letters(property: &str, value: &str) -> Value {
    let sizes =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '.') || word.contains('(');
    let size = match property {
        // "italic 12px/14px Arial"; a weight such as 700 is no length, as it has no unit.
        "font" => words(value)
            .map(|word| if word.contains('(') { word } else { word.split('/').next().unwrap_or(word) })
            .filter(sizes)
            .find(|word| *word == "0" || !word.bytes().all(|b| b.is_ascii_digit()))
            .unwrap_or(""),
        _ => value,
    };
    let part = size
        .strip_suffix('%')
        .map(|n| (n, 100.0))
        .or_else(|| size.strip_suffix("em").filter(|n| !n.ends_with('r')).map(|n| (n, 1.0)));
    if let Some((number, whole)) = part {
        return number.parse::<f32>().map_or(Value::Inherit, |number| Value::Times(in_64ths(number / whole)));
    }
    match size {
        "inherit" | "unset" => Value::Inherit,
        "larger" => Value::Times(77),
        "smaller" => Value::Times(53),
        _ => Value::Size(length(size).map_or(PLAIN, in_64ths)),
    }
}

/// The size of letters by `<font size>` (HTML standard, 15.3.1): 1 to 7, or by how much more or less than 3.
pub(super) fn legacy_size(value: &str) -> Option<Value> {
    const PIXELS: [u32; 7] = [10, 13, 16, 18, 24, 32, 48];
    let (sign, digits) = match value.as_bytes().first()? {
        b'+' => (1, &value[1..]),
        b'-' => (-1, &value[1..]),
        _ => (0, value),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: i32 = digits[..end.min(4)].parse().ok()?;
    let size = if sign == 0 { number } else { 3 + sign * number };
    let pixels = usize::try_from(size.clamp(1, 7) - 1).ok().and_then(|at| PIXELS.get(at))?;
    Some(Value::Size(pixels * 64))
}
