// SPDX-License-Identifier: GPL-3.0-or-later
//! Characters that look like others, or that are invisible; and tricks of HTML pages.

use super::copy::{Copy, Disguise};
use crate::draft::Part;
use crate::text::{Writer, escaped, page};

pub(super) const DISGUISES: &[Disguise] = &[
    ("homoglyphs_20", |c| homoglyphs(c, 20)),
    ("homoglyphs_all", |c| homoglyphs(c, 100)),
    ("leet_20", |c| leet(c, 20)),
    ("leet_all", |c| leet(c, 100)),
    ("split_words_20", split_words),
    ("dotted_words_20", dotted_words),
    ("zero_width", |c| inserted(c, "\u{200B}")),
    ("zero_width_joiners", |c| inserted(c, "\u{2060}")),
    ("soft_hyphens", |c| inserted(c, "\u{AD}")),
    ("combining_marks", |c| inserted(c, "\u{335}")),
    ("html_plain", |c| Part::Html(page(&c.text()))),
    ("html_comments", html_comments),
    ("html_spans", html_spans),
    ("html_invisible_spans", html_invisible),
    ("html_table_words", html_table_words),
    ("html_table_lines", html_table_lines),
    ("html_entities", html_entities),
    ("html_attributes", html_attributes),
    ("html_pictures", html_pictures),
    ("hidden_above_none", |c| hidden(c, "display:none", true)),
    ("hidden_above_size", |c| hidden(c, "font-size:0px;line-height:0", true)),
    ("hidden_above_white", |c| hidden(c, "color:#ffffff;background:#ffffff", true)),
    ("hidden_below_size", |c| hidden(c, "font-size:1px", false)),
    ("hidden_below_clip", |c| hidden(c, "position:absolute;left:-9999px", false)),
    ("hidden_title", hidden_title),
];

fn like(letter: char) -> char {
    match letter {
        'a' => 'а',
        'c' => 'с',
        'e' => 'е',
        'i' => 'і',
        'o' => 'о',
        'p' => 'р',
        'x' => 'х',
        'y' => 'у',
        other => other,
    }
}

fn leet_of(letter: char) -> char {
    match letter {
        'a' => '4',
        'e' => '3',
        'i' => '1',
        'o' => '0',
        's' => '5',
        't' => '7',
        other => other,
    }
}

/// Some characters in so many of a hundred words.
fn letters_of_some(c: &mut Copy<'_>, percent: usize, other: fn(char) -> char) -> Part {
    c.each_word(|w, word| {
        if !w.percent(percent) {
            return word.to_owned();
        }
        word.chars().map(|letter| if w.percent(50) { other(letter) } else { letter }).collect()
    });
    c.plain()
}

fn homoglyphs(c: &mut Copy<'_>, percent: usize) -> Part {
    letters_of_some(c, percent, like)
}

fn leet(c: &mut Copy<'_>, percent: usize) -> Part {
    letters_of_some(c, percent, leet_of)
}

/// A word in two pieces, split at its own place.
fn cut(w: &mut Writer, word: &str, with: &str) -> String {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < 4 {
        return word.to_owned();
    }
    let (front, back) = letters.split_at(w.within(1..letters.len() - 1));
    format!("{}{with}{}", front.iter().collect::<String>(), back.iter().collect::<String>())
}

fn split_words(c: &mut Copy<'_>) -> Part {
    c.each_word(|w, word| if w.percent(20) { cut(w, word, " ") } else { word.to_owned() });
    c.plain()
}

fn dotted_words(c: &mut Copy<'_>) -> Part {
    c.each_word(|w, word| {
        if !w.percent(20) {
            return word.to_owned();
        }
        let mark = w.pick(&[".", "-", "_", "*"]);
        word.chars().map(String::from).collect::<Vec<_>>().join(mark)
    });
    c.plain()
}

/// In half of the words.
fn inserted(c: &mut Copy<'_>, what: &str) -> Part {
    c.each_word(|w, word| if w.percent(50) { cut(w, word, what) } else { word.to_owned() });
    c.plain()
}

/// A page whose words are made so, from the escaped ones.
fn words_as(c: &mut Copy<'_>, make: impl Fn(&mut Writer, &str) -> String) -> String {
    let paragraphs = std::mem::take(&mut c.paragraphs);
    let mut out = "<html><body>\n".to_owned();
    for paragraph in &paragraphs {
        let text = paragraph.join(" ");
        let words: Vec<String> = text.split(' ').map(|word| make(&mut c.w, &escaped(word))).collect();
        out += &format!("<p>{}</p>\n", words.join(" "));
    }
    c.paragraphs = paragraphs;
    out + "</body></html>\n"
}

fn html_comments(c: &mut Copy<'_>) -> Part {
    Part::Html(words_as(c, |w, word| {
        let comment = format!("<!-- {} -->", w.token(8));
        if w.percent(30) { cut(w, word, &comment) } else { word.to_owned() }
    }))
}

fn html_spans(c: &mut Copy<'_>) -> Part {
    Part::Html(words_as(c, |w, word| {
        let span = format!("</span><span class=\"{}\">", w.token(5));
        if w.percent(30) { format!("<span>{}</span>", cut(w, word, &span)) } else { word.to_owned() }
    }))
}

/// Invisible words after each fifth word.
fn html_invisible(c: &mut Copy<'_>) -> Part {
    Part::Html(words_as(c, |w, word| {
        if !w.percent(20) {
            return word.to_owned();
        }
        let style = w.pick(&["display:none", "font-size:0", "visibility:hidden", "color:#fff"]);
        format!("{word} <span style=\"{style}\">{}</span>", w.word())
    }))
}

fn html_table_words(c: &mut Copy<'_>) -> Part {
    let cells = words_as(c, |_, word| format!("<td>{word}</td>"));
    Part::Html(cells.replace("<p>", "<table><tr>").replace("</p>", "</tr></table>"))
}

/// Rows with a random number of words.
fn html_table_lines(c: &mut Copy<'_>) -> Part {
    let rows = words_as(
        c,
        |w, word| if w.percent(15) { format!("{word}</td></tr><tr><td>") } else { word.to_owned() },
    );
    Part::Html(rows.replace("<p>", "<table><tr><td>").replace("</p>", "</td></tr></table>"))
}

fn html_entities(c: &mut Copy<'_>) -> Part {
    Part::Html(words_as(c, |w, word| {
        if word.contains('&') {
            return word.to_owned();
        }
        let letter = |letter: char| {
            if w.percent(30) { format!("&#{};", letter as u32) } else { letter.to_string() }
        };
        word.chars().map(letter).collect()
    }))
}

fn html_attributes(c: &mut Copy<'_>) -> Part {
    Part::Html(words_as(c, |w, word| {
        let (id, class, data) = (w.token(6), w.token(9), w.token(12));
        if w.percent(20) {
            format!("<b id=\"{id}\" class=\"{class}\" data-x=\"{data}\">{word}</b>")
        } else {
            word.to_owned()
        }
    }))
}

fn html_pictures(c: &mut Copy<'_>) -> Part {
    let page = words_as(c, |w, word| {
        if !w.percent(5) {
            return word.to_owned();
        }
        format!(
            "{word} <img src=\"https://{}.example/{}.gif\" width=\"1\" height=\"1\" alt=\"\">",
            w.token(8),
            w.token(12)
        )
    });
    Part::Html(page)
}

/// An invisible paragraph.
fn hidden(c: &mut Copy<'_>, style: &str, above: bool) -> Part {
    let (shown, text) = (page(&c.text()), c.w.paragraph(4..8));
    let hidden = format!("<div style=\"{style}\">{}</div>\n", escaped(&text));
    let (mark, at) = if above {
        ("<body>\n", format!("<body>\n{hidden}"))
    } else {
        ("</body>", format!("{hidden}</body>"))
    };
    Part::Html(shown.replacen(mark, &at, 1))
}

fn hidden_title(c: &mut Copy<'_>) -> Part {
    let (shown, title, style) = (page(&c.text()), c.w.paragraph(2..4), c.w.token(300));
    let head = format!("<head><title>{}</title><style>.x{{content:\"{style}\"}}</style>", escaped(&title));
    Part::Html(shown.replacen("<head>", &head, 1))
}
