// SPDX-License-Identifier: GPL-3.0-or-later
//! One copy of an advertisement, which a disguise changes.

use super::advert::Advert;
use crate::draft::Part;
use crate::text::{Person, Writer};

/// The parts that a disguise may change, and the random choices of this copy.
#[derive(Debug)]
pub(crate) struct Copy<'a> {
    pub(crate) advert: &'a Advert,
    pub(crate) w: Writer,
    /// The recipient.
    pub(crate) to: Person,
    pub(crate) subject: String,
    pub(crate) paragraphs: Vec<Vec<String>>,
}

impl Copy<'_> {
    pub(crate) fn text(&self) -> String {
        super::advert::joined(&self.paragraphs)
    }

    /// Changes each sentence but the link.
    pub(crate) fn each_sentence(&mut self, mut change: impl FnMut(&mut Writer, &str) -> String) {
        for sentence in self.paragraphs.iter_mut().flatten() {
            if *sentence != self.advert.link {
                *sentence = change(&mut self.w, sentence);
            }
        }
    }

    /// Changes each word but the link.
    pub(crate) fn each_word(&mut self, mut change: impl FnMut(&mut Writer, &str) -> String) {
        self.each_sentence(|w, sentence| {
            sentence
                .split(' ')
                .map(|word| change(w, word))
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        });
    }

    /// Its current text.
    pub(crate) fn plain(&self) -> Part {
        Part::Plain(self.text())
    }

    /// This text around the existing one.
    pub(crate) fn between(&self, above: &str, below: &str) -> Part {
        let gap = |text: &str| if text.is_empty() { "" } else { "\n\n" };
        Part::Plain(format!("{above}{}{}{}{below}", gap(above), self.text(), gap(below)))
    }
}

/// Makes the parts of a copy.
pub(crate) type Make = fn(&mut Copy<'_>) -> Part;

/// A way to make each copy look like another message.
pub(crate) type Disguise = (&'static str, Make);
