// SPDX-License-Identifier: GPL-3.0-or-later
//! The properties that may hide text, and what their values mean for it.

use super::cascade::{Slot, Value};
use super::colour::{Paint, paint};
use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser, Token,
};

/// Pixels by which text must be moved to be out of every window.
const AWAY: f32 = 900.0;

/// The same to the right, where windows are wide.
const FAR: f32 = 5000.0;

/// A declaration that may hide text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Declaration {
    pub(super) slot: Slot,
    pub(super) value: Value,
    pub(super) is_important: bool,
}

/// Reads a `style` attribute.
pub(super) fn of_attribute(text: &str, see: &mut dyn FnMut(Declaration)) {
    // Where no character can stand for something else, a semicolon is the end of a declaration. That is nearly always so.
    if text.bytes().any(|b| b"\\\"'({[*".contains(&b)) {
        of_block(&mut Parser::new(text), see);
        return;
    }
    for declaration in text.split(';') {
        if let Some((property, value)) = declaration.split_once(':') {
            read(property.trim(), value.trim(), see);
        }
    }
}

/// Reads what stands between the braces of a rule; false if there is more than declarations.
pub(super) fn of_block(input: &mut Parser<'_>, see: &mut dyn FnMut(Declaration)) -> bool {
    let mut is_plain = true;
    for item in RuleBodyParser::new(input, &mut Block { see }) {
        // A rule within the rule.
        is_plain &= item.map_or_else(|(_, text, _)| !text.contains('{'), |()| true);
    }
    is_plain
}

/// Reads the declarations of a block.
struct Block<'a> {
    see: &'a mut dyn FnMut(Declaration),
}

impl<'i> DeclarationParser<'i> for Block<'_> {
    type Declaration = ();
    type Error = ();

    fn parse_value(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
        _start: &ParserState,
    ) -> Result<(), ParseError<()>> {
        let start = input.state();
        while input.next().is_ok() {}
        let text = input.slice_from(start.position());
        if text.contains('\\') || text.contains("/*") {
            input.reset(&start);
            read(&name, plain(input).trim(), self.see);
        } else {
            read(&name, text.trim(), self.see);
        }
        Ok(())
    }
}

impl AtRuleParser<'_> for Block<'_> {
    type Prelude = ();
    type AtRule = ();
    type Error = ();
}

impl QualifiedRuleParser<'_> for Block<'_> {
    type Prelude = ();
    type QualifiedRule = ();
    type Error = ();
}

impl RuleBodyItemParser<'_, (), ()> for Block<'_> {
    fn parse_declarations(&self) -> bool {
        true
    }

    fn parse_qualified(&self) -> bool {
        false
    }
}

/// A value without comments, its words without escapes.
fn plain(input: &mut Parser<'_>) -> String {
    let mut text = String::new();
    loop {
        let start = input.position();
        let Ok(token) = input.next_including_whitespace() else { return text };
        match token {
            Token::Ident(word) => text.push_str(word),
            Token::WhiteSpace(_) => text.push(' '),
            Token::Function(name) => {
                text.push_str(name);
                text.push('(');
                let arguments = input.parse_nested_block(|input| {
                    let start = input.position();
                    while input.next().is_ok() {}
                    Ok::<_, ParseError<()>>(input.slice_from(start).to_owned())
                });
                text.push_str(&arguments.unwrap_or_default());
                text.push(')');
            }
            _ => text.push_str(input.slice_from(start)),
        }
    }
}

/// Letters of the longest property that is read.
const LONGEST: usize = 16;

fn read(property: &str, value: &str, see: &mut dyn FnMut(Declaration)) {
    let mut name = [0; LONGEST];
    let Some(name) = name.get_mut(..property.len()) else { return };
    name.copy_from_slice(property.as_bytes());
    name.make_ascii_lowercase();
    let (value, mark) = value.rsplit_once('!').unwrap_or((value, ""));
    let is_important = mark.trim().eq_ignore_ascii_case("important");
    if !mark.is_empty() && !is_important {
        return;
    }
    let mut set = |slot, value| see(Declaration { slot, value, is_important });
    let name = str::from_utf8(name).unwrap_or_default();
    if is_of_paint(name) {
        paints(name, value.trim_end(), &mut set);
    } else if is_of_place(name) {
        places(name, &value.trim_end().to_ascii_lowercase(), &mut set);
    }
}

fn is_of_paint(name: &str) -> bool {
    matches!(name, "color" | "background" | "background-color" | "background-image")
}

/// Colours and what stands behind the text.
fn paints(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let word = |word: &str| value.eq_ignore_ascii_case(word);
    let has_picture = value.contains('(') && !value.trim_start().to_ascii_lowercase().starts_with("rgb");
    let is_none = word("none") || word("transparent") || word("inherit") || word("initial") || word("unset");
    match name {
        "color" if word("inherit") || word("unset") || word("currentcolor") => {
            set(Slot::Colour, Value::Inherit)
        }
        "color" => set(Slot::Colour, ink(value)),
        "background-image" => set(Slot::Picture, if is_none { Value::Inherit } else { Value::Unknown }),
        "background-color" if is_none => set(Slot::Background, Value::Inherit),
        "background-color" => set(Slot::Background, backdrop(value)),
        _ => {
            set(Slot::Picture, if has_picture { Value::Unknown } else { Value::Inherit });
            let colour = || value.split_ascii_whitespace().find_map(paint).or_else(|| paint(value));
            let behind = match colour() {
                _ if is_none => Value::Inherit,
                Some(Paint::Opaque(colour)) => Value::Colour(colour),
                Some(Paint::Transparent) => Value::Inherit,
                None => Value::Unknown,
            };
            set(Slot::Background, behind);
        }
    }
}

/// What letters of this colour are.
pub(super) fn ink(text: &str) -> Value {
    match paint(text) {
        Some(Paint::Opaque(colour)) => Value::Colour(colour),
        Some(Paint::Transparent) => Value::Transparent,
        None => Value::Unknown,
    }
}

/// What stands behind letters where this is the colour.
pub(super) fn backdrop(text: &str) -> Value {
    match paint(text) {
        Some(Paint::Opaque(colour)) => Value::Colour(colour),
        Some(Paint::Transparent) => Value::Inherit,
        None => Value::Unknown,
    }
}

fn is_of_place(name: &str) -> bool {
    #[rustfmt::skip]
    let names = ["display", "visibility", "opacity", "height", "max-height", "width", "max-width", "line-height", "overflow",
        "overflow-x", "overflow-y", "position", "float", "left", "right", "top", "bottom", "text-indent", "margin",
        "margin-left", "clip", "clip-path", "transform", "font", "font-size", "letter-spacing"];
    names.contains(&name)
}

/// Size and place. The value is in small letters.
fn places(name: &str, value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let below = |bound: f32| Value::Hides(length(value).is_some_and(|pixels| pixels < bound));
    let away = |first: f32, last: f32| Value::Hides(length(value).is_some_and(|p| p <= first || p >= last));
    match name {
        "display" => {
            set(Slot::NotDisplayed, Value::Hides(value == "none"));
            set(Slot::Block, Value::Hides(is_block(value)));
        }
        "visibility" => set(
            Slot::Invisible,
            match value {
                "hidden" | "collapse" => Value::Hides(true),
                "inherit" | "unset" => Value::Inherit,
                _ => Value::Hides(false),
            },
        ),
        "opacity" => set(Slot::Faint, Value::Hides(number(value).is_some_and(|opacity| opacity < 0.05))),
        "height" => set(Slot::Height, below(1.0)),
        "max-height" => set(Slot::MaxHeight, below(1.0)),
        "width" => set(Slot::Width, below(1.0)),
        "max-width" => set(Slot::MaxWidth, below(1.0)),
        // A bare number is a multiple of the letters' size.
        "line-height" => set(Slot::LineHeight, below(0.1)),
        "overflow" | "overflow-x" | "overflow-y" => {
            let clips =
                value.split_ascii_whitespace().any(|v| matches!(v, "hidden" | "clip" | "scroll" | "auto"));
            set(Slot::Clips, Value::Hides(clips));
        }
        "position" => {
            set(Slot::Moved, Value::Hides(matches!(value, "absolute" | "fixed" | "relative")));
            set(Slot::OutOfFlow, Value::Hides(matches!(value, "absolute" | "fixed")));
        }
        "float" => set(Slot::Float, Value::Hides(matches!(value, "left" | "right"))),
        "left" => set(Slot::Left, away(-AWAY, FAR)),
        "right" => set(Slot::Right, away(-FAR, FAR)),
        "top" => set(Slot::Top, away(-AWAY, f32::INFINITY)),
        "bottom" => set(Slot::Bottom, away(f32::NEG_INFINITY, FAR)),
        "text-indent" => set(Slot::Indent, away(-AWAY, f32::INFINITY)),
        "margin-left" => set(Slot::MarginLeft, away(-AWAY, f32::INFINITY)),
        "margin" => {
            let all: Vec<&str> = value.split_ascii_whitespace().take(4).collect();
            let left = [0, 0, 1, 1, 3].get(all.len()).and_then(|&at| all.get(at));
            let is_away = left.and_then(|left| length(left)).is_some_and(|pixels| pixels <= -AWAY);
            set(Slot::MarginLeft, Value::Hides(is_away));
        }
        "clip" => set(Slot::Clip, Value::Hides(clips_all(value))),
        "clip-path" => set(Slot::ClipPath, Value::Hides(cuts_all(value))),
        "transform" => set(Slot::Transform, Value::Hides(value.split(')').any(transforms_away))),
        "letter-spacing" => set(
            Slot::LetterSpacing,
            match value {
                "inherit" | "unset" => Value::Inherit,
                // As much as letters are wide, so that all of them stand on one another.
                _ => Value::Hides(length(value).is_some_and(|pixels| pixels <= -16.0)),
            },
        ),
        _ => set(Slot::FontSize, letters(name, value)),
    }
}

fn is_block(display: &str) -> bool {
    matches!(
        display,
        "block"
            | "inline-block"
            | "flex"
            | "inline-flex"
            | "grid"
            | "inline-grid"
            | "list-item"
            | "flow-root"
    )
}

/// Whether letters of this `font-size` or `font` are too small to be read.
fn letters(property: &str, value: &str) -> Value {
    let sizes = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let size = match property {
        // "italic 12px/14px Arial"; a weight such as 700 is no length, as it has no unit.
        "font" => value
            .split_ascii_whitespace()
            .filter_map(|word| word.split('/').next())
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
        // A multiple of the size around it, which is some 16 pixels where it can be read.
        return match number.parse::<f32>() {
            Ok(number) if number <= whole / 8.0 => Value::Hides(true),
            _ => Value::Inherit,
        };
    }
    match size {
        "inherit" | "unset" | "larger" | "smaller" => Value::Inherit,
        _ => Value::Hides(length(size).is_some_and(|pixels| pixels <= 2.0)),
    }
}

/// A length in pixels, more or less: enough to tell what can be seen from what cannot. `None` where it depends on others.
fn length(text: &str) -> Option<f32> {
    let end = text.bytes().position(|b| !b.is_ascii_digit() && !b"+-.".contains(&b)).unwrap_or(text.len());
    let number: f32 = text[..end].parse().ok()?;
    Some(match &text[end..] {
        "" | "px" => number,
        "pt" => number * 4.0 / 3.0,
        "em" | "rem" => number * 16.0,
        "%" if number == 0.0 => 0.0,
        _ => return None,
    })
}

/// A number or a share.
fn number(text: &str) -> Option<f32> {
    text.strip_suffix('%').map_or_else(|| text.parse().ok(), |text| Some(text.parse::<f32>().ok()? / 100.0))
}

/// What stands between the parentheses behind `name`.
fn arguments<'a>(text: &'a str, name: &str) -> Option<impl Iterator<Item = &'a str>> {
    let rest = text.trim_start().strip_prefix(name)?.strip_prefix('(')?;
    Some(rest.split([',', ' ', ')']).filter(|word| !word.is_empty()))
}

/// `clip: rect(top, right, bottom, left)` of a pixel or less.
fn clips_all(value: &str) -> bool {
    let Some(words) = arguments(value, "rect") else { return false };
    let sides: Vec<f32> = words.take(4).filter_map(length).collect();
    matches!(sides[..], [top, right, bottom, left] if bottom - top <= 1.0 || right - left <= 1.0)
}

/// `clip-path` of which nothing is left.
fn cuts_all(value: &str) -> bool {
    let inset = arguments(value, "inset").and_then(|mut words| words.next());
    let circle = arguments(value, "circle").and_then(|mut words| words.next());
    inset.and_then(|word| word.strip_suffix('%')).and_then(number).is_some_and(|share| share >= 50.0)
        || circle.and_then(length).is_some_and(|radius| radius < 1.0)
}

/// One function of a `transform`.
fn transforms_away(function: &str) -> bool {
    let first = |name| arguments(function, name).and_then(|mut words| words.next());
    let scale = ["scale", "scalex", "scaley", "scale3d"].into_iter().find_map(first).and_then(number);
    let moved =
        ["translate", "translatex", "translatey", "translate3d"].into_iter().find_map(first).and_then(length);
    scale.is_some_and(|factor| factor.abs() < 0.05)
        || moved.is_some_and(|pixels| pixels <= -AWAY || pixels >= FAR)
}
