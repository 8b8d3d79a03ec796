// SPDX-License-Identifier: GPL-3.0-or-later
//! Colours, as far as they can hide text.

use super::length::{arguments, functions, number, words};
use cssparser::color::{parse_hash_color, parse_named_color};

/// A colour's red, green and blue.
pub(crate) type Colour = [u8; 3];

/// The default colour of the page.
pub(crate) const PAGE: Colour = [255; 3];

/// The default colour of letters.
pub(crate) const PLAIN_INK: Colour = [0; 3];

/// Opacity below which a colour is invisible.
pub(super) const FAINT: f32 = 0.05;

/// Opacity from which on a colour counts as opaque.
const DENSE: f32 = 0.9;

/// The opacity of paint that covers what is behind it more or less.
pub(super) const HALF: u8 = u8::MAX / 2;

/// Levels of `light-dark()`.
const MAX_DEPTH: usize = 8;

/// The paint that a colour value describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Opaque(Colour),
    /// With an opacity, of 255.
    Partly(Colour, u8),
    Transparent,
}

/// A colour by its digits, its name or a function (CSS Color Module Level 4).
pub(super) fn paint(text: &str) -> Option<Paint> {
    let lower = text.trim().to_ascii_lowercase();
    let mut text = &*lower;
    // The colour of a light page comes first.
    for _ in 0..MAX_DEPTH {
        let Some(list) = text.strip_prefix("light-dark(") else { break };
        text = arguments(without_end(list)).next()?;
    }
    if let Some((name, list)) = text.split_once('(') {
        let list = without_end(list).trim_start();
        return match list.strip_prefix("from ") {
            Some(origin) => of_origin(origin),
            None if name == "color-mix" => of_mixture(list),
            None => of_function(name, list),
        };
    }
    of_word(text)
}

/// A colour by its name or digits.
fn of_word(text: &str) -> Option<Paint> {
    if let Some(digits) = text.strip_prefix('#') {
        return of_digits(digits);
    }
    match text {
        "transparent" => Some(Paint::Transparent),
        // System colours of a light page.
        "canvas"
        | "window"
        | "field"
        | "menu"
        | "infobackground"
        | "highlighttext"
        | "accentcolortext"
        | "-moz-default-background-color" => Some(Paint::Opaque(PAGE)),
        "canvastext" | "windowtext" | "fieldtext" | "menutext" | "infotext" | "buttontext" => {
            Some(Paint::Opaque([0; 3]))
        }
        name => match parse_named_color(name) {
            Ok((red, green, blue)) => Some(Paint::Opaque([red, green, blue])),
            // Old HTML omits the mark.
            Err(()) => of_digits(name).filter(|_| name.len() == 6),
        },
    }
}

/// A function's arguments, which may lack the parenthesis at the end.
fn without_end(list: &str) -> &str {
    list.strip_suffix(')').unwrap_or(list)
}

/// Three or six digits, and one or two more for opacity.
fn of_digits(digits: &str) -> Option<Paint> {
    let (red, green, blue, alpha) = parse_hash_color(digits.as_bytes()).ok()?;
    Some(with_opacity([red, green, blue], alpha))
}

/// A colour with an opacity, up to 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn with_opacity(colour: Colour, opacity: f32) -> Paint {
    if opacity < FAINT {
        Paint::Transparent
    } else if opacity >= DENSE {
        Paint::Opaque(colour)
    } else {
        Paint::Partly(colour, (opacity.clamp(0.0, 1.0) * 255.0).round() as u8)
    }
}

/// A colour made of another one, if only the opacity differs.
fn of_origin(text: &str) -> Option<Paint> {
    let (channels, opacity) = text.split_once('/').unwrap_or((text, "1"));
    let mut all = channels.split_ascii_whitespace();
    let origin = of_word(all.next()?)?;
    let is_same = all.all(|channel| channel.len() == 1 && channel.bytes().all(|b| b"rgbhslwc".contains(&b)));
    let opacity = number(opacity).filter(|_| is_same)?;
    match origin {
        Paint::Opaque(colour) => Some(with_opacity(colour, opacity)),
        _ => None,
    }
}

/// A mixture of two colours of which one is nearly nothing, or which are alike.
fn of_mixture(list: &str) -> Option<Paint> {
    let mut shares = arguments(list).skip(1).map(|part| {
        let share = words(part).find(|word| word.ends_with('%')).map(number);
        Some((words(part).find_map(of_word)?, share))
    });
    let ((first, share), (second, other)) = (shares.next()??, shares.next()??);
    let share = match (share, other) {
        (None, None) => 0.5,
        (Some(share), None) => share?,
        (None, Some(other)) => 1.0 - other?,
        (Some(share), Some(other)) => share? / (share? + other?),
    };
    match (first, second) {
        (Paint::Opaque(a), Paint::Opaque(b)) if share >= DENSE || alike(a, b) => Some(Paint::Opaque(a)),
        (_, Paint::Opaque(b)) if share <= 1.0 - DENSE => Some(Paint::Opaque(b)),
        (Paint::Transparent, Paint::Transparent) => Some(Paint::Transparent),
        (Paint::Opaque(colour), Paint::Transparent) => Some(with_opacity(colour, share)),
        (Paint::Transparent, Paint::Opaque(colour)) => Some(with_opacity(colour, 1.0 - share)),
        _ => None,
    }
}

/// A translucent colour in front of another one.
pub(crate) fn over(colour: Colour, opacity: u8, behind: Colour) -> Colour {
    let mix = |front: u8, back: u8| {
        let sum = u32::from(front) * u32::from(opacity) + u32::from(back) * u32::from(255 - opacity);
        u8::try_from(sum / 255).unwrap_or(u8::MAX)
    };
    [0, 1, 2].map(|at| mix(colour[at], behind[at]))
}

fn of_function(name: &str, list: &str) -> Option<Paint> {
    // In `color()`, the colour space comes first.
    let list = if name == "color" { list.trim_start().split_once(' ')?.1 } else { list };
    let mut numbers = list.split([',', ' ', '/', '\t', '\n', '\r']).filter(|n| !n.is_empty());
    let mut next = || numbers.next();
    let (first, second, third) = (next()?, next()?, next()?);
    let opacity = next().and_then(number).unwrap_or(1.0);
    if opacity < FAINT {
        return Some(Paint::Transparent);
    }
    // A channel as a share of its maximum.
    let share = |text: &str, whole: f32| {
        if text == "none" {
            return Some(0.0);
        }
        number(text).map(|n| if text.ends_with('%') { n } else { n / whole })
    };
    let colour = match name {
        "rgb" | "rgba" => [share(first, 255.0)?, share(second, 255.0)?, share(third, 255.0)?],
        "color" => [share(first, 1.0)?, share(second, 1.0)?, share(third, 1.0)?],
        "hsl" | "hsla" => of_hue(hue(first)?, share(second, 100.0)?, share(third, 100.0)?),
        "hwb" => {
            let (white, black) = (share(second, 100.0)?, share(third, 100.0)?);
            let whole = (white + black).max(1.0);
            of_hue(hue(first)?, 1.0, 0.5).map(|c| c * (1.0 - (white + black) / whole) + white / whole)
        }
        "lab" | "lch" => grey(share(first, 100.0)?, second, third, 8.0, name == "lch")?,
        "oklab" | "oklch" => grey(share(first, 1.0)?, second, third, 0.03, name == "oklch")?,
        _ => return None,
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    Some(with_opacity(colour.map(|c| (c.clamp(0.0, 1.0) * 255.0).round() as u8), opacity))
}

/// A white, black or grey colour in a space of lightness and two axes, or of chroma and hue; `None` for other colours. Extreme lightness is
/// white or black in any hue.
fn grey(light: f32, second: &str, third: &str, little: f32, is_polar: bool) -> Option<[f32; 3]> {
    let is_small = |text: &str| number(text).is_some_and(|n| n.abs() <= little);
    let is_grey = is_small(second) && (is_polar || is_small(third));
    (is_grey || light >= 0.995 || light <= 0.005).then_some([light; 3])
}

/// An angle as a share of a turn.
fn hue(text: &str) -> Option<f32> {
    let units = [("deg", 360.0), ("grad", 400.0), ("rad", std::f32::consts::TAU), ("turn", 1.0), ("", 360.0)];
    let (text, whole) =
        units.into_iter().find_map(|(unit, whole)| Some((text.strip_suffix(unit)?, whole)))?;
    Some((text.parse::<f32>().ok()? / whole).rem_euclid(1.0))
}

/// Hue, saturation and lightness as red, green and blue (CSS Color Module Level 4, 7.1).
fn of_hue(hue: f32, saturation: f32, light: f32) -> [f32; 3] {
    let (saturation, light) = (saturation.clamp(0.0, 1.0), light.clamp(0.0, 1.0));
    [0.0, 8.0, 4.0].map(|n| {
        let k = (n + hue * 12.0) % 12.0;
        light - saturation * light.min(1.0 - light) * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)
    })
}

/// The common colour of all stops of the first gradient in a value, which may be more or less opaque.
pub(super) fn of_gradient(value: &str) -> Option<Paint> {
    let lower = value.to_ascii_lowercase();
    let (_, list) = functions(&lower).find(|(name, _)| name.ends_with("-gradient"))?;
    let mut all = None;
    for (at, stop) in arguments(list).enumerate() {
        // One or two positions may follow the colour of a stop.
        let colour = words(stop).next().and_then(paint);
        if at == 0 && colour.is_none() {
            // The direction.
            continue;
        }
        let colour = colour?;
        all = Some(match (all, colour) {
            (None, _) | (Some(Paint::Transparent), Paint::Transparent) => colour,
            (Some(Paint::Opaque(a)), Paint::Opaque(b)) if alike(a, b) => colour,
            (Some(Paint::Opaque(a) | Paint::Partly(a, _)), Paint::Opaque(b) | Paint::Partly(b, _)) => {
                alike(a, b).then_some(Paint::Partly(a, HALF))?
            }
            (Some(Paint::Opaque(a) | Paint::Partly(a, _)), Paint::Transparent)
            | (Some(Paint::Transparent), Paint::Opaque(a) | Paint::Partly(a, _)) => Paint::Partly(a, HALF),
        });
    }
    all
}

/// Whether a reader cannot distinguish two colours.
pub(crate) fn alike(a: Colour, b: Colour) -> bool {
    // A step of 24 of 255 in one channel is a contrast of 1.2 at most; WCAG 1.4.3 requires 4.5 for text.
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_has_many_names() {
        for white in [
            "#fff",
            "WHITE",
            "ffffff",
            "azure",
            "rgb(255, 255,255)",
            "rgb(100% 100% 100% / 1)",
            "rgba(255,255,255,.9)",
            "hsl(0,0%,100%)",
            "hsl(120deg 40% 100%)",
            "hwb(90 100% 0%)",
            "lab(100 0 0)",
            "oklch(1 0 none)",
            "lch(100% 20 40)",
            "rgb(from white r g b)",
            "color-mix(in srgb, white 95%, black)",
            "color-mix(in lab, #fff, snow)",
            "HighlightText",
            "color(srgb 1 1 1)",
            "light-dark(#fff, #000)",
            "light-dark(light-dark(white, red), #000)",
            "canvas",
        ] {
            let found = paint(white);
            assert!(matches!(found, Some(Paint::Opaque(colour)) if alike(colour, PAGE)), "{white} {found:?}");
        }
        for (other, expected) in [
            ("hsl(0,100%,50%)", Some([255, 0, 0])),
            ("hsl(.5turn 100% 50%)", Some([0, 255, 255])),
            ("hwb(120 0% 0%)", Some([0, 255, 0])),
            ("hotpink", Some([255, 105, 180])),
            ("color-mix(in srgb, red, blue)", None),
            ("color-mix(in srgb, red)", None),
            ("rgb(from white 0 g b)", None),
            ("lab(50 60 60)", None),
            ("rgb(", None),
            ("hsl(a b c)", None),
            ("#ff", None),
            ("purple2", None),
        ] {
            assert_eq!(paint(other), expected.map(Paint::Opaque), "{other}");
        }
        assert_eq!(paint("rgb(1 2 3 / 50%)"), Some(Paint::Partly([1, 2, 3], 128)));
        assert_eq!(over([0; 3], 128, [255; 3]), [127; 3]);
        for transparent in [
            "color-mix(in srgb, red, transparent 99%)",
            "rgb(from red r g b / 0)",
            "transparent",
            "#0000",
            "rgb(1 2 3 / 0%)",
            "hsla(0,0%,0%,0)",
            "#ffffff00",
        ] {
            assert_eq!(paint(transparent), Some(Paint::Transparent), "{transparent}");
        }
    }

    #[test]
    fn a_gradient_may_be_one_colour() {
        let white = Some(Paint::Opaque(PAGE));
        for (gradient, expected) in [
            ("linear-gradient(#fff,#fff)", white),
            ("LINEAR-gradient(to right, white 0%, rgb(255, 255, 255) 50% 100%)", white),
            ("radial-gradient(circle, transparent, #fff0)", Some(Paint::Transparent)),
            ("linear-gradient(#fff,#000)", None),
            ("linear-gradient(#fff,x)", None),
            ("url(x)", None),
            ("linear-gradient(", None),
        ] {
            assert_eq!(of_gradient(gradient), expected, "{gradient}");
        }
    }
}
