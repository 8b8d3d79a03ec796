// SPDX-License-Identifier: GPL-3.0-or-later
//! Kinds of innocent mail, with their generators and networks.

use crate::client::From;
use crate::draft::{Draft, Made, Part};
use crate::text::Language;

/// The author of a message's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A person, who wrote to another one.
    Letter,
    /// A person, within the frame of a program or of an office.
    Form,
    /// A program, with other data for each recipient.
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

/// The number of networks, or of authors' domains, of a kind's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    One,
    Few(usize),
    /// Each message has another one.
    Each,
}

impl Spread {
    /// The one of this message.
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

/// Makes the parts of one message, and may change the draft.
pub(crate) type Make = fn(&mut Draft) -> Part;

/// Messages that have only a frame, or a block, in common.
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

/// A kind of forms filled by persons.
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
    /// So many messages; the same name and number give the same ones.
    pub(crate) fn messages(&self, place: usize, n: usize) -> Vec<Made> {
        let one = |number: usize| {
            let domain = format!("{}{}.example", self.name.replace('_', "-"), self.domains.of(number));
            let mut draft = Draft::new(self.language, &[place as u64], number, domain);
            let part = (self.make)(&mut draft);
            // Kinds share no networks with each other or with the domains in lists.
            let network = 100_000 + 1000 * place as u32 + self.networks.of(number) as u32;
            Made { raw: draft.message(&part), from: From::Network(network) }
        };
        (0..n).map(one).collect()
    }
}
