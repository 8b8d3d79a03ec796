// SPDX-License-Identifier: GPL-3.0-or-later
//! Conditions of `@supports`, evaluated like a current browser.

use super::length::parts;
use super::media::Applies;
use super::painting::is_of_paint;
use super::place::{is_of_place, is_valid};

/// Levels of parentheses.
const MAX_DEPTH: usize = 8;

/// Evaluates a condition. A property that browsers know counts as supported with any value.
pub(super) fn supports(condition: &str) -> Applies {
    let lower = condition.to_ascii_lowercase();
    if lower.contains(['\\', '"', '\'']) || lower.contains("/*") {
        return Applies::Perhaps;
    }
    at_depth(lower.trim(), 0)
}

fn at_depth(condition: &str, depth: usize) -> Applies {
    if depth > MAX_DEPTH {
        return Applies::Perhaps;
    }
    if let Some(rest) = condition.strip_prefix("not").filter(|rest| rest.starts_with([' ', '('])) {
        return match one(rest.trim(), depth) {
            Applies::Yes => Applies::No,
            Applies::No => Applies::Yes,
            Applies::Perhaps => Applies::Perhaps,
        };
    }
    let (all, any) = (parts(condition, "and"), parts(condition, "or"));
    match (all.len(), any.len()) {
        (1, 1) => one(condition, depth),
        (_, 1) => all.into_iter().map(|part| one(part, depth)).min().unwrap_or(Applies::Perhaps),
        (1, _) => any.into_iter().map(|part| one(part, depth)).max().unwrap_or(Applies::Perhaps),
        // They must not be mixed.
        _ => Applies::No,
    }
}

fn one(condition: &str, depth: usize) -> Applies {
    let Some(inner) = condition.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) else {
        return Applies::Perhaps;
    };
    match inner.split_once(':') {
        Some((name, value)) if !name.contains('(') => {
            let (name, value) = (name.trim(), value.trim());
            let is_other = name.starts_with("mso-") || name.starts_with("-ms-");
            if is_other || is_of_place(name) && !is_valid(name, value) {
                Applies::No
            } else if name.starts_with("--") || is_of_paint(name) || is_of_place(name) || is_known(name) {
                Applies::Yes
            } else {
                Applies::Perhaps
            }
        }
        _ => at_depth(inner.trim(), depth + 1),
    }
}

/// Properties that pages test and all browsers support.
fn is_known(name: &str) -> bool {
    [
        "grid",
        "flex",
        "align-",
        "justify-",
        "place-",
        "border",
        "padding",
        "margin",
        "font",
        "text-",
        "animation",
        "transition",
        "object-",
        "column",
    ]
    .iter()
    .any(|known| name.starts_with(known))
        || matches!(
            name,
            "gap"
                | "order"
                | "aspect-ratio"
                | "white-space"
                | "color-scheme"
                | "accent-color"
                | "min-width"
                | "min-height"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_a_browser() {
        use Applies::{No, Perhaps, Yes};
        for (condition, expected) in [
            ("(display:grid)", Yes),
            ("(display: nonsense)", No),
            ("not (position: nonsense)", Yes),
            ("not (display: grid)", No),
            ("(display: grid) and (not (gap:1px))", No),
            ("(mso-x:y) or (display:grid)", Yes),
            ("(x:y) and (display:grid)", Perhaps),
            ("((display:grid) and (color:red))", Yes),
            ("(a:b) or (c:d) and (e:f)", No),
            ("selector(:has(a))", Perhaps),
            ("", Perhaps),
            ("not", Perhaps),
        ] {
            assert_eq!(supports(condition), expected, "{condition}");
        }
        assert_eq!(supports(&"(".repeat(5000)), Perhaps);
        assert_eq!(supports(&format!("{}display:grid{}", "(".repeat(500), ")".repeat(500))), Perhaps);
    }
}
