// SPDX-License-Identifier: GPL-3.0-or-later
//! Media queries, evaluated for a reader at a desk.

/// Whether rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Applies {
    No,
    Perhaps,
    Yes,
}

/// Pixels of a page in many mail programs at a desk. Text for telephones is hidden there, since it repeats the page's text.
const WIDTH: f32 = 1000.0;

/// Evaluates a list of media queries. An empty one applies.
pub(super) fn applies(queries: &str) -> Applies {
    let queries = queries.trim().to_ascii_lowercase();
    if queries.is_empty() {
        return Applies::Yes;
    }
    queries.split(',').map(|query| one(query.trim())).max().unwrap_or(Applies::Yes)
}

/// A query: conditions joined by `and`, behind one `only` or `not`.
fn one(query: &str) -> Applies {
    let query = query.strip_prefix("only ").unwrap_or(query);
    match query.strip_prefix("not ").map(|rest| conditions(rest.trim())) {
        Some(Applies::Yes) => Applies::No,
        Some(Applies::No) => Applies::Yes,
        Some(Applies::Perhaps) => Applies::Perhaps,
        None => conditions(query),
    }
}

fn conditions(query: &str) -> Applies {
    if query.contains(" or ") || query.contains("/*") || query.contains('\\') {
        return Applies::Perhaps;
    }
    query.split(" and ").map(|condition| simple(condition.trim())).min().unwrap_or(Applies::Perhaps)
}

fn simple(condition: &str) -> Applies {
    match condition {
        "all" | "screen" => return Applies::Yes,
        "print" | "speech" | "tty" | "tv" | "projection" | "handheld" | "braille" | "embossed" | "aural" => {
            return Applies::No;
        }
        _ => (),
    }
    let Some(feature) = condition.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return Applies::Perhaps;
    };
    let (name, value) = feature.split_once(':').unwrap_or((feature, ""));
    let fits = match (name.trim(), pixels(value.trim())) {
        ("prefers-color-scheme", _) if value.trim() == "light" => true,
        ("min-width" | "min-device-width", Some(pixels)) => pixels <= WIDTH,
        ("max-width" | "max-device-width", Some(pixels)) => pixels >= WIDTH,
        _ => return Applies::Perhaps,
    };
    if fits { Applies::Yes } else { Applies::No }
}

fn pixels(text: &str) -> Option<f32> {
    let (number, unit) = [("px", 1.0), ("rem", 16.0), ("em", 16.0)]
        .into_iter()
        .find_map(|(unit, pixels)| text.strip_suffix(unit).map(|number| (number, pixels)))
        .unwrap_or((text, 1.0));
    Some(number.trim().parse::<f32>().ok()? * unit)
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
            ("screen and (-webkit-min-device-pixel-ratio:0)", Perhaps),
            ("not all", No),
            ("not print", Yes),
            ("not not print", Perhaps),
            ("(prefers-color-scheme:light)", Yes),
            ("(width > 5px)", Perhaps),
            ("print, (orientation: portrait)", Perhaps),
        ] {
            assert_eq!(applies(query), expected, "{query}");
        }
    }
}
