// SPDX-License-Identifier: GPL-3.0-or-later
//! Custom properties (`--name`), and values that use them by `var()`.

use super::length::closing;
use std::borrow::Cow;
use std::collections::HashMap;

/// Custom properties that are kept of a page, and bytes of their values.
const MAX_KEPT: usize = 256;
const MAX_VALUE: usize = 256;

/// Bytes of a fully resolved value, and levels of properties that use others.
const MAX_RESOLVED: usize = 512;
const MAX_DEPTH: usize = 8;

/// Bytes before a declaration that are searched for its rule.
const MAX_PLACE: usize = 1 << 10;

/// Declarations whose rule is searched.
const MAX_PLACES: u32 = 1 << 12;

/// The elements for which a custom property is set.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// All of the page, or the element with the attribute.
    All,
    /// Some elements of the page; it is not known whether those use it.
    Some,
}

/// The place of the declaration behind this text.
fn place(before: &str) -> Place {
    // An attribute, or outside of rules.
    let Some((rule, inner)) = before.rsplit_once('{') else { return Place::All };
    if inner.contains(['}', '<', '>']) {
        return Place::All;
    }
    let selector = rule.rsplit(['}', '{', ';', '>', '/']).next().unwrap_or_default();
    let is_all =
        |one: &str| matches!(one.trim(), ":root" | "html" | "body" | "*" | ":host" | "::before" | "::after");
    if selector.split(',').any(is_all) { Place::All } else { Place::Some }
}

/// The custom properties of a page: each with its value, or `None` if there are several values, or only some elements have it.
#[derive(Debug, Default)]
pub(super) struct Vars(HashMap<String, Option<String>>);

impl Vars {
    /// Finds them in style sheets and `style` attributes, if anything in the page uses one. One pass.
    pub(super) fn of(html: &str) -> Self {
        let mut all = HashMap::new();
        let bytes = html.as_bytes();
        if memchr::memmem::find(bytes, b"var(").is_some() {
            let mut places = MAX_PLACES;
            for at in memchr::memmem::find_iter(bytes, b"--") {
                let is_inside = at > 0 && is_of_name(&bytes[at - 1]);
                if let Some((name, value)) =
                    declaration(&html[at..]).filter(|_| !is_inside && all.len() < MAX_KEPT)
                {
                    let kept = all.entry(name.to_owned()).or_insert_with(|| Some(value.to_owned()));
                    let is_same = kept.as_deref() == Some(value);
                    places -= u32::from(is_same && places > 0);
                    let before = &html[html.floor_char_boundary(at.saturating_sub(MAX_PLACE))..at];
                    if !is_same || places == 0 || place(before) == Place::Some {
                        *kept = None;
                    }
                }
            }
        }
        Self(all)
    }

    /// A value with `var()` resolved; unchanged if one of these is unknown.
    pub(super) fn resolve<'a>(&self, value: &'a str) -> Cow<'a, str> {
        if !value.contains("var(") {
            return Cow::Borrowed(value);
        }
        let mut resolved = String::new();
        match self.push(value, &mut resolved, 0) {
            Some(()) => Cow::Owned(resolved),
            None => Cow::Borrowed(value),
        }
    }

    fn push(&self, value: &str, out: &mut String, depth: usize) -> Option<()> {
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("var(") {
            out.push_str(before);
            let end = closing(after)?;
            let (name, fallback) = match after[..end].split_once(',') {
                Some((name, fallback)) => (name.trim(), Some(fallback.trim())),
                None => (after[..end].trim(), None),
            };
            let value = match self.0.get(name) {
                Some(known) => known.as_deref()?,
                None => fallback?,
            };
            if depth == MAX_DEPTH || out.len() > MAX_RESOLVED {
                return None;
            }
            self.push(value, out, depth + 1)?;
            rest = &after[end + 1..];
        }
        out.push_str(rest);
        (out.len() <= MAX_RESOLVED).then_some(())
    }
}

fn is_of_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

/// Name and value of a declaration that begins with two dashes.
fn declaration(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let name = bytes.iter().take(MAX_VALUE).position(|b| !is_of_name(b))?;
    let rest = text[name..].trim_start().strip_prefix(':')?;
    let rest = &rest[..rest.floor_char_boundary(MAX_VALUE)];
    let end = rest.find([';', '}', '"', '<'])?;
    let value = rest[..end].trim();
    (name > 2).then(|| (&text[..name], value.strip_suffix("!important").unwrap_or(value).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_resolved() {
        let page = "<style>:root{--a: none;--b:var(--a);--c:1;--d:var(--d)}p{--c:2}.x--e:hover{}</style><p style=\"--f:0\">";
        let vars = Vars::of(page);
        for (value, expected) in [
            ("none", "none"),
            ("var(--a)", "none"),
            ("x var( --b ) y", "x none y"),
            ("var(--c)", "var(--c)"),
            ("var(--d)", "var(--d)"),
            ("var(--e, 5px)", "5px"),
            ("var(--e)", "var(--e)"),
            ("var(--e, var(--a, 1))", "none"),
            ("var(--a", "var(--a"),
            ("calc(1px * var(--f,1))", "calc(1px * 0)"),
        ] {
            assert_eq!(vars.resolve(value), expected, "{value}");
        }
    }

    /// Each uses the next one twice.
    #[test]
    fn no_value_grows_without_bounds() {
        let page: String = (0..100).map(|i| format!("--v{i}:var(--v{0}) var(--v{0});", i + 1)).collect();
        let vars = Vars::of(&page);
        assert_eq!(vars.resolve("var(--v0)"), "var(--v0)");
    }
}
