// SPDX-License-Identifier: GPL-3.0-or-later
//! Attribute selectors: `[name~="value" i]`.

use cssparser::{Parser, Token};
use html5ever::LocalName;

/// The test of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    There,
    Equal,
    Word,
    Dash,
    Start,
    End,
    Part,
}

/// A test of one attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: LocalName,
    test: Test,
    value: String,
    any_case: bool,
}

impl Attribute {
    /// Tests that the attribute exists.
    pub(super) fn named(name: &str) -> Self {
        Self { name: LocalName::from(name), test: Test::There, value: String::new(), any_case: false }
    }

    /// Bytes of the value that it asks for.
    pub(super) const fn bytes(&self) -> usize {
        self.value.len()
    }

    /// Reads the text between brackets.
    pub(super) fn read(input: &mut Parser<'_>) -> Option<Self> {
        let Ok(Token::Ident(name)) = input.next() else { return None };
        let name = LocalName::from(name.to_ascii_lowercase());
        if input.is_exhausted() {
            return Some(Self { name, ..Self::named("") });
        }
        let test = match input.next().ok()? {
            Token::Delim('=') => Test::Equal,
            Token::IncludeMatch => Test::Word,
            Token::DashMatch => Test::Dash,
            Token::PrefixMatch => Test::Start,
            Token::SuffixMatch => Test::End,
            Token::SubstringMatch => Test::Part,
            _ => return None,
        };
        let (Token::Ident(value) | Token::QuotedString(value)) = input.next().ok()? else { return None };
        let value = (**value).to_owned();
        let any_case = match input.next() {
            Ok(Token::Ident(flag)) if flag.eq_ignore_ascii_case("i") => true,
            Ok(Token::Ident(flag)) if flag.eq_ignore_ascii_case("s") => false,
            Ok(_) => return None,
            // Values of these are case-insensitive (HTML standard, 4.16.2).
            Err(_) => {
                matches!(&*name, "type" | "align" | "dir" | "lang" | "rel" | "color" | "bgcolor" | "method")
            }
        };
        let value = if any_case { value.to_ascii_lowercase() } else { value };
        input.is_exhausted().then_some(Self { name, test, value, any_case })
    }

    /// Whether this value passes the test. Linear in both.
    pub(super) fn fits(&self, value: &str) -> bool {
        let lower;
        let value = if self.any_case {
            lower = value.to_ascii_lowercase();
            &*lower
        } else {
            value
        };
        let asked = &*self.value;
        match self.test {
            Test::There => true,
            Test::Equal => value == asked,
            Test::Word => value.split_ascii_whitespace().any(|word| word == asked),
            Test::Dash => {
                value.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }
            Test::Start => !asked.is_empty() && value.starts_with(asked),
            Test::End => !asked.is_empty() && value.ends_with(asked),
            Test::Part => {
                !asked.is_empty() && memchr::memmem::find(value.as_bytes(), asked.as_bytes()).is_some()
            }
        }
    }
}
