// SPDX-License-Identifier: GPL-3.0-or-later
//! Media queries, evaluated for a reader at a desk.

use super::length::{FAR, arguments, length, number, parts};

/// Whether rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Applies {
    No,
    Perhaps,
    Yes,
}

/// Pixels of a page in many mail programs at a desk. Text for telephones is hidden there, since it repeats the page's text.
const WIDTH: f32 = 1000.0;

/// Levels of parentheses.
const MAX_DEPTH: usize = 8;

/// Evaluates a list of media queries. An empty one applies.
pub(super) fn applies(queries: &str) -> Applies {
    let queries = queries.trim().to_ascii_lowercase();
    if queries.is_empty() {
        return Applies::Yes;
    }
    if queries.contains(['\\', '"', '\'']) || queries.contains("/*") {
        return Applies::Perhaps;
    }
    arguments(&queries).map(|query| one(query, 0)).max().unwrap_or(Applies::Yes)
}

/// A query: a type and conditions joined by `and`, behind one `only` or `not`; or conditions alone. At most [`MAX_DEPTH`] levels deep.
fn one(query: &str, depth: usize) -> Applies {
    if depth > MAX_DEPTH {
        return Applies::Perhaps;
    }
    let query = query.strip_prefix("only ").unwrap_or(query);
    if let Some(rest) = query.strip_prefix("not").filter(|rest| rest.starts_with([' ', '('])) {
        return match joined(rest.trim(), depth) {
            Applies::Yes => Applies::No,
            Applies::No => Applies::Yes,
            Applies::Perhaps => Applies::Perhaps,
        };
    }
    joined(query, depth)
}

fn joined(query: &str, depth: usize) -> Applies {
    let (all, any) = (parts(query, "and"), parts(query, "or"));
    match (all.len(), any.len()) {
        (1, 1) => simple(query, depth),
        (_, 1) => all.into_iter().map(|part| simple(part, depth)).min().unwrap_or(Applies::Perhaps),
        (1, _) => any.into_iter().map(|part| simple(part, depth)).max().unwrap_or(Applies::Perhaps),
        _ => Applies::Perhaps,
    }
}

fn simple(condition: &str, depth: usize) -> Applies {
    match condition {
        "all" | "screen" => return Applies::Yes,
        _ => (),
    }
    let is_type = condition.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_type && !condition.is_empty() && !matches!(condition, "and" | "or" | "not" | "only") {
        // Another medium than a screen, or none.
        return Applies::No;
    }
    let Some(inner) = condition.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return Applies::Perhaps;
    };
    let inner = inner.trim();
    if inner.starts_with('(') || inner.starts_with("not") {
        return one(inner, depth + 1);
    }
    feature(inner).map_or(Applies::Perhaps, |fits| if fits { Applies::Yes } else { Applies::No })
}

/// Whether a feature is that of a reader at a desk; `None` if readers differ. Unknown features are nobody's.
fn feature(text: &str) -> Option<bool> {
    if text.contains(['<', '>', '=']) {
        return range(text);
    }
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let value = value.trim();
    // From the first value on some readers have it, and beyond the second nobody has.
    let among = |number: f32, [all, most]: [f32; 2]| match number {
        _ if number <= all => Some(true),
        _ if number > most => Some(false),
        _ => None,
    };
    match name.trim() {
        "prefers-color-scheme" if value == "light" => Some(true),
        "min-width" | "min-device-width" => Some(pixels(value)? <= WIDTH),
        "max-width" | "max-device-width" => Some(pixels(value)? >= WIDTH),
        "width" | "height" | "color" if value.is_empty() => Some(true),
        "min-height" | "min-device-height" => among(pixels(value)?, [300.0, FAR]),
        "-webkit-min-device-pixel-ratio" | "min--moz-device-pixel-ratio" => among(number(value)?, [1.0, 4.0]),
        "min-resolution" => {
            let (dots, one) = value.strip_suffix("dpi").map_or((value, 1.0), |dots| (dots, 96.0));
            let dots = dots.strip_suffix("dppx").or_else(|| dots.strip_suffix('x')).unwrap_or(dots);
            among(number(dots)? / one, [1.0, 4.0])
        }
        "monochrome" | "grid" | "min-monochrome" => Some(value == "0"),
        name => {
            if is_feature(name) {
                None
            } else {
                Some(false)
            }
        }
    }
}

/// Features of media (Media Queries Level 5), without `min-` and `max-`.
fn is_feature(name: &str) -> bool {
    const STARTS: [&str; 17] = [
        "width",
        "height",
        "device-",
        "aspect-ratio",
        "orientation",
        "resolution",
        "color",
        "any-",
        "hover",
        "pointer",
        "prefers-",
        "forced-colors",
        "inverted-colors",
        "dynamic-range",
        "video-",
        "display-mode",
        "scripting",
    ];
    let name = name.trim_start_matches('-').trim_start_matches("webkit-").trim_start_matches("moz-");
    let name = name.strip_prefix("min-").or_else(|| name.strip_prefix("max-")).unwrap_or(name);
    let others = ["update", "overflow-block", "overflow-inline", "scan", "transform-3d"];
    STARTS.iter().any(|start| name.starts_with(start)) || others.contains(&name)
}

/// A range such as `400px <= width`, `width > 30em` or `400px < width < 900px`.
fn range(text: &str) -> Option<bool> {
    let text = text.replace("<=", "\u{2264}").replace(">=", "\u{2265}");
    let sides: Vec<&str> = text.split(['<', '>', '=', '\u{2264}', '\u{2265}']).map(str::trim).collect();
    let signs: Vec<char> = text.chars().filter(|c| "<>=\u{2264}\u{2265}".contains(*c)).collect();
    let value = |side: &str| if side == "width" { Some(WIDTH) } else { pixels(side) };
    if sides.len() > 3 || sides.iter().filter(|side| **side == "width").count() != 1 {
        return None;
    }
    let mut all = true;
    for (at, sign) in signs.into_iter().enumerate() {
        let (left, right) = (value(sides.get(at)?)?, value(sides.get(at + 1)?)?);
        all &= match sign {
            '<' => left < right,
            '>' => left > right,
            '\u{2264}' => left <= right,
            '\u{2265}' => left >= right,
            _ => (left - right).abs() < 0.5,
        };
    }
    Some(all)
}

fn pixels(text: &str) -> Option<f32> {
    // Shares of the window depend on it.
    let depends = || text.contains('%') || text.contains('v') || text.contains("lh");
    length(text).filter(|_| !text.is_empty() && !depends())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sits_at_a_desk() {
        use Applies::{No, Perhaps, Yes};
        for (query, expected) in [
            ("", Yes),
            ("all", Yes),
            ("Screen", Yes),
            ("only screen", Yes),
            ("screen, print", Yes),
            ("print", No),
            ("print and (min-width: 1px)", No),
            ("only screen and (max-width:600px)", No),
            ("screen and (max-width: 40em)", No),
            ("(min-width:480px)", Yes),
            ("(min-width: 2000px)", No),
            ("screen and (min-width:480px) and (max-width:4000px)", Yes),
            ("(prefers-color-scheme: dark)", Perhaps),
            ("not all", No),
            ("not print", Yes),
            ("not not print", Perhaps),
            ("(prefers-color-scheme:light)", Yes),
            ("(width > 5px)", Yes),
            ("(width>=600px)", Yes),
            ("(width<600px)", No),
            ("(400px <= width <= 900px)", No),
            ("(400px<width<=62.5em)", Yes),
            ("(width = 1000px)", Yes),
            ("(height > 5px)", Perhaps),
            ("(width > 5vw)", Perhaps),
            ("(width > height > 5px)", Perhaps),
            ("(min-width: calc(10px * 2))", Yes),
            ("(max-width: 100pt)", No),
            ("(min-width: 1cm)", Yes),
            ("(min-width:480px) or (print)", Yes),
            ("(max-width:600px) or (min-width:900px)", Yes),
            ("not (max-width:600px)", Yes),
            ("(not (max-width:600px))", Yes),
            ("((min-width:1px) and (max-width:600px))", No),
            ("screen and (not (min-width:600px))", No),
            ("(color)", Yes),
            ("(width)", Yes),
            ("(hover: hover)", Perhaps),
            ("yahoo", No),
            ("screen and (zzz)", No),
            ("not (zzz:1)", Yes),
            ("(monochrome)", No),
            ("(min-resolution:1dppx)", Yes),
            ("(min-resolution:144dpi)", Perhaps),
            ("(min-resolution: 9x)", No),
            ("(-webkit-min-device-pixel-ratio:0)", Yes),
            ("(-webkit-max-device-pixel-ratio:2)", Perhaps),
            ("(-webkit-min-device-pixel-ratio:99)", No),
            ("(min-height:200px)", Yes),
            ("(min-height:800px)", Perhaps),
            ("(min-height:99999px)", No),
            ("(-ms-high-contrast:none)", No),
            ("(min-width:1px) and (max-width:9px) or (color)", Perhaps),
            ("print, (orientation: portrait)", Perhaps),
        ] {
            assert_eq!(applies(query), expected, "{query}");
        }
    }
}
