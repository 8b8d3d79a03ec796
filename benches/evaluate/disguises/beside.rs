// SPDX-License-Identifier: GPL-3.0-or-later
//! Text beside the advertisement that differs in each copy: above, below, between.

use super::copy::{Copy, Disguise};
use crate::draft::Part;
use crate::text::{LANGUAGES, Writer, marked};

pub(super) const DISGUISES: &[Disguise] = &[
    ("above_line", |c| with(c, 1, 0)),
    ("above_two_lines", |c| with(c, 2, 0)),
    ("above_paragraph", |c| with(c, 5, 0)),
    ("above_half", above_half),
    ("above_twice", above_twice),
    ("below_line", |c| with(c, 0, 1)),
    ("below_paragraph", |c| with(c, 0, 5)),
    ("below_twice", below_twice),
    ("above_and_below_line", |c| with(c, 1, 1)),
    ("above_and_below_paragraph", |c| with(c, 5, 5)),
    ("between_paragraphs", between_paragraphs),
    ("between_sentences", between_sentences),
    ("line_noise", line_noise),
    ("nonsense_above", nonsense_above),
    ("nonsense_below", nonsense_below),
    ("names_greeting", names_greeting),
    ("names_throughout", names_throughout),
    ("letter_around", letter_around),
    ("signature_below", signature_below),
    ("disclaimer_below", disclaimer_below),
    ("news_above", news_above),
    ("news_below", news_below),
    ("news_around", news_around),
    ("quoted_below", quoted_below),
    ("other_language_above", other_language_above),
    ("other_language_between", other_language_between),
    ("other_advert_above", other_advert),
];

/// So many sentences above and below.
fn with(c: &mut Copy<'_>, above: usize, below: usize) -> Part {
    let (above, below) = (c.w.sentences(above).join(" "), c.w.sentences(below).join(" "));
    c.between(&above, &below)
}

/// Paragraphs of at least so many words.
fn words(w: &mut Writer, least: usize) -> String {
    let mut text = String::new();
    while text.split_whitespace().count() < least {
        text += &w.paragraph(2..6);
        text += "\n\n";
    }
    text.trim_end().to_owned()
}

fn above_half(c: &mut Copy<'_>) -> Part {
    let above = words(&mut c.w, c.advert.words() / 2);
    c.between(&above, "")
}

fn above_twice(c: &mut Copy<'_>) -> Part {
    let above = words(&mut c.w, 2 * c.advert.words());
    c.between(&above, "")
}

fn below_twice(c: &mut Copy<'_>) -> Part {
    let below = words(&mut c.w, 2 * c.advert.words());
    c.between("", &below)
}

fn between_paragraphs(c: &mut Copy<'_>) -> Part {
    let mut out = Vec::new();
    for paragraph in &c.paragraphs {
        out.push(c.w.sentences(1));
        out.push(paragraph.clone());
    }
    c.paragraphs = out;
    c.plain()
}

fn between_sentences(c: &mut Copy<'_>) -> Part {
    c.each_sentence(|w, sentence| format!("{sentence} {}", w.sentence()));
    c.plain()
}

/// A word without a meaning at the end of each sentence.
fn line_noise(c: &mut Copy<'_>) -> Part {
    c.each_sentence(|w, sentence| format!("{sentence} {}", w.token(7)));
    c.plain()
}

fn nonsense(w: &mut Writer) -> String {
    let words: Vec<String> =
        (0..30).map(|_| w.within(3..10)).collect::<Vec<_>>().into_iter().map(|n| w.token(n)).collect();
    words.join(" ")
}

fn nonsense_above(c: &mut Copy<'_>) -> Part {
    let above = nonsense(&mut c.w);
    c.between(&above, "")
}

fn nonsense_below(c: &mut Copy<'_>) -> Part {
    let below = nonsense(&mut c.w);
    c.between("", &below)
}

fn names_greeting(c: &mut Copy<'_>) -> Part {
    let (greeting, closing) = (c.w.greeting(&c.to), c.w.closing());
    let name = c.w.person().name();
    c.between(&greeting, &format!("{closing}\n{name}"))
}

/// The reader's name and town in each second sentence.
fn names_throughout(c: &mut Copy<'_>) -> Part {
    let (first, last) = (c.to.first, c.to.last);
    c.each_sentence(|w, sentence| match w.below(4) {
        0 => format!("{first}, {sentence}"),
        1 => format!("{} {first} {last}.", sentence.trim_end_matches('.')),
        _ => sentence.to_owned(),
    });
    names_greeting(c)
}

/// A whole letter with the advertisement in its middle.
fn letter_around(c: &mut Copy<'_>) -> Part {
    let (greeting, closing) = (c.w.greeting(&c.to), c.w.closing());
    let (above, below, name) = (c.w.paragraph(2..5), c.w.paragraph(2..5), c.w.person().name());
    c.between(&format!("{greeting}\n\n{above}"), &format!("{below}\n\n{closing}\n{name}"))
}

/// A company's signature, different each time.
fn signature_below(c: &mut Copy<'_>) -> Part {
    let (who, word) = (c.w.person(), c.w.word());
    let below = format!(
        "-- \n{}\n{} {} Ltd\n{} {} Street\nTel. 0{} {}\nhttps://www.{word}{}.example",
        who.name(),
        who.last,
        c.w.topic(),
        c.w.within(1..200),
        c.w.person().last,
        c.w.digits(3),
        c.w.digits(6),
        c.w.token(4)
    );
    c.between("", &below)
}

/// The disclaimer of a company, the same in each copy.
fn disclaimer_below(c: &mut Copy<'_>) -> Part {
    let above = c.w.sentence();
    c.between(&above, c.advert.language.disclaimer)
}

/// Paragraphs in the third person with a headline, as in a newspaper.
fn news(w: &mut Writer) -> String {
    let item = |w: &mut Writer| {
        let (town, date, topic) = (w.person().last, w.date(), w.topic());
        format!("{topic}\n{} ({date}) - {}", town.to_uppercase(), w.paragraph(3..7))
    };
    let n = w.within(2..5);
    (0..n).map(|_| item(w)).collect::<Vec<_>>().join("\n\n")
}

fn news_above(c: &mut Copy<'_>) -> Part {
    let above = news(&mut c.w);
    c.between(&above, "")
}

fn news_below(c: &mut Copy<'_>) -> Part {
    let below = news(&mut c.w);
    c.between("", &below)
}

fn news_around(c: &mut Copy<'_>) -> Part {
    let (above, below) = (news(&mut c.w), news(&mut c.w));
    c.between(&above, &below)
}

/// Formatted as an answer, with the other person's letter quoted below.
fn quoted_below(c: &mut Copy<'_>) -> Part {
    let (letter, wrote) = (c.w.paragraphs(1..3), c.advert.language.wrote.replace("{n}", &c.to.name()));
    let wrote = wrote.replace("{d}", &c.w.date());
    c.subject = format!("Re: {}", c.w.topic());
    c.between("", &format!("{wrote}\n{}", marked(&letter, "> ")))
}

/// A writer in a language other than the advertisement's.
fn foreign(c: &mut Copy<'_>) -> Writer {
    let others: Vec<_> = LANGUAGES.into_iter().filter(|one| one.code != c.advert.language.code).collect();
    let language = others[c.w.below(others.len())];
    Writer::new(language, &[8002, c.w.below(1 << 30) as u64])
}

fn other_language_above(c: &mut Copy<'_>) -> Part {
    let above = foreign(c).paragraph(3..7);
    c.between(&above, "")
}

fn other_language_between(c: &mut Copy<'_>) -> Part {
    let mut w = foreign(c);
    c.paragraphs = c.paragraphs.iter().flat_map(|p| [w.sentences(2), p.clone()]).collect();
    c.plain()
}

/// Two of eight sentences of another sender's offer, above this one.
fn other_advert(c: &mut Copy<'_>) -> Part {
    let mut fixed = Writer::new(c.advert.language, &[8003]);
    let mut all = fixed.sentences(8);
    c.w.shuffle(&mut all);
    let above = all[..2].join(" ");
    c.between(&above, "")
}
