// SPDX-License-Identifier: GPL-3.0-or-later
//! Colours, as far as they hide text.

/// A colour's red, green and blue.
pub(crate) type Colour = [u8; 3];

/// The page, where nothing says otherwise.
pub(crate) const PAGE: Colour = [255; 3];

/// What is written where a colour stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Opaque(Colour),
    Transparent,
}

/// A colour by its digits or by one of the names that hide text.
pub(super) fn paint(text: &str) -> Option<Paint> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix('#') {
        return of_digits(digits);
    }
    if let Some((_, list)) = lower.split_once('(').filter(|(name, _)| matches!(*name, "rgb" | "rgba")) {
        return of_numbers(list);
    }
    let near_white = |name: &str| {
        ["snow", "ivory", "ghostwhite", "floralwhite", "mintcream", "whitesmoke"].contains(&name)
    };
    match &*lower {
        "transparent" => Some(Paint::Transparent),
        "black" => Some(Paint::Opaque([0; 3])),
        "white" => Some(Paint::Opaque(PAGE)),
        name if near_white(name) => Some(Paint::Opaque([250; 3])),
        // Old HTML leaves the mark out.
        digits if digits.len() == 6 => of_digits(digits),
        _ => None,
    }
}

/// Three or six digits, and one or two more for how opaque it is.
fn of_digits(digits: &str) -> Option<Paint> {
    let all: Vec<u8> =
        digits.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
    let bytes: Vec<u8> = match all.len() {
        3 | 4 => all.iter().map(|d| d * 17).collect(),
        6 | 8 => all.chunks(2).map(|d| d[0] << 4 | d[1]).collect(),
        _ => return None,
    };
    Some(if bytes.get(3) == Some(&0) {
        Paint::Transparent
    } else {
        Paint::Opaque([bytes[0], bytes[1], bytes[2]])
    })
}

/// The numbers of `rgb(...)`.
fn of_numbers(list: &str) -> Option<Paint> {
    let mut numbers = list.trim_end_matches(')').split([',', ' ', '/']).filter(|n| !n.is_empty());
    let mut next = || numbers.next()?.trim().parse::<u8>().ok();
    let colour = [next()?, next()?, next()?];
    let alpha = numbers.next().map(|alpha| alpha.trim_end_matches('%').parse::<f32>());
    Some(if matches!(alpha, Some(Ok(alpha)) if alpha < 0.05) {
        Paint::Transparent
    } else {
        Paint::Opaque(colour)
    })
}

/// Two colours that a reader does not tell apart.
pub(crate) fn alike(a: Colour, b: Colour) -> bool {
    // A step of 24 of 255 in one channel is a contrast of 1.2 at most, where 4.5 is asked of text (WCAG 1.4.3).
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 24)
}
