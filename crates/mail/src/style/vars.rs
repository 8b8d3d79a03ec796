// SPDX-License-Identifier: GPL-3.0-or-later
//! Custom properties (`--name`), and values that use them by `var()`.

use super::cascade::{Slot, Value};
use super::length::closing;
use std::borrow::Cow;
use std::collections::HashMap;

/// Custom properties that are kept of a page, and bytes of their values.
const MAX_KEPT: usize = 256;
const MAX_VALUE: usize = 256;

/// Bytes of a fully resolved value, levels of properties that use others, and all uses in one value: empty ones add no bytes.
const MAX_RESOLVED: usize = 512;
const MAX_DEPTH: usize = 8;
const MAX_USES: usize = 64;

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

/// A custom property.
#[derive(Debug)]
struct Known {
    /// `None` if it has several values.
    value: Option<String>,
    /// Whether all elements have it.
    is_of_all: bool,
}

/// The custom properties and animations of a page.
#[derive(Debug, Default)]
pub(super) struct Vars {
    known: HashMap<String, Known>,
    /// By the names of animations, the declarations by which they may show text.
    pub(super) animations: HashMap<String, Vec<(Slot, Value)>>,
}

/// The names that declarations of one rule can use: those of the page, and custom properties that the rule itself declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) page: &'a Vars,
    pub(super) own: &'a [String],
}

impl Vars {
    /// Finds custom properties in style sheets and `style` attributes, if anything in the page uses one. One pass for each.
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
                    let new = || Known { value: Some(value.to_owned()), is_of_all: true };
                    let kept = all.entry(name.to_owned()).or_insert_with(new);
                    let is_same = kept.value.as_deref() == Some(value);
                    places -= u32::from(is_same && places > 0);
                    let before = &html[html.floor_char_boundary(at.saturating_sub(MAX_PLACE))..at];
                    if !is_same {
                        kept.value = None;
                    } else if places == 0 || place(before) == Place::Some {
                        kept.is_of_all = false;
                    }
                }
            }
        }
        Self { known: all, animations: HashMap::new() }
    }

    /// Whether the page has custom properties that it uses.
    pub(super) fn has_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// The custom properties that a rule declares before its inner rules; `block` is its text.
    pub(super) fn declared_in(&self, block: &str) -> Vec<String> {
        let block = block.split('{').next().unwrap_or_default();
        let found =
            memchr::memmem::find_iter(block.as_bytes(), b"--").filter_map(|at| declared(&block[at..]));
        found.filter(|name| self.known.contains_key(*name)).take(MAX_KEPT).map(str::to_owned).collect()
    }
}

impl Scope<'_> {
    /// The declarations of the animations that the value of an `animation` or `animation-name` has.
    pub(super) fn animations(&self, value: &str) -> impl Iterator<Item = (Slot, Value)> {
        let words = value.split(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | '"' | '\''));
        words.filter_map(|word| self.page.animations.get(word)).flatten().copied()
    }

    /// A value with `var()` resolved; unchanged if one of these is unknown.
    pub(super) fn resolve<'a>(&self, value: &'a str) -> Cow<'a, str> {
        if !value.contains("var(") {
            return Cow::Borrowed(value);
        }
        let (mut resolved, mut uses) = (String::new(), 0);
        match self.push(value, &mut resolved, 0, &mut uses) {
            Some(()) => Cow::Owned(resolved),
            None => Cow::Borrowed(value),
        }
    }

    fn push(&self, value: &str, out: &mut String, depth: usize, uses: &mut usize) -> Option<()> {
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("var(") {
            out.push_str(before);
            let end = closing(after)?;
            let (name, fallback) = match after[..end].split_once(',') {
                Some((name, fallback)) => (name.trim(), Some(fallback.trim())),
                None => (after[..end].trim(), None),
            };
            let value = match self.page.known.get(name) {
                Some(known) if known.is_of_all || self.own.iter().any(|own| own == name) => {
                    known.value.as_deref()?
                }
                Some(_) => return None,
                None => fallback?,
            };
            *uses += 1;
            if depth == MAX_DEPTH || out.len() > MAX_RESOLVED || *uses > MAX_USES {
                return None;
            }
            self.push(value, out, depth + 1, uses)?;
            rest = &after[end + 1..];
        }
        out.push_str(rest);
        (out.len() <= MAX_RESOLVED).then_some(())
    }
}

fn is_of_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

/// The name of a declaration that begins with two dashes.
fn declared(text: &str) -> Option<&str> {
    let name = text.bytes().take(MAX_VALUE).position(|b| !is_of_name(&b)).filter(|&name| name > 2)?;
    text[name..].trim_start().starts_with(':').then(|| &text[..name])
}

/// Name and value of a declaration that begins with two dashes.
fn declaration(text: &str) -> Option<(&str, &str)> {
    let name = declared(text)?.len();
    let rest = text[name..].trim_start().strip_prefix(':')?;
    let rest = &rest[..rest.floor_char_boundary(MAX_VALUE)];
    let end = rest.find([';', '}', '"', '<'])?;
    let value = rest[..end].trim();
    Some((&text[..name], value.strip_suffix("!important").unwrap_or(value).trim_end()))
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
            assert_eq!(Scope { page: &vars, own: &[] }.resolve(value), expected, "{value}");
        }
        let vars = Vars::of(".x{--a:none;color:var(--a)}.y{--b:1}.z{--b:2}");
        let own = vars.declared_in("--a:none;--b :1;.w{--c:0}");
        assert_eq!(own, ["--a", "--b"]);
        assert_eq!(Scope { page: &vars, own: &own }.resolve("var(--a) x"), "none x");
        assert_eq!(Scope { page: &vars, own: &own }.resolve("var(--b)"), "var(--b)");
        assert_eq!(Scope { page: &vars, own: &[] }.resolve("var(--a)"), "var(--a)");
    }

    /// Each uses the next one twice.
    #[test]
    fn no_value_grows_without_bounds() {
        let page: String = (0..100).map(|i| format!("--v{i}:var(--v{0}) var(--v{0});", i + 1)).collect();
        let vars = Vars::of(&page);
        assert_eq!(Scope { page: &vars, own: &[] }.resolve("var(--v0)"), "var(--v0)");
        // Seven levels of 28 uses of the next one, and an empty one.
        let uses = |i: usize| format!("--v{i}:{};", format!("var(--v{})", i + 1).repeat(28));
        let vars = Vars::of(&((0..7).map(uses).collect::<String>() + "--v7:;"));
        let (mut resolved, mut uses) = (String::new(), 0);
        assert_eq!(Scope { page: &vars, own: &[] }.push("var(--v0)", &mut resolved, 0, &mut uses), None);
        assert_eq!(uses, MAX_USES + 1);
    }
}
