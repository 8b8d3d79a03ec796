// SPDX-License-Identifier: GPL-3.0-or-later
//! The properties that may hide text, and their effects.

use super::cascade::{Slot, Value};
use super::painting::{is_of_paint, paints};
use super::place::{is_of_place, places};
use super::vars::Scope;
use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser, Token,
};
use std::borrow::Cow;

/// A declaration that may hide text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Declaration {
    pub(super) slot: Slot,
    pub(super) value: Value,
    pub(super) is_important: bool,
}

/// `style` attributes of a page that are cached, and bytes of the longest of these: cells of a table repeat them.
const MAX_KEPT: usize = 8;
const MAX_KEPT_BYTES: usize = 512;

/// The declarations of the last `style` attributes.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    kept: Vec<(String, Vec<Declaration>)>,
    /// The index to replace next.
    next: usize,
}

impl Attributes {
    /// Passes on the declarations of an attribute.
    pub(super) fn read(&mut self, text: &str, scope: Scope<'_>, emit: &mut dyn FnMut(Declaration)) {
        if text.len() > MAX_KEPT_BYTES {
            of_attribute(text, scope, emit);
        } else if let Some((_, found)) = self.kept.iter().find(|(known, _)| known == text) {
            found.iter().for_each(|&declaration| emit(declaration));
        } else {
            let mut found = Vec::new();
            of_attribute(text, scope, &mut |declaration| {
                found.push(declaration);
                emit(declaration);
            });
            let new = (text.to_owned(), found);
            match self.kept.get_mut(self.next) {
                Some(there) => *there = new,
                None => self.kept.push(new),
            }
            self.next = (self.next + 1) % MAX_KEPT;
        }
    }
}

/// Reads a `style` attribute.
fn of_attribute(text: &str, scope: Scope<'_>, emit: &mut dyn FnMut(Declaration)) {
    // Without these characters a semicolon always ends a declaration. That is nearly always so.
    if text.bytes().any(|b| b"\\\"'({[*".contains(&b)) {
        RuleBodyParser::new(&mut Parser::new(text), &mut Block { scope, emit }).for_each(drop);
        return;
    }
    for declaration in text.split(';') {
        if let Some((property, value)) = declaration.split_once(':') {
            read(property.trim(), value.trim(), scope, emit);
        }
    }
}

/// Reads the declarations of a block.
struct Block<'a> {
    scope: Scope<'a>,
    emit: &'a mut dyn FnMut(Declaration),
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
        of_value(&name, input, self.scope, self.emit);
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

/// Reads the value of a declaration, up to its end.
pub(super) fn of_value(
    name: &str,
    input: &mut Parser<'_>,
    scope: Scope<'_>,
    emit: &mut dyn FnMut(Declaration),
) {
    let start = input.state();
    while input.next().is_ok() {}
    let text = input.slice_from(start.position());
    let unescaped;
    let text = if text.contains('\\') || text.contains("/*") {
        input.reset(&start);
        unescaped = plain(input);
        unescaped.trim()
    } else {
        text.trim()
    };
    let (resolved, mut is_read) = (scope.resolve(text), false);
    read(name, resolved.trim(), scope, &mut |declaration| {
        is_read = true;
        emit(declaration);
    });
    if let Cow::Owned(resolved) = resolved
        && !is_read
    {
        // Invalid only with the value of a custom property, it still takes the place of earlier declarations.
        let mark = if resolved.contains('!') { "unset!important" } else { "unset" };
        read(name, mark, scope, emit);
    }
}

/// A value without comments and with its words unescaped.
fn plain(input: &mut Parser<'_>) -> String {
    let mut text = String::new();
    loop {
        let start = input.position();
        let Ok(token) = input.next_including_whitespace() else { return text };
        match token {
            // No word of a value that is read contains a blank, as `none\9` does.
            Token::Ident(word) if word.contains(|c: char| c.is_ascii_whitespace()) => {
                text.push_str(&word.replace(|c: char| c.is_ascii_whitespace(), "\\"));
            }
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

/// `all`. An element that is reset is no block, but with `revert` it is what it was.
fn resets(value: &str, set: &mut dyn FnMut(Slot, Value)) {
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    if is("revert") {
        set(Slot::All, Value::Inherit);
    } else if is("unset") || is("initial") || is("inherit") {
        set(Slot::All, Value::Hides(false));
        set(Slot::Block, Value::Hides(false));
        set(Slot::Parts, Value::Hides(false));
    }
}

/// Letters of the longest property that is read.
const LONGEST: usize = 25;

/// Reads a declaration, without escapes and comments.
pub(super) fn read(property: &str, value: &str, scope: Scope<'_>, emit: &mut dyn FnMut(Declaration)) {
    let mut name = [0; LONGEST];
    let Some(name) = name.get_mut(..property.len()) else { return };
    name.copy_from_slice(property.as_bytes());
    name.make_ascii_lowercase();
    let (value, mark) = value.rsplit_once('!').unwrap_or((value, ""));
    let is_important = mark.trim().eq_ignore_ascii_case("important");
    if !mark.is_empty() && !is_important {
        return;
    }
    let mut set = |slot, value| emit(Declaration { slot, value, is_important });
    let name = str::from_utf8(name).unwrap_or_default();
    if matches!(name, "animation" | "animation-name" | "-webkit-animation" | "-webkit-animation-name") {
        // They take precedence over all declarations that are not important.
        let of_animation = |(slot, value)| Declaration { slot, value, is_important: true };
        scope.animations(value).map(of_animation).for_each(emit);
    } else if name == "all" {
        resets(value.trim_end(), &mut set);
    } else if is_of_paint(name) {
        paints(name, value.trim_end(), &mut set);
    } else if is_of_place(name) {
        let value = value.trim_end();
        if value.bytes().any(|b| b.is_ascii_uppercase()) {
            places(name, &value.to_ascii_lowercase(), &mut set);
        } else {
            places(name, value, &mut set);
        }
    }
}
