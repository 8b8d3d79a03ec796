// SPDX-License-Identifier: GPL-3.0-or-later
//! Text that style sheets insert before or behind that of elements (CSS Generated Content Module Level 3).

use super::cascade::{Found, Rank};
use super::compound::{Pseudo, Selector};
use super::tree::Own;
use cssparser::{ParseError, Parser, Token};

/// Bytes of text that one rule may insert.
const MAX_TEXT: usize = 1 << 10;

/// Encloses the name of an attribute whose value replaces it. No text of a style sheet contains it.
const ATTRIBUTE: char = '\0';

/// A rule that inserts text.
#[derive(Debug)]
pub(super) struct Generated {
    selector: Selector,
    rank: Option<Rank>,
    content: String,
}

/// The text of a `content` property, without pictures and counters; marks enclose names of attributes.
pub(super) fn content(input: &mut Parser<'_>) -> Option<String> {
    let mut text = String::new();
    while let Ok(token) = input.next() {
        match token.clone() {
            Token::QuotedString(part) => text.extend(part.chars().filter(|&c| c != ATTRIBUTE)),
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
            _ => (),
        }
    }
    while input.next().is_ok() {}
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text.contains(|c: char| c.is_alphanumeric()).then_some(text)
}

impl Generated {
    /// The most rules that are read of one page.
    pub(super) const MAX: usize = 32;

    /// A rule with this selector and text; `found` are its other declarations.
    pub(super) fn new(selector: Selector, content: &str, found: &[Found]) -> Self {
        let rank = found.first().map(|&(_, rank, _)| Rank { specificity: selector.specificity, ..rank });
        Self { selector, rank, content: content.to_owned() }
    }

    pub(super) fn is_for(&self, pseudo: Pseudo) -> bool {
        self.selector.pseudo == Some(pseudo)
    }

    pub(super) const fn selector(&self) -> &Selector {
        &self.selector
    }

    pub(super) fn rank(&self) -> (u32, Option<Rank>) {
        (self.selector.specificity, self.rank)
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
