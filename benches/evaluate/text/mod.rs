// SPDX-License-Identifier: GPL-3.0-or-later
//! Synthetic text in five languages: sentences of a grammar whose lists are so long that two letters rarely share a run of eight
//! words.

mod dutch;
mod english;
mod french;
mod german;
mod spanish;

pub(crate) use dutch::DUTCH;
pub(crate) use english::ENGLISH;
pub(crate) use french::FRENCH;
pub(crate) use german::GERMAN;
pub(crate) use spanish::SPANISH;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// The words of a language, and the blocks that mailers and companies put around letters.
#[derive(Debug)]
pub(crate) struct Language {
    pub(crate) code: &'static str,
    first: &'static [&'static str],
    last: &'static [&'static str],
    /// Verb phrases with "I", with a third person, and the infinitive.
    verbs: &'static [(&'static str, &'static str, &'static str)],
    objects: &'static [&'static str],
    of: &'static [&'static str],
    with: &'static [&'static str],
    when: &'static [&'static str],
    /// With the hour in the place of `{}`.
    at: &'static str,
    /// With a person's name.
    to_whom: &'static str,
    /// With the name of a town.
    place: &'static str,
    adverbs: &'static [&'static str],
    joins: &'static [&'static str],
    /// Questions with an infinitive `{v}`, an object `{o}` and a time `{w}`.
    asks: &'static [&'static str],
    roles: &'static [&'static str],
    pub(crate) greetings: &'static [&'static str],
    pub(crate) closings: &'static [&'static str],
    /// The line above a quote: `{d}` is the date, `{n}` the name.
    pub(crate) wrote: &'static str,
    /// The block above a quote without marks; `{t}` is the recipient, `{s}` the subject.
    pub(crate) original: &'static str,
    /// Whole answers.
    pub(crate) short: &'static [&'static str],
    /// The disclaimer of one company.
    pub(crate) disclaimer: &'static str,
}

/// All five languages.
pub(crate) static LANGUAGES: [&Language; 5] = [&ENGLISH, &GERMAN, &FRENCH, &SPANISH, &DUTCH];

/// A writer or reader.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) first: &'static str,
    pub(crate) last: &'static str,
}

impl Person {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.first, self.last)
    }

    /// The name in ASCII, as in a mail address.
    pub(crate) fn local(&self) -> String {
        let plain = |c: char| match c {
            'ä' | 'á' | 'à' | 'Á' => 'a',
            'é' | 'è' | 'É' | 'ê' => 'e',
            'í' => 'i',
            'ö' | 'ó' | 'Ó' => 'o',
            'ü' | 'ú' | 'Ú' => 'u',
            c => c.to_ascii_lowercase(),
        };
        format!("{}.{}", self.first, self.last).chars().map(plain).filter(char::is_ascii).collect()
    }
}

/// A source of text and choices: the same for the same seed.
#[derive(Debug)]
pub(crate) struct Writer {
    random: SplitMix64,
    pub(crate) language: &'static Language,
}

impl Writer {
    /// A source whose text depends only on these numbers.
    pub(crate) fn new(language: &'static Language, seed: &[u64]) -> Self {
        let mixed = seed
            .iter()
            .fold(0x5EED, |all: u64, &part| SplitMix64::seed_from_u64(all.rotate_left(17) ^ part).next_u64());
        Self { random: SplitMix64::seed_from_u64(mixed), language }
    }

    /// A number below `n`, which must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n as u64) as usize
    }

    pub(crate) fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.len())
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            let other = self.below(at + 1);
            all.swap(at, other);
        }
    }

    pub(crate) fn person(&mut self) -> Person {
        let language = self.language;
        Person { first: self.pick(language.first), last: self.pick(language.last) }
    }

    /// An invented town.
    fn town(&mut self) -> String {
        const FRONT: [&str; 24] = [
            "Ald", "Bram", "Cal", "Dors", "Elm", "Fall", "Grim", "Hart", "Isen", "Jar", "Kel", "Lam", "Mer",
            "Nor", "Ost", "Pell", "Quer", "Ros", "Sund", "Tol", "Ul", "Vern", "Wes", "Zel",
        ];
        const BACK: [&str; 12] =
            ["bach", "by", "dal", "feld", "gate", "holm", "ing", "mond", "oven", "sund", "ville", "wick"];
        format!("{}{}", FRONT[self.below(FRONT.len())], BACK[self.below(BACK.len())])
    }

    /// `14:35`.
    pub(crate) fn clock(&mut self) -> String {
        format!("{}:{:02}", self.within(7..22), 5 * self.below(12))
    }

    /// `7.11.2026`; the year does not matter.
    pub(crate) fn date(&mut self) -> String {
        let separator = if self.language.code == "en" || self.language.code == "fr" { '/' } else { '.' };
        format!("{}{separator}{}{separator}2026", self.within(1..29), self.within(1..13))
    }

    /// So many digits.
    pub(crate) fn digits(&mut self, n: usize) -> String {
        (0..n).map(|_| char::from(b'0' + self.below(10) as u8)).collect()
    }

    pub(crate) fn money(&mut self) -> String {
        format!("{}.{:02}", self.within(8..2900), self.below(100))
    }

    /// Letters and digits without a meaning.
    pub(crate) fn token(&mut self, n: usize) -> String {
        const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz234567890";
        (0..n).map(|_| char::from(ALPHABET[self.below(ALPHABET.len())])).collect()
    }

    /// A word of the grammar's lists, longer than three letters.
    pub(crate) fn word(&mut self) -> &'static str {
        let language = self.language;
        loop {
            let list = [language.objects, language.of, language.with, language.when][self.below(4)];
            let words: Vec<&str> = self.pick(list).split(' ').filter(|word| word.len() > 3).collect();
            if !words.is_empty() {
                return words[self.below(words.len())];
            }
        }
    }

    pub(crate) fn greeting(&mut self, to: &Person) -> String {
        let greetings = self.language.greetings;
        self.pick(greetings).replace("{}", to.first)
    }

    pub(crate) fn closing(&mut self) -> &'static str {
        let closings = self.language.closings;
        self.pick(closings)
    }

    /// The name of an object with its context: a subject.
    pub(crate) fn topic(&mut self) -> String {
        let language = self.language;
        capital(&format!("{} {}", self.pick(language.objects), self.pick(language.of)))
    }

    fn clause(&mut self) -> String {
        let language = self.language;
        let (i, other, _) = language.verbs[self.below(language.verbs.len())];
        let mut clause = match self.below(5) {
            0 | 1 => i.to_owned(),
            2 => format!("{} {other}", self.pick(language.roles)),
            3 => format!("{} {other}", self.pick(language.first)),
            _ => format!("{} {other}", self.person().name()),
        };
        let mut add = |more: &str| {
            clause.push(' ');
            clause.push_str(more);
        };
        add(self.pick(language.objects));
        match self.below(10) {
            0..=2 => add(self.pick(language.of)),
            3..=4 => add(&language.to_whom.replace("{}", &self.person().name())),
            _ => {}
        }
        if self.percent(40) {
            add(self.pick(language.adverbs));
        }
        match self.below(10) {
            0..=2 => add(self.pick(language.with)),
            3..=4 => add(&language.place.replace("{}", &self.town())),
            _ => {}
        }
        match self.below(10) {
            0..=3 => add(self.pick(language.when)),
            4..=5 => add(&language.at.replace("{}", &self.clock())),
            _ => {}
        }
        clause
    }

    /// A sentence of 4 to 35 words.
    pub(crate) fn sentence(&mut self) -> String {
        let language = self.language;
        if self.percent(15) {
            let (_, _, infinitive) = language.verbs[self.below(language.verbs.len())];
            let ask = self.pick(language.asks).replace("{v}", infinitive);
            let object = match self.below(3) {
                0 => self.pick(language.objects).to_owned(),
                1 => format!("{} {}", self.pick(language.objects), self.pick(language.of)),
                _ => {
                    let whom = language.to_whom.replace("{}", &self.person().name());
                    format!("{} {whom}", self.pick(language.objects))
                }
            };
            return ask.replace("{o}", &object).replace("{w}", self.pick(language.when));
        }
        let mut sentence = self.clause();
        if self.percent(45) {
            sentence.push_str(", ");
            sentence.push_str(self.pick(language.joins));
            sentence.push(' ');
            sentence.push_str(&self.clause());
        }
        capital(&sentence) + "."
    }

    pub(crate) fn sentences(&mut self, n: usize) -> Vec<String> {
        (0..n).map(|_| self.sentence()).collect()
    }

    /// Sentences in a row.
    pub(crate) fn paragraph(&mut self, sentences: Range<usize>) -> String {
        let n = self.within(sentences);
        self.sentences(n).join(" ")
    }

    /// Paragraphs of two to five sentences, with empty lines between them.
    pub(crate) fn paragraphs(&mut self, n: Range<usize>) -> String {
        let n = self.within(n);
        (0..n).map(|_| self.paragraph(2..6)).collect::<Vec<_>>().join("\n\n")
    }
}

/// The text with so many of a hundred words replaced, always by the same ones for the same seed.
pub(crate) fn reworded(language: &'static Language, text: &str, percent: usize, seed: &[u64]) -> String {
    let mut fixed = Writer::new(language, seed);
    let word = |word: &str| if fixed.percent(percent) { fixed.word().to_owned() } else { word.to_owned() };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The text with a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Lines of at most so many letters, as mailers break them.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let line = |line: &str| {
        let mut out = String::new();
        let mut column = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if column > 0 {
                let fits = column + 1 + length <= width;
                out.push(if fits { ' ' } else { '\n' });
                column = if fits { column + 1 } else { 0 };
            }
            out.push_str(word);
            column += length;
        }
        out
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The text with each line behind a mark.
pub(crate) fn marked(text: &str, mark: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}\n")).collect()
}

/// A page of paragraphs.
pub(crate) fn page(text: &str) -> String {
    let paragraph = |p: &str| format!("<p>{}</p>\n", escaped(p).replace('\n', "<br>\n"));
    let paragraphs: String = text.split("\n\n").map(paragraph).collect();
    format!("<html><head><meta charset=\"utf-8\"></head><body>\n{paragraphs}</body></html>\n")
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
