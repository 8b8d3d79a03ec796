// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether the attributes of an element keep its text from being seen.
//!
//! Only what stands at the element itself is read; rules of a style sheet are not.

use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

/// A colour's red, green and blue.
pub(super) type Colour = [u8; 3];

const WHITE: Colour = [255; 3];

/// What the attributes of one element say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// It takes no place, or none where anybody looks.
    pub(super) hidden: bool,
    /// Its letters are too small to read, or have a size that can be read.
    pub(super) tiny: Option<bool>,
    pub(super) colour: Option<Colour>,
    /// The colour behind it; `Some(None)` where that cannot be told.
    pub(super) background: Option<Option<Colour>>,
}

impl Style {
    /// Reads the attributes of a start tag.
    pub(super) fn of(tag: &Tag) -> Self {
        let mut style = Self::default();
        for attribute in &tag.attrs {
            let value = attribute.value.trim();
            match attribute.name.local {
                local_name!("style") => style.read(value),
                local_name!("hidden") => style.hidden = true,
                local_name!("color") if tag.name == local_name!("font") => style.colour = colour(value),
                local_name!("text") if tag.name == local_name!("body") => style.colour = colour(value),
                local_name!("bgcolor") => style.background = Some(colour(value)),
                local_name!("background") => style.background = Some(None),
                _ => (),
            }
        }
        style
    }

    /// Reads a `style` attribute: declarations with semicolons between them.
    fn read(&mut self, text: &str) {
        for declaration in text.split(';') {
            let Some((property, value)) = declaration.split_once(':') else { continue };
            let (property, value) = (property.trim(), value.trim());
            let value = value.strip_suffix("!important").unwrap_or(value).trim_end();
            let is = |name: &str| property.eq_ignore_ascii_case(name);
            let has = |word: &str| value.eq_ignore_ascii_case(word);
            if is("display") {
                self.hidden |= has("none");
            } else if is("visibility") {
                self.hidden |= has("hidden") || has("collapse");
            } else if is("mso-hide") {
                self.hidden |= has("all");
            } else if is("opacity") {
                self.hidden |= value.parse::<f32>().is_ok_and(|opacity| opacity < 0.05);
            } else if is("max-height") || is("max-width") {
                self.hidden |= length(value).is_some_and(|pixels| pixels < 1.0);
            } else if is("left") || is("top") || is("text-indent") || is("margin-left") {
                self.hidden |= length(value).is_some_and(|pixels| pixels <= -900.0);
            } else if is("font-size") {
                self.tiny = length(value).map(|pixels| pixels <= 2.0);
            } else if is("color") {
                self.colour = colour(value);
                self.hidden |= has("transparent");
            } else if is("background-color") || is("background") {
                self.background =
                    (!has("transparent") && !has("none") && !has("inherit")).then(|| colour(value));
            }
        }
    }
}

/// A length in pixels, more or less: enough to tell what can be seen from what cannot. `None` where it depends on others.
fn length(text: &str) -> Option<f32> {
    let end = text.bytes().position(|b| !b.is_ascii_digit() && !b"+-.".contains(&b)).unwrap_or(text.len());
    let number: f32 = text[..end].parse().ok()?;
    Some(match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "px" => number,
        "pt" => number * 4.0 / 3.0,
        "em" | "rem" => number * 16.0,
        "%" if number != 0.0 => return None,
        "%" => 0.0,
        _ => return None,
    })
}

/// A colour by its digits or by one of the names that hide text.
fn colour(text: &str) -> Option<Colour> {
    // "background: #fff url(...)" is a picture; "rgb(1, 2, 3)" has blanks.
    let digits = text.strip_prefix('#').unwrap_or(text);
    let nibble = |at: usize| (digits.as_bytes()[at] as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
    if digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        let byte = |at: usize| Some(nibble(at)? << 4 | nibble(at + 1)?);
        return Some([byte(0)?, byte(2)?, byte(4)?]);
    }
    if text.starts_with('#') && digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Some([nibble(0)? * 17, nibble(1)? * 17, nibble(2)? * 17]);
    }
    let lower = text.to_ascii_lowercase();
    if let Some(list) = lower.strip_prefix("rgb(").or_else(|| lower.strip_prefix("rgba(")) {
        let mut numbers = list.trim_end_matches(')').split([',', ' ', '/']).filter(|n| !n.is_empty());
        let mut next = || numbers.next()?.trim().parse::<u8>().ok();
        return Some([next()?, next()?, next()?]);
    }
    match lower.as_str() {
        "white" | "snow" | "ivory" => Some(WHITE),
        "black" => Some([0; 3]),
        _ => None,
    }
}

/// Two colours that a reader does not tell apart.
pub(super) fn alike(a: Colour, b: Colour) -> bool {
    // A step of 24 of 255 in one channel is a contrast of 1.2 at most, where 4.5 is asked of text (WCAG 1.4.3).
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 24)
}

/// The page, where nothing says otherwise.
pub(super) const PAGE: Colour = WHITE;

/// Quotes of an answered message, as mail programs mark them.
pub(super) fn is_quote(tag: &Tag) -> bool {
    if tag.name != local_name!("blockquote") && tag.name != local_name!("div") {
        return false;
    }
    let value = |name: &LocalName| tag.attrs.iter().find(|a| a.name.local == *name).map(|a| &a.value);
    let cited = value(&local_name!("type")).is_some_and(|v| v.eq_ignore_ascii_case("cite"));
    let class = value(&local_name!("class"));
    cited
        || class.is_some_and(|v| {
            v.split_whitespace().any(|c| matches!(c, "gmail_quote" | "yahoo_quoted" | "moz-cite-prefix"))
        })
}
