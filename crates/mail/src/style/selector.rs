// SPDX-License-Identifier: GPL-3.0-or-later
//! Selectors, as far as an element by itself tells whether they fit.

use cssparser::{Parser, Token};
use html5ever::LocalName;

/// Classes in one compound that are told apart. Each costs a look at the classes of an element.
const MAX_CLASSES: usize = 4;

/// Weights of specificity (Selectors Level 4, 17), far enough from one another for what mail has.
const ID: u32 = 1 << 16;
const CLASS: u32 = 1 << 8;
const TYPE: u32 = 1;

/// What an element must be: its type, its id, its classes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Compound {
    pub(super) kind: Option<LocalName>,
    pub(super) id: Option<String>,
    pub(super) classes: Vec<String>,
}

/// One selector of a list, of which the last compound was read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) compound: Compound,
    pub(super) specificity: u32,
    /// Whether it asks for nothing but the compound. Otherwise it may fit or not.
    pub(super) is_simple: bool,
}

/// Reads a list of selectors. Those of a pseudo-element are left out, as no text of the page is in it.
///
/// `None` where it is not a list of selectors; its rule is then invalid.
pub(super) fn list(input: &mut Parser<'_>) -> Option<Vec<Selector>> {
    let mut all = Vec::new();
    let mut reader = Reader::new();
    while let Ok(token) = input.next_including_whitespace() {
        if matches!(token, Token::Comma) {
            all.extend(std::mem::replace(&mut reader, Reader::new()).finish()?);
        } else {
            let token = token.clone();
            reader.token(&token, input)?;
        }
    }
    all.extend(reader.finish()?);
    Some(all)
}

struct Reader {
    selector: Selector,
    /// Nothing of the compound was read yet; of the whole selector.
    is_empty: bool,
    is_all_empty: bool,
    /// Blanks were read, which begin the next compound if one follows.
    is_apart: bool,
    is_of_pseudo_element: bool,
}

impl Reader {
    fn new() -> Self {
        let selector = Selector { is_simple: true, ..Selector::default() };
        Self { selector, is_empty: true, is_all_empty: true, is_apart: false, is_of_pseudo_element: false }
    }

    fn finish(self) -> Option<Option<Selector>> {
        // It must not end with a combinator.
        (!self.is_empty).then(|| (!self.is_of_pseudo_element).then_some(self.selector))
    }

    fn token(&mut self, token: &Token<'_>, input: &mut Parser<'_>) -> Option<()> {
        match token {
            Token::WhiteSpace(_) => {
                self.is_apart = !self.is_empty;
                return Some(());
            }
            Token::Delim('>' | '+' | '~') => {
                // None at the beginning.
                self.next_compound();
                return (!self.is_all_empty).then_some(());
            }
            _ => (),
        }
        if self.is_apart {
            self.next_compound();
        }
        let is_first = std::mem::replace(&mut self.is_empty, false);
        self.is_all_empty = false;
        let selector = &mut self.selector;
        match token {
            Token::Delim('*') if is_first => (),
            Token::Ident(name) if is_first => {
                selector.compound.kind = Some(LocalName::from(name.to_ascii_lowercase()));
                selector.specificity += TYPE;
            }
            Token::IDHash(name) => {
                selector.is_simple &= selector.compound.id.is_none();
                selector.compound.id = Some((**name).to_owned());
                selector.specificity = selector.specificity.saturating_add(ID);
            }
            Token::Delim('.') => {
                let Ok(Token::Ident(name)) = input.next_including_whitespace() else { return None };
                selector.specificity = selector.specificity.saturating_add(CLASS);
                if selector.compound.classes.len() < MAX_CLASSES {
                    selector.compound.classes.push((**name).to_owned());
                } else {
                    selector.is_simple = false;
                }
            }
            Token::SquareBracketBlock => self.pseudo(CLASS),
            Token::Colon => match input.next_including_whitespace().ok()? {
                Token::Colon => {
                    self.is_of_pseudo_element = true;
                    return matches!(
                        input.next_including_whitespace(),
                        Ok(Token::Ident(_) | Token::Function(_))
                    )
                    .then_some(());
                }
                Token::Ident(name) if is_old_pseudo_element(name) => self.is_of_pseudo_element = true,
                Token::Ident(_) => self.pseudo(CLASS),
                // `:where()` has none, `:is()` that of its arguments: at least nothing, and at most an id.
                Token::Function(_) => self.pseudo(ID),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    fn pseudo(&mut self, specificity: u32) {
        self.selector.is_simple = false;
        self.selector.specificity = self.selector.specificity.saturating_add(specificity);
    }

    fn next_compound(&mut self) {
        self.selector.compound = Compound::default();
        self.selector.is_simple = false;
        self.is_empty = true;
        self.is_apart = false;
    }
}

/// Those that may be written with a single colon.
fn is_old_pseudo_element(name: &str) -> bool {
    ["before", "after", "first-line", "first-letter"].iter().any(|old| name.eq_ignore_ascii_case(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<String>> {
        let written = |s: Selector| {
            let kind = s.compound.kind.map(|kind| kind.to_string()).unwrap_or_default();
            let id = s.compound.id.map(|id| format!("#{id}")).unwrap_or_default();
            let classes: String = s.compound.classes.iter().map(|class| format!(".{class}")).collect();
            format!("{}{kind}{id}{classes} {:x}", if s.is_simple { "" } else { "?" }, s.specificity)
        };
        Some(list(&mut Parser::new(text))?.into_iter().map(written).collect())
    }

    #[test]
    fn the_last_compound_is_read() {
        for (text, expected) in [
            ("P.x , #a", &["p.x 101", "#a 10000"][..]),
            ("*", &[" 0"]),
            ("*.x.y", &[".x.y 200"]),
            (".\\6b x", &[".kx 100"]),
            ("div > p.x", &["?p.x 102"]),
            ("div p", &["?p 2"]),
            (" p ", &["p 1"]),
            ("a:hover", &["?a 101"]),
            ("td[width]", &["?td 101"]),
            (".a.b.c.d.e", &["?.a.b.c.d 500"]),
            ("p::before, .x:after, b", &["b 1"]),
            ("p:not(.x)", &["?p 10001"]),
        ] {
            let found = read(text);
            assert_eq!(
                found.as_deref(),
                Some(&expected.iter().map(|&s| s.to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_list_is_not_read() {
        for text in ["", ",", "p,", "> p", "p >", ". x", "#1", "p..x", "p*", ".x p.", "p:", "@x", "p{", "5"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
