// SPDX-License-Identifier: GPL-3.0-or-later
//! Lengths and numbers of style sheets, precise enough to decide visibility.

/// Pixels of one percent of the window: of a usual one, and, for moves to the right by all of it, of a wide one.
const USUAL: f32 = 10.0;
const WIDE: f32 = 50.0;

/// Pixels by which text must be moved to leave every window.
pub(super) const AWAY: f32 = 900.0;

/// The same to the right, where windows are wide.
pub(super) const FAR: f32 = 5000.0;

/// Pixels of blur from which on no letter is readable.
pub(super) const BLURRED: f32 = 20.0;

/// The default size of letters, in 64ths of a pixel.
pub(crate) const PLAIN: u32 = 16 * 64;

/// Sizes from this on are more than two pixels.
pub(crate) const TINY: u32 = 2 * 64 + 1;

/// Levels of parentheses in `calc()`.
const MAX_DEPTH: usize = 8;

/// A length in pixels, approximately. `None` if it depends on others. A percentage counts only from 100% on, and then as one of the window.
pub(super) fn length(text: &str) -> Option<f32> {
    let text = text.trim();
    if text.contains('(') {
        let mut calculation = Calculation { rest: text, depth: 0 };
        return calculation.sum().filter(|_| calculation.rest.trim().is_empty()).map(|value| value.0);
    }
    let (number, unit) = split(text)?;
    match unit {
        "" => Some(number),
        "%" if number == 0.0 => Some(0.0),
        "%" if number.abs() >= 100.0 => Some(of_window(number)),
        _ => pixels(number, unit),
    }
}

/// The number at the beginning of a length, and its unit.
fn split(text: &str) -> Option<(f32, &str)> {
    let bytes = text.as_bytes();
    let mut end =
        bytes.iter().position(|b| !b.is_ascii_digit() && !b"+-.".contains(b)).unwrap_or(bytes.len());
    // An exponent, not the unit `em`.
    if bytes.get(end) == Some(&b'e')
        && bytes.get(end + 1).is_some_and(|b| b.is_ascii_digit() || b"+-".contains(b))
    {
        let digits = bytes[end + 2..].iter().position(|b| !b.is_ascii_digit());
        end = digits.map_or(bytes.len(), |n| end + 2 + n);
    }
    let number = text[..end].parse::<f32>().ok().filter(|number| number.is_finite())?;
    Some((number, &text[end..]))
}

fn of_window(percent: f32) -> f32 {
    percent * if percent < 100.0 { USUAL } else { WIDE }
}

fn pixels(number: f32, unit: &str) -> Option<f32> {
    Some(match unit {
        "px" => number,
        "pt" => number * 4.0 / 3.0,
        "pc" | "em" | "rem" | "ic" | "lh" | "rlh" => number * 16.0,
        "ex" | "ch" | "rex" | "rch" | "cap" => number * 8.0,
        "in" => number * 96.0,
        "cm" => number * 96.0 / 2.54,
        "mm" => number * 96.0 / 25.4,
        "q" => number * 96.0 / 101.6,
        _ => {
            let unit = unit.strip_prefix(['s', 'l', 'd']).unwrap_or(unit);
            return matches!(unit, "vw" | "vh" | "vmin" | "vmax" | "vi" | "vb").then(|| of_window(number));
        }
    })
}

/// A number or a percentage.
pub(super) fn number(text: &str) -> Option<f32> {
    let text = text.trim();
    if text.contains('(') {
        return length(text);
    }
    text.strip_suffix('%').map_or_else(|| text.parse().ok(), |text| Some(text.parse::<f32>().ok()? / 100.0))
}

/// A value of a calculation, and whether it is a length.
type Measure = (f32, bool);

/// Evaluates `calc()`, `min()`, `max()` and `clamp()` (CSS Values and Units Module Level 4, 10), in small letters.
struct Calculation<'a> {
    rest: &'a str,
    depth: usize,
}

impl Calculation<'_> {
    fn sum(&mut self) -> Option<Measure> {
        let mut value = self.product()?;
        loop {
            self.rest = self.rest.trim_start();
            let sign = match self.rest.as_bytes().first() {
                Some(b'+') => 1.0,
                Some(b'-') => -1.0,
                _ => return Some(value),
            };
            self.rest = &self.rest[1..];
            let next = self.product()?;
            value = (value.0 + sign * next.0, value.1 | next.1);
        }
    }

    fn product(&mut self) -> Option<Measure> {
        let mut value = self.value()?;
        loop {
            self.rest = self.rest.trim_start();
            let divides = match self.rest.as_bytes().first() {
                Some(b'*') => false,
                Some(b'/') => true,
                _ => return Some(value),
            };
            self.rest = &self.rest[1..];
            let next = self.value()?;
            value = if divides {
                (value.0 / Some(next.0).filter(|&n| n != 0.0)?, value.1)
            } else {
                (value.0 * next.0, value.1 | next.1)
            };
        }
    }

    fn value(&mut self) -> Option<Measure> {
        self.rest = self.rest.trim_start();
        for (name, function) in [
            ("calc(", Function::Calc),
            ("min(", Function::Min),
            ("max(", Function::Max),
            ("clamp(", Function::Clamp),
            ("(", Function::Calc),
        ] {
            if let Some(rest) = self.rest.strip_prefix(name) {
                self.rest = rest;
                return self.function(function);
            }
        }
        let end = |c: char| c.is_ascii_whitespace() || matches!(c, '*' | '/' | ')' | ',');
        let (text, rest) = self.rest.split_at(self.rest.find(end).unwrap_or(self.rest.len()));
        self.rest = rest;
        let (number, unit) = split(text)?;
        match unit {
            "" => Some((number, false)),
            // Half of the outer size less half of the window is a way to make a picture fill the window.
            "%" if number != 0.0 => None,
            "%" => Some((0.0, true)),
            _ => Some((pixels(number, unit)?, true)),
        }
    }

    fn function(&mut self, function: Function) -> Option<Measure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut all = Vec::new();
        loop {
            all.push(self.sum()?);
            self.rest = self.rest.trim_start();
            let end = self.rest.as_bytes().first()?;
            self.rest = &self.rest[1..];
            match end {
                b')' => break,
                b',' => (),
                _ => return None,
            }
        }
        self.depth -= 1;
        let of =
            |choose: fn(f32, f32) -> f32| all.iter().copied().reduce(|a, b| (choose(a.0, b.0), a.1 | b.1));
        match (function, &all[..]) {
            (Function::Calc, [value]) => Some(*value),
            (Function::Min, _) => of(f32::min),
            (Function::Max, _) => of(f32::max),
            (Function::Clamp, [least, value, most]) => Some((value.0.min(most.0).max(least.0), value.1)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Function {
    Calc,
    Min,
    Max,
    Clamp,
}

/// The arguments of a function, separated by commas outside inner parentheses.
pub(super) fn arguments(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    list.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
}

/// The words of a value, separated by blanks outside parentheses.
pub(super) fn words(value: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = value.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        c.is_ascii_whitespace() && depth == 0
    });
    parts.map(|word| word.trim_matches(',')).filter(|word| !word.is_empty())
}

/// The place of the parenthesis that closes one opened before the text; `None` if it stays open.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    text.bytes().position(|b| {
        match b {
            b'(' => open += 1,
            b')' => open -= 1,
            _ => (),
        }
        open == 0
    })
}

/// The parts of a condition, separated by a word outside parentheses.
pub(super) fn parts<'a>(condition: &'a str, word: &str) -> Vec<&'a str> {
    let (mut all, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, b) in condition.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => {
                let rest = condition[at + 1..].strip_prefix(word);
                if rest.is_some_and(|rest| rest.starts_with([' ', '('])) {
                    all.push(condition[start..at].trim());
                    start = at + 1 + word.len();
                }
            }
            _ => (),
        }
    }
    all.push(condition[start..].trim());
    all
}

/// The functions of a list such as `rotate(3deg) scale(0)`: each name, with the text between its parentheses.
pub(super) fn functions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (name, after) = rest.split_once('(')?;
        let end = closing(after).unwrap_or(after.len());
        rest = after.get(end + 1..).unwrap_or("");
        Some((
            name.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',').trim_end(),
            &after[..end],
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_pixels() {
        for (text, expected) in [
            ("0", Some(0.0)),
            (".5px", Some(0.5)),
            ("-10in", Some(-960.0)),
            ("254mm", Some(960.0)),
            ("1e3px", Some(1000.0)),
            ("2em", Some(32.0)),
            ("-100vw", Some(-1000.0)),
            ("100dvh", Some(5000.0)),
            ("-100%", Some(-1000.0)),
            ("50%", None),
            ("calc(0px)", Some(0.0)),
            ("calc(-1 * 100vw)", Some(-5000.0)),
            ("calc(1px - (2px + 3px) * 2)", Some(-9.0)),
            ("calc(50% - 50vw)", None),
            ("min(0px, 14px)", Some(0.0)),
            ("clamp(0px, 4vw, 1px)", Some(1.0)),
            ("calc(1px / 0)", None),
            ("calc(", None),
            ("calc(1px))", None),
            ("auto", None),
            ("", None),
            ("1e999px", None),
        ] {
            assert_eq!(length(text), expected, "{text}");
        }
        assert_eq!(length(&format!("{}0{}", "(".repeat(5000), ")".repeat(5000))), None);
    }

    #[test]
    fn functions_are_separated() {
        let all: Vec<_> = functions("rotate(3deg) , scale( calc(0), 1) x(").collect();
        assert_eq!(all, [("rotate", "3deg"), ("scale", " calc(0), 1"), ("x", "")]);
        assert_eq!(arguments("a(b, c), d").collect::<Vec<_>>(), ["a(b, c)", "d"]);
    }
}
