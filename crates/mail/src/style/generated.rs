// SPDX-License-Identifier: GPL-3.0-or-later
//! Text that style sheets insert before or behind that of elements (CSS Generated Content Module Level 3).

use super::cascade::{Cascade, Rank};
use super::compound::{Pseudo, Selector};
use super::tree::Own;
use super::vars::Scope;
use cssparser::{ParseError, Parser, Token};
use std::rc::Rc;

/// Bytes of text that one rule may insert.
const MAX_TEXT: usize = 1 << 10;

/// Encloses the name of an attribute whose value replaces it. No text of a style sheet contains it.
const ATTRIBUTE: char = '\0';

/// A rule that inserts text.
#[derive(Debug)]
pub(super) struct Generated {
    selector: Selector,
    rank: Rank,
    /// The declarations for its text.
    cascade: Rc<Cascade>,
    /// Empty if it only keeps other rules from inserting text.
    content: String,
}

/// The text of a `content` property, without pictures and counters; marks enclose names of attributes. `None` if browsers ignore the
/// declaration.
pub(super) fn content(input: &mut Parser<'_>, scope: Scope<'_>) -> Option<String> {
    let start = input.state();
    while input.next().is_ok() {}
    let resolved = scope.resolve(input.slice_from(start.position()));
    text_of(&mut Parser::new(&resolved))
}

/// Words of a `content` property; browsers ignore one with another.
const WORDS: [&str; 11] = [
    "none",
    "normal",
    "open-quote",
    "close-quote",
    "no-open-quote",
    "no-close-quote",
    "inherit",
    "initial",
    "unset",
    "revert",
    "revert-layer",
];

fn text_of(input: &mut Parser<'_>) -> Option<String> {
    let mut text = String::new();
    while let Ok(token) = input.next() {
        match token.clone() {
            Token::QuotedString(part) => text.extend(part.chars().filter(|&c| c != ATTRIBUTE)),
            // Its value is unknown.
            Token::Function(name) if name.eq_ignore_ascii_case("var") => return None,
            Token::Function(name) => {
                let is_attribute = name.eq_ignore_ascii_case("attr");
                let of = input.parse_nested_block(|input| {
                    let name = match input.next() {
                        Ok(Token::Ident(name)) if is_attribute => Some(name.to_ascii_lowercase()),
                        _ => None,
                    };
                    while input.next().is_ok() {}
                    Ok::<_, ParseError<()>>(name)
                });
                if let Ok(Some(name)) = of {
                    text.push(ATTRIBUTE);
                    text.push_str(&name);
                    text.push(ATTRIBUTE);
                }
            }
            // The rest is for readers who listen to the page.
            Token::Delim('/' | '!') => break,
            Token::Ident(word) if WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)) => (),
            Token::UnquotedUrl(_) => (),
            _ => return None,
        }
    }
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    let has_word = text.contains(|c: char| c.is_alphanumeric());
    Some(if has_word { text } else { String::new() })
}

impl Generated {
    /// The most rules with text that are read of one page, and of those without.
    pub(super) const MAX: usize = 32;

    /// A rule with this selector and text.
    pub(super) fn new(selector: Selector, content: &str, cascade: Rc<Cascade>, rank: Rank) -> Self {
        Self { selector, rank, cascade, content: content.to_owned() }
    }

    /// Whether it inserts no text.
    pub(super) const fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    pub(super) fn is_for(&self, pseudo: Pseudo) -> bool {
        self.selector.pseudo == Some(pseudo)
    }

    pub(super) const fn selector(&self) -> &Selector {
        &self.selector
    }

    pub(super) const fn rank(&self) -> Rank {
        self.rank
    }

    /// The declarations for its text.
    pub(super) fn cascade(&self) -> &Cascade {
        &self.cascade
    }

    /// The text for an element.
    pub(super) fn text(&self, own: &Own) -> String {
        let mut text = String::new();
        for (at, part) in self.content.split(ATTRIBUTE).enumerate() {
            if at % 2 == 0 {
                text.push_str(part);
            } else if let Some((_, value)) = own.attributes.iter().find(|(name, _)| &**name == part) {
                text.push_str(&value[..value.floor_char_boundary(MAX_TEXT)]);
            }
        }
        text
    }
}
