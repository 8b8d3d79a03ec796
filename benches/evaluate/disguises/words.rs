// SPDX-License-Identifier: GPL-3.0-or-later
//! Other words, other orders and other wordings of the advertisement itself.

use super::copy::{Copy, Disguise};
use crate::draft::Part;
use crate::text::{Language, Writer, reworded};

pub(super) const DISGUISES: &[Disguise] = &[
    ("unchanged", |c| c.plain()),
    ("sentences_shuffled", shuffled),
    ("paragraphs_shuffled", paragraphs_shuffled),
    ("sentences_left_out", left_out),
    ("words_replaced_5", |c| replaced(c, 5)),
    ("words_replaced_10", |c| replaced(c, 10)),
    ("words_replaced_20", |c| replaced(c, 20)),
    ("words_replaced_30", |c| replaced(c, 30)),
    ("words_left_out_10", words_left_out),
    ("words_added_10", words_added),
    ("words_swapped_10", words_swapped),
    ("typing_errors_10", typing_errors),
    ("numbers_changed", numbers_changed),
    ("spun_two", |c| spun(c, 2)),
    ("spun_three", |c| spun(c, 3)),
    ("spun_two_shuffled", spun_shuffled),
    ("spun_words", spun_words),
    ("spun_head", spun_head),
    ("replaced_10_shuffled", replaced_shuffled),
    ("replaced_10_above_line", replaced_above),
    ("replaced_5_names", replaced_names),
    ("half_rewritten", half_rewritten),
    ("upper_case_some", upper_case),
];

fn shuffled(c: &mut Copy<'_>) -> Part {
    let lengths: Vec<usize> = c.paragraphs.iter().map(Vec::len).collect();
    let mut all: Vec<String> = c.paragraphs.concat();
    // The link stays at the end.
    let last = all.len() - 1;
    c.w.shuffle(&mut all[..last]);
    let mut rest = all.into_iter();
    c.paragraphs = lengths.into_iter().map(|n| rest.by_ref().take(n).collect()).collect();
    c.plain()
}

fn paragraphs_shuffled(c: &mut Copy<'_>) -> Part {
    let last = c.paragraphs.len() - 1;
    c.w.shuffle(&mut c.paragraphs[..last]);
    c.plain()
}

/// A fifth of them.
fn left_out(c: &mut Copy<'_>) -> Part {
    let last = c.paragraphs.len() - 1;
    for paragraph in &mut c.paragraphs[..last] {
        paragraph.retain(|_| !c.w.percent(20));
    }
    c.paragraphs.retain(|paragraph| !paragraph.is_empty());
    c.plain()
}

/// So many of a hundred words.
fn replaced(c: &mut Copy<'_>, percent: usize) -> Part {
    c.each_word(|w, word| if w.percent(percent) { w.word().to_owned() } else { word.to_owned() });
    c.plain()
}

fn words_left_out(c: &mut Copy<'_>) -> Part {
    c.each_word(|w, word| if w.percent(10) { String::new() } else { word.to_owned() });
    c.plain()
}

fn words_added(c: &mut Copy<'_>) -> Part {
    c.each_word(|w, word| if w.percent(10) { format!("{word} {}", w.word()) } else { word.to_owned() });
    c.plain()
}

fn words_swapped(c: &mut Copy<'_>) -> Part {
    c.each_sentence(|w, sentence| {
        let mut words: Vec<&str> = sentence.split(' ').collect();
        for at in 1..words.len() {
            if w.percent(10) {
                words.swap(at - 1, at);
            }
        }
        words.join(" ")
    });
    c.plain()
}

/// Two letters change places.
fn typing_errors(c: &mut Copy<'_>) -> Part {
    c.each_word(|w, word| {
        let mut letters: Vec<char> = word.chars().collect();
        if letters.len() > 3 && w.percent(10) {
            let at = w.within(1..letters.len() - 1);
            letters.swap(at - 1, at);
        }
        letters.into_iter().collect()
    });
    c.plain()
}

/// A price, a code and a date in each second sentence.
fn numbers_changed(c: &mut Copy<'_>) -> Part {
    c.each_sentence(|w, sentence| match w.below(4) {
        0 => format!("{sentence} ({} / {})", w.money(), w.digits(5)),
        1 => format!("{sentence} #{}", w.digits(8)),
        _ => sentence.to_owned(),
    });
    c.plain()
}

/// The wording of a sentence with this number: half of its words are replaced, always in the same way.
fn wording(language: &'static Language, sentence: &str, number: usize) -> String {
    if number == 0 {
        return sentence.to_owned();
    }
    let seed: Vec<u64> = sentence.bytes().map(u64::from).chain([number as u64]).collect();
    reworded(language, sentence, 50, &seed)
}

/// Each sentence in one of so many wordings.
fn spun(c: &mut Copy<'_>, wordings: usize) -> Part {
    let language = c.advert.language;
    c.each_sentence(|w, sentence| wording(language, sentence, w.below(wordings)));
    c.plain()
}

fn spun_shuffled(c: &mut Copy<'_>) -> Part {
    spun(c, 2);
    shuffled(c)
}

/// Every third word has a synonym, and each copy one of the two.
fn spun_words(c: &mut Copy<'_>) -> Part {
    let language = c.advert.language;
    c.each_word(|w, word| {
        let mut fixed = Writer::new(language, &word.bytes().map(u64::from).collect::<Vec<_>>());
        let synonym = (fixed.below(3) == 0).then(|| fixed.word());
        synonym.filter(|_| w.percent(50)).unwrap_or(word).to_owned()
    });
    c.plain()
}

/// The subject and the first two sentences have six wordings each.
fn spun_head(c: &mut Copy<'_>) -> Part {
    let language = c.advert.language;
    let wordings = [c.w.below(6), c.w.below(6), c.w.below(6)];
    c.subject = wording(language, &c.subject, wordings[0]);
    for (sentence, number) in c.paragraphs[0].iter_mut().zip(&wordings[1..]) {
        *sentence = wording(language, sentence, *number);
    }
    let greeting = c.w.greeting(&c.to);
    c.between(&greeting, "")
}

fn replaced_shuffled(c: &mut Copy<'_>) -> Part {
    replaced(c, 10);
    shuffled(c)
}

fn replaced_above(c: &mut Copy<'_>) -> Part {
    replaced(c, 10);
    let above = c.w.sentence();
    c.between(&above, "")
}

fn replaced_names(c: &mut Copy<'_>) -> Part {
    replaced(c, 5);
    let (greeting, closing, name) = (c.w.greeting(&c.to), c.w.closing(), c.w.person().name());
    c.between(&greeting, &format!("{closing}\n{name}"))
}

/// Each second sentence differs in each copy.
fn half_rewritten(c: &mut Copy<'_>) -> Part {
    let mut number = 0;
    c.each_sentence(|w, sentence| {
        number += 1;
        if number % 2 == 0 { w.sentence() } else { sentence.to_owned() }
    });
    c.plain()
}

fn upper_case(c: &mut Copy<'_>) -> Part {
    c.each_word(|w, word| if w.percent(20) { word.to_uppercase() } else { word.to_owned() });
    c.plain()
}
