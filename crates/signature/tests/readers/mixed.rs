// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages put together at random: structure, fields, encoding, page, style. READERS_SEED makes others.

use super::rows::{Row, Writer, message};
use bulkmark_samples::encode::{base64_lines, quoted_printable};

const KEYS: &[&str] = &[
    ".x",
    "div.o .x",
    ".o > .x",
    "h4 + .x",
    "h4 ~ .x",
    ".o .x:last-child",
    ".x:not(.z)",
    ":is(.x,.z)",
    "[class~=x]",
    ".o:has(.m) .x",
    ".x:nth-last-child(2)",
    ".x:only-child",
    "p.x",
    "*",
    ".z",
];
const SAYS: &[&str] = &[
    "display:none",
    "visibility:hidden",
    "font-size:0",
    "opacity:0",
    "color:#fff",
    "height:0;overflow:hidden",
    "position:absolute;left:-9999px",
    "text-indent:-9999px",
    "clip-path:inset(50%)",
    "display:block",
    "color:#333;background:#eee",
    "transform:scale(0)",
];
const BODIES: &[&str] = &[
    "<div class=o><p class=x>{a}</p></div>",
    "<div class=o><h4>{a}</h4><p class=x>{b}</p></div>",
    "<div class=o><i class=m></i><p class=x>{a}</p><p>{b}</p></div>",
    "<table class=o><tr><td class=x>{a}<td>{b}</table>",
    "<div class='x y'>{a}</div><span class=x>{b}</span>",
    "<ul class=o><li>{a}<li class=x>{b}<li>{c}</ul>",
    "<p>mi<b>lli</b>on gar<u>den</u> <span class=x>{a}</span>",
    "<a href=http://x.example class=x>{a}</a><br>{b}",
    "<section class=o><span class=x>{a}</span> {b}</section>",
];

/// `count` of them.
pub(super) fn rows(rows: &mut Vec<Row>, seed: &str, count: usize) {
    for number in 0..count {
        let name = format!("mixed/{seed}.{number}");
        let mut writer = Writer::new(&name);
        let page = page(&mut writer);
        let part = encoded(&mut writer, "text/html", &page);
        let raw = wrapped(&mut writer, part);
        rows.push(Row { page: Some(page), ..Row::new(&name, raw) });
    }
}

fn pick<'a>(writer: &mut Writer, from: &[&'a str]) -> &'a str {
    from[writer.below(from.len())]
}

fn page(writer: &mut Writer) -> String {
    let rules: String = (0..1 + writer.below(3))
        .map(|_| format!("{}{{{}}}", pick(writer, KEYS), pick(writer, SAYS)))
        // A page without visible text tests nothing.
        .filter(|rule| !rule.starts_with('*') || rule.contains("block"))
        .collect();
    let media = pick(writer, &["", " media=screen", " type='text/css'"]);
    let mut body = format!("<p>{}</p>", writer.words(24));
    for _ in 0..1 + writer.below(3) {
        let of = pick(writer, BODIES);
        body += &format!("\r\n{}", writer.fill(of));
    }
    body += &format!("<p>{}</p>", writer.words(12));
    match writer.below(3) {
        0 => format!("<style{media}>{rules}</style>{body}"),
        1 => format!(
            "<!DOCTYPE html><html><head><style{media}>{rules}</style></head><body>{body}</body></html>"
        ),
        _ => format!("<html><body>{body}<style{media}>{rules}</style></body></html>"),
    }
}

/// A part of some type, with its header, in any transfer encoding.
fn encoded(writer: &mut Writer, kind: &str, text: &str) -> String {
    let charset =
        pick(writer, &["", "; charset=utf-8", "; charset=\"us-ascii\"", ";\r\n\tcharset=ISO-8859-1 (Latin)"]);
    let (name, body) = match writer.below(3) {
        0 => ("base64", base64_lines(text.as_bytes(), 60)),
        1 => ("Quoted-Printable", quoted_printable(text.as_bytes(), 72, &|i| i % 11 == 0)),
        _ => ("8bit", text.to_owned()),
    };
    format!("Content-Type: {kind}{charset}\r\nContent-Transfer-Encoding: {name}\r\n\r\n{body}\r\n")
}

fn wrapped(writer: &mut Writer, part: String) -> Vec<u8> {
    let other = writer.words(24);
    let plain = encoded(writer, "text/plain", &other);
    let body = match writer.below(4) {
        0 => part,
        1 => multi("alternative", &[plain, part]),
        2 => multi("mixed", &[multi("alternative", &[plain, part])]),
        _ => {
            multi("related", &[part, "Content-Type: image/gif\r\nContent-ID: <i>\r\n\r\nzzz\r\n".to_owned()])
        }
    };
    let (fields, body) = body.split_once("\r\n\r\n").unwrap_or_default();
    message(&format!("{fields}\r\n"), body)
}

fn multi(kind: &str, parts: &[String]) -> String {
    let boundary = format!("=_{kind}.{}", parts.len());
    let parts: String = parts.iter().map(|part| format!("--{boundary}\r\n{part}\r\n")).collect();
    format!("Content-Type: multipart/{kind};\r\n boundary=\"{boundary}\"\r\n\r\n{parts}--{boundary}--\r\n")
}
