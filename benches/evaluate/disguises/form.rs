// SPDX-License-Identifier: GPL-3.0-or-later
//! Other forms of the same message: quotes, rules, encodings, parts, links; and texts with only an address in common.

use super::copy::{Copy, Disguise};
use crate::draft::Part;
use crate::text::{marked, page, wrapped};
use bulkmark_samples::encode::{base64_lines, quoted_printable};

pub(super) const DISGUISES: &[Disguise] = &[
    ("rewrapped", rewrapped),
    ("quoted", |c| Part::Plain(marked(&c.text(), "> "))),
    ("quoted_lines_some", quoted_some),
    ("quoted_below_line", quoted_below),
    ("bars_before_lines", bars),
    ("rule_first", |c| Part::Plain(format!("-- \n{}", c.text()))),
    ("rule_below_line", rule_below),
    ("rules_between", rules),
    ("forwarded_head", forwarded),
    ("original_head", original),
    ("base64_damaged", |c| damaged_base64(c)),
    ("quoted_printable_damaged", damaged_quoted),
    ("quoted_printable_random", random_quoted),
    ("charset_wrong", charset),
    ("alternative_random_plain", alternative_plain),
    ("alternative_random_html", alternative_html),
    ("alternative_random_third", alternative_third),
    ("mixed_random_first", mixed_first),
    ("mixed_pieces", mixed_pieces),
    ("enclosed", enclosed),
    ("enclosed_below_letter", enclosed_below),
    ("attached_text", attached),
    ("link_host", |c| link(c, "host")),
    ("link_path", |c| link(c, "path")),
    ("link_query", |c| link(c, "query")),
    ("links_many", links_many),
];

/// The only text in common.
pub(super) const REWRITTEN: &[Disguise] = &[
    ("rewritten_link", |c| rewritten(c, &c.advert.link.clone())),
    ("rewritten_telephone", |c| rewritten(c, &c.advert.telephone.clone())),
    ("rewritten_address", |c| rewritten(c, &c.advert.address.clone())),
];

fn rewrapped(c: &mut Copy<'_>) -> Part {
    let width = c.w.within(30..90);
    Part::Plain(wrapped(&c.text(), width))
}

fn quoted_some(c: &mut Copy<'_>) -> Part {
    let text = wrapped(&c.text(), 60);
    Part::Plain(text.lines().map(|line| format!("{}{line}\n", c.w.pick(&["", "> ", ">> ", "| "]))).collect())
}

/// Formatted as a quote below somebody's answer.
fn quoted_below(c: &mut Copy<'_>) -> Part {
    let (own, date, who) = (c.w.sentence(), c.w.date(), c.w.person());
    let wrote = c.advert.language.wrote.replace("{d}", &date).replace("{n}", &who.name());
    Part::Plain(format!("{own}\n\n{wrote}\n{}", marked(&c.text(), "> ")))
}

fn bars(c: &mut Copy<'_>) -> Part {
    let mark = c.w.pick(&["| ", ": ", "* ", "# ", "» ", "]  ", "~ "]);
    Part::Plain(marked(&wrapped(&c.text(), 66), mark))
}

fn rule_below(c: &mut Copy<'_>) -> Part {
    let (own, rule) = (c.w.sentence(), c.w.pick(&["-- ", "---", "_____________", "==========", "* * *"]));
    Part::Plain(format!("{own}\n\n{rule}\n{}", c.text()))
}

fn rules(c: &mut Copy<'_>) -> Part {
    let length = c.w.within(5..60);
    let rule = c.w.pick(&["-", "=", "_", "*", "~"]).repeat(length);
    Part::Plain(c.text().replace("\n\n", &format!("\n{rule}\n")))
}

fn forwarded(c: &mut Copy<'_>) -> Part {
    let (who, to, date, topic) = (c.w.person(), c.w.person(), c.w.date(), c.w.topic());
    c.subject = format!("Fwd: {topic}");
    let head = format!(
        "---------- Forwarded message ---------\nFrom: {} <{}@example.net>\nDate: {date}\nSubject: {topic}\nTo: {}",
        who.name(),
        who.local(),
        to.name()
    );
    c.between(&head, "")
}

/// Below a line of the sender's own.
fn original(c: &mut Copy<'_>) -> Part {
    let (own, who, date, topic) = (c.w.sentence(), c.w.person(), c.w.date(), c.w.topic());
    let block = c.advert.language.original.replace("{n}", &who.name()).replace("{d}", &date);
    let block = block.replace("{t}", &c.to.name()).replace("{s}", &topic);
    c.between(&format!("{own}\n\n{block}"), "")
}

/// A part with this encoding and body.
fn encoded(encoding: &str, body: &str) -> Part {
    let body = body.replace("\r\n", "\n");
    Part::Raw(format!(
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n{body}\n"
    ))
}

/// Blanks, marks and lines of any length between the digits, which readers ignore.
fn damaged_base64(c: &mut Copy<'_>) -> Part {
    let width = c.w.within(20..90);
    let mut body = String::new();
    for line in base64_lines(c.text().as_bytes(), width).lines() {
        let at = c.w.below(line.len());
        let noise = c.w.pick(&["", " ", "!", "#", "\t", "~"]);
        body += &format!("{}{noise}{}\n", &line[..at], &line[at..]);
    }
    encoded("base64", &body)
}

/// Marks without a meaning.
fn damaged_quoted(c: &mut Copy<'_>) -> Part {
    let width = c.w.within(30..76);
    let text = quoted_printable(c.text().replace('\n', "\r\n").as_bytes(), width, &|_| false);
    let damaged: Vec<String> =
        text.lines()
            .map(|line| {
                if c.w.percent(10) && !line.ends_with('=') { format!("{line} =ZZ") } else { line.to_owned() }
            })
            .collect();
    encoded("quoted-printable", &damaged.join("\n"))
}

fn random_quoted(c: &mut Copy<'_>) -> Part {
    let (width, every) = (c.w.within(20..76), c.w.within(2..9));
    let text = quoted_printable(c.text().replace('\n', "\r\n").as_bytes(), width, &|i| i % every == 0);
    encoded("quoted-printable", &text)
}

/// A charset that does not fit the bytes, another one each time.
fn charset(c: &mut Copy<'_>) -> Part {
    let name = c.w.pick(&["iso-8859-1", "windows-1251", "us-ascii", "x-unknown", "koi8-r", "utf-8", "big5"]);
    let text = c.text();
    Part::Raw(format!(
        "Content-Type: text/plain; charset={name}\nContent-Transfer-Encoding: 8bit\n\n{text}\n"
    ))
}

fn alternative_plain(c: &mut Copy<'_>) -> Part {
    let other = c.w.paragraphs(2..4);
    Part::both(other, page(&c.text()))
}

fn alternative_html(c: &mut Copy<'_>) -> Part {
    let other = c.w.paragraphs(2..4);
    Part::both(c.text(), page(&other))
}

/// A third alternative of a kind that no reader shows.
fn alternative_third(c: &mut Copy<'_>) -> Part {
    let other = c.w.paragraphs(2..4);
    let third = Part::Raw(format!(
        "Content-Type: text/x-watch-html; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{other}\n"
    ));
    Part::Multipart("alternative", vec![c.plain(), third, Part::Html(page(&c.text()))])
}

fn mixed_first(c: &mut Copy<'_>) -> Part {
    let other = c.w.paragraph(3..6);
    Part::Multipart("mixed", vec![Part::Plain(other), c.plain()])
}

/// Each paragraph as a separate part, of either kind.
fn mixed_pieces(c: &mut Copy<'_>) -> Part {
    let pieces: Vec<String> = c.paragraphs.iter().map(|paragraph| paragraph.join(" ")).collect();
    let part =
        |piece: &String| if c.w.percent(50) { Part::Plain(piece.clone()) } else { Part::Html(page(piece)) };
    Part::Multipart("mixed", pieces.iter().map(part).collect())
}

/// The message as an enclosed one, with a header of its own.
fn message(c: &mut Copy<'_>) -> Part {
    let (who, topic, id) = (c.w.person(), c.w.topic(), c.w.token(12));
    let text = c.plain().write("=_inner");
    Part::Raw(format!(
        "Content-Type: message/rfc822\n\nFrom: {}@example.net\nSubject: {topic}\nMessage-ID: <{id}@example.net>\nMIME-Version: 1.0\n{text}",
        who.local()
    ))
}

fn enclosed(c: &mut Copy<'_>) -> Part {
    message(c)
}

fn enclosed_below(c: &mut Copy<'_>) -> Part {
    let letter = c.w.paragraph(2..5);
    Part::Multipart("mixed", vec![Part::Plain(letter), message(c)])
}

fn attached(c: &mut Copy<'_>) -> Part {
    let (letter, name) = (c.w.paragraph(2..5), c.w.token(8));
    let text = Part::Raw(format!(
        "Content-Type: text/plain; charset=utf-8; name=\"{name}.txt\"\nContent-Disposition: attachment; filename=\"{name}.txt\"\n\
         Content-Transfer-Encoding: 8bit\n\n{}\n",
        c.text()
    ));
    Part::Multipart("mixed", vec![Part::Plain(letter), text])
}

/// The link of each copy differs in this part.
fn link(c: &mut Copy<'_>, part: &str) -> Part {
    let (host, path) = c.advert.link["https://".len()..].split_once('/').unwrap_or(("", ""));
    let token = c.w.token(12);
    let link = match part {
        "host" => format!("https://{token}.example/{path}"),
        "path" => format!("https://{host}/{token}/{}", c.w.digits(6)),
        _ => format!("{}?id={token}&m={}", c.advert.link, c.to.local()),
    };
    Part::Plain(c.text().replace(&c.advert.link, &link))
}

/// Links to others' pages, different in each copy.
fn links_many(c: &mut Copy<'_>) -> Part {
    let links: String =
        (0..8).map(|_| format!("https://{}.example/{}\n", c.w.token(9), c.w.token(5))).collect();
    c.between("", &links)
}

/// A text as long as the advertisement, of which only this part is the same in all copies.
fn rewritten(c: &mut Copy<'_>, what: &str) -> Part {
    let least = c.advert.words();
    c.subject = c.w.topic();
    let mut sentences = Vec::new();
    while sentences.iter().map(|s: &String| s.split(' ').count()).sum::<usize>() < least {
        sentences.push(c.w.sentence());
    }
    let at = c.w.below(sentences.len());
    sentences.insert(at, what.to_owned());
    c.paragraphs = sentences.chunks(4).map(<[String]>::to_vec).collect();
    c.plain()
}
