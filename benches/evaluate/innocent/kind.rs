// SPDX-License-Identifier: GPL-3.0-or-later
//! Kinds of innocent mail: how each is made, and from where it comes.

use crate::client::From;
use crate::draft::{Draft, Made, Part};
use crate::text::Language;

/// By whom the text of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A person wrote it to another one.
    Letter,
    /// A person's words in the frame of a program or of an office.
    Form,
    /// A program's alone, with other data for each recipient.
    Transaction,
}

impl Class {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Letter => "letter",
            Self::Form => "form",
            Self::Transaction => "transaction",
        }
    }
}

/// Over how many networks, or domains of authors, the messages of a kind are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    One,
    Few(usize),
    /// Each message has another one.
    Each,
}

impl Spread {
    /// Which one a message has.
    const fn of(self, number: usize) -> usize {
        match self {
            Self::One => 0,
            Self::Few(n) => number % n,
            Self::Each => number,
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::One => "1".to_owned(),
            Self::Few(n) => n.to_string(),
            Self::Each => "each".to_owned(),
        }
    }
}

/// Makes the parts of one message, and may change what the draft has.
pub(crate) type Make = fn(&mut Draft) -> Part;

/// Messages that have a frame, or a block, in common and nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    pub(crate) language: &'static Language,
    pub(crate) networks: Spread,
    pub(crate) domains: Spread,
    pub(crate) make: Make,
}

/// A kind of letters.
pub(super) const fn letters(
    name: &'static str,
    language: &'static Language,
    networks: Spread,
    domains: Spread,
    make: Make,
) -> Kind {
    Kind { name, class: Class::Letter, language, networks, domains, make }
}

/// A kind of forms that persons fill.
pub(super) const fn forms(
    name: &'static str,
    language: &'static Language,
    networks: Spread,
    domains: Spread,
    make: Make,
) -> Kind {
    Kind { name, class: Class::Form, language, networks, domains, make }
}

/// A kind of programs' mail.
pub(super) const fn transactions(
    name: &'static str,
    language: &'static Language,
    networks: Spread,
    domains: Spread,
    make: Make,
) -> Kind {
    Kind { name, class: Class::Transaction, language, networks, domains, make }
}

impl Kind {
    /// So many messages, of which each name and number gives the same ones.
    pub(crate) fn messages(&self, place: usize, n: usize) -> Vec<Made> {
        let one = |number: usize| {
            let domain = format!("{}{}.example", self.name.replace('_', "-"), self.domains.of(number));
            let mut draft = Draft::new(self.language, &[place as u64], number, domain);
            let part = (self.make)(&mut draft);
            // Networks of kinds do not meet each other, nor those of the domains in lists.
            let network = 100_000 + 1000 * place as u32 + self.networks.of(number) as u32;
            Made { raw: draft.message(&part), from: From::Network(network) }
        };
        (0..n).map(one).collect()
    }
}
