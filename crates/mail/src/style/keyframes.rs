// SPDX-License-Identifier: GPL-3.0-or-later
//! What animations may show: the declarations of `@keyframes` (CSS Animations Level 1, 3), of which each may be the last one.

use super::cascade::{Slot, Value, perhaps};
use super::colour::{PAGE, alike};
use super::declaration::read;
use super::vars::{Scope, Vars};

/// Rules for animations that are read of a page, the bytes of one, and its declarations that are kept.
const MAX_RULES: usize = 256;
const MAX_BYTES: usize = 4 << 10;
const MAX_KEPT: usize = 32;

/// Bytes of the name of an animation.
const MAX_NAME: usize = 256;

/// Adds the declarations of all animations of a page that may show text.
pub(super) fn add(html: &str, vars: &mut Vars) {
    for at in
        memchr::memchr_iter(b'@', html.as_bytes()).filter(|&at| is_rule(&html[at + 1..])).take(MAX_RULES)
    {
        let rule = &html[at..];
        let Some((head, _)) = rule[..rule.floor_char_boundary(MAX_NAME)].split_once('{') else { continue };
        let name = head.rsplit(|c: char| c.is_ascii_whitespace() || c == '@').find(|word| !word.is_empty());
        let name = name.unwrap_or_default().trim_matches(['"', '\'']).to_owned();
        let block = &rule[head.len() + 1..];
        vars.animations.insert(name, declarations(&block[..block.floor_char_boundary(MAX_BYTES)]));
    }
}

/// Whether a rule behind its `@` is one for an animation.
fn is_rule(text: &str) -> bool {
    let end = text.bytes().position(|b| !b.is_ascii_alphabetic() && b != b'-').unwrap_or(text.len());
    text[..end].rsplit('-').next().is_some_and(|last| last.eq_ignore_ascii_case("keyframes"))
}

/// The declarations in the blocks of a rule, up to its end.
fn declarations(rule: &str) -> Vec<(Slot, Value)> {
    let mut all = Vec::new();
    let mut rest = rule;
    while let Some((step, after)) = rest.split_once('}') {
        // Behind the last block the rule ends.
        let Some((_, block)) = step.split_once('{') else { break };
        for (property, value) in block.split(';').filter_map(|declaration| declaration.split_once(':')) {
            let none = Vars::default();
            read(property.trim(), value.trim(), Scope { page: &none, own: &[] }, &mut |found| {
                let shown = perhaps(found.slot, found.value).filter(|_| shows(found.slot, found.value));
                all.extend(shown.filter(|_| all.len() < MAX_KEPT).map(|value| (found.slot, value)));
            });
        }
        rest = after;
    }
    all
}

/// Whether letters or their background may be seen by it; what is not displayed is not animated.
fn shows(slot: Slot, value: Value) -> bool {
    match value {
        Value::Colour(colour) => !alike(colour, PAGE),
        Value::Transparent => false,
        _ => slot != Slot::NotDisplayed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn animations_have_declarations() {
        let mut vars = Vars::default();
        let html = "<style>@keyframes a{from{opacity:0}to{opacity:1;color:#fff}}@-WEBKIT-KEYFRAMES  'b' {0%,9%{color:red}}.x{left:0}</style>\
            me@keyframes.example @ @keyframes";
        add(html, &mut vars);
        let scope = Scope { page: &vars, own: &[] };
        let of = |value: &str| scope.animations(value).map(|(slot, _)| slot).collect::<Vec<_>>();
        assert_eq!(of("a"), [Slot::Faint]);
        assert_eq!(of("1s b,a 2s"), [Slot::Colour, Slot::Faint]);
        assert_eq!(of("'b'"), [Slot::Colour]);
        for other in ["none", "A 1s", "", "x"] {
            assert_eq!(of(other), [], "{other}");
        }
    }
}
