// SPDX-License-Identifier: GPL-3.0-or-later
//! Contents of messages, and all forms in which a mailer or relay may write the same content.

use super::encode::{base64_lines, quoted_printable};

/// The content: a tree of parts, apart from its written form.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Lines of words.
    Text(Vec<Vec<String>>),
    /// A page.
    Html(Vec<Piece>),
    /// A file's bytes.
    File(Vec<u8>),
    /// The subtype, and the parts.
    Multipart(&'static str, Vec<Self>),
    /// A forwarded message: its subject and its content.
    Message(String, Box<Self>),
}

/// A piece of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// A word.
    Word(String),
    /// The target of a link.
    Link(String),
}

/// The written form: every choice that a mailer or relay makes. Each decision takes the next number.
#[derive(Debug, Clone)]
pub struct Style(pub Vec<u32>, pub usize);

impl Style {
    fn choose(&mut self, n: usize) -> usize {
        self.1 += 1;
        // The position is mixed in, so that a short row of numbers is not repeated.
        let number =
            u64::from(self.0[self.1 % self.0.len()]) ^ (self.1 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (number.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.choose(from.len())]
    }
}

/// Single-byte charsets that contain the test's words. Latin words fit the first three, Russian ones the last two.
fn in_charset(text: &str, name: &str) -> Option<Vec<u8>> {
    const RUSSIAN: &str = "абвгдежзийклмнопрстуфхцчшщъыьэюя";
    // KOI8-R orders its letters by their Latin sound.
    const KOI8: &str = "юабцдефгхийклмнопярстужвьызшэщчъ";
    text.chars()
        .map(|c| match (name, c) {
            (_, '\0'..='\x7F') => Some(c as u8),
            ("iso-8859-1" | "windows-1252", '\u{A0}'..='\u{FF}') => Some(c as u32 as u8),
            ("iso-8859-15", 'à'..='ÿ') => Some(c as u32 as u8),
            ("koi8-r", _) => KOI8.chars().position(|k| k == c).map(|i| 0xC0 + i as u8),
            ("windows-1251", _) => RUSSIAN.chars().position(|k| k == c).map(|i| 0xE0 + i as u8),
            _ => None,
        })
        .collect()
}

/// The text in a charset that can hold it, and its name.
fn charset(text: &str, style: &mut Style) -> (String, Vec<u8>) {
    let names = ["iso-8859-1", "windows-1252", "iso-8859-15", "koi8-r", "windows-1251", "UTF-8"];
    let name = style.pick(&names);
    match in_charset(text, name) {
        Some(bytes) => (name.to_owned(), bytes),
        None => ("\"utf-8\"".to_owned(), text.as_bytes().to_vec()),
    }
}

/// Words with any white space between them.
fn spaced(words: &[String], style: &mut Style) -> String {
    words
        .iter()
        .map(|word| word.clone() + style.pick(&[" ", " ", "  ", "\t", "\r\n", " \r\n", "\u{200B} "]))
        .collect()
}

fn html(pieces: &[Piece], style: &mut Style) -> String {
    let mut html = style
        .pick(&["", "<!DOCTYPE html>\r\n<html><body>", "<HTML><head><title>any</title></head>"])
        .to_owned();
    for piece in pieces {
        match piece {
            Piece::Word(word) => {
                let word: String = word
                    .chars()
                    .map(|c| match style.choose(3) {
                        0 if !c.is_ascii() => format!("&#{};", c as u32),
                        1 if !c.is_ascii() => format!("&#x{:x};", c as u32),
                        _ => c.to_string(),
                    })
                    .collect();
                let (open, close) =
                    [("", ""), ("<b>", "</b>"), ("<p class=x>", "</p>"), ("<!-- c -->", "")][style.choose(4)];
                html += &format!("{open}{word}{close}");
            }
            Piece::Link(target) => {
                let quote = style.pick(&["'", "\""]);
                let target = target.replace('&', "&amp;");
                html += &format!(
                    "<a {}href={quote}{target}{quote}>",
                    style.pick(&["", "class=b ", "\r\n id='1' "])
                );
            }
        }
        html += style.pick(&[
            " ",
            "\r\n",
            "&nbsp;",
            "<br>",
            "<span>",
            "<img src=\"cid:1@here\">",
            "<style>p{}</style>",
        ]);
    }
    html
}

/// The field for a transfer encoding, and the body in it.
fn transfer(bytes: &[u8], binary: bool, style: &mut Style) -> (String, Vec<u8>) {
    match style.choose(if binary { 2 } else { 5 }) {
        0 | 1 if binary || style.choose(2) == 0 => {
            let width = [76, 60, 64, 4][style.choose(4)];
            (style.pick(&["base64", "BASE64"]).to_owned(), base64_lines(bytes, width).into_bytes())
        }
        0..=2 => {
            let (width, every) = ([76, 40, 20][style.choose(3)], 1 + style.choose(9));
            let quoted = quoted_printable(bytes, width, &|i| i % every == 0);
            ("Quoted-Printable".to_owned(), quoted.into_bytes())
        }
        _ => (style.pick(&["8bit", "7bit", "binary"]).to_owned(), bytes.to_vec()),
    }
}

/// Fields that do not affect the content.
fn noise(style: &mut Style) -> String {
    let value = style.choose(1 << 20);
    match style.choose(4) {
        0 => format!("Received: from a.example\r\n\tby b.example; id {value}\r\n"),
        1 => format!("X-Spam-Status: No, score={value}\r\n"),
        2 => format!("Content-ID: <{value}@example.org>\r\nContent-Description: any\r\n"),
        _ => String::new(),
    }
}

fn fields(media: &str, rest: &str, style: &mut Style) -> String {
    let name = style.pick(&["Content-Type", "content-type", "CONTENT-TYPE"]);
    let fold = style.pick(&[" ", "\r\n ", "\r\n\t"]);
    noise(style) + &format!("{name}: {media};{fold}{rest}\r\n") + &noise(style)
}

/// The entity, with its header.
pub fn write(part: &Part, style: &mut Style) -> Vec<u8> {
    let leaf = |media: &str, text: &str, style: &mut Style| {
        let (charset, bytes) = charset(text, style);
        let (encoding, body) = transfer(&bytes, false, style);
        let head = fields(media, &format!("charset={charset}"), style);
        [format!("{head}Content-Transfer-Encoding: {encoding}\r\n\r\n").as_bytes(), &body].concat()
    };
    match part {
        Part::Text(lines) => {
            let text: String = lines.iter().map(|line| spaced(line, style) + "\r\n").collect();
            leaf("text/plain", &text, style)
        }
        Part::Html(pieces) => leaf("text/html", &html(pieces, style), style),
        Part::File(bytes) => {
            let (encoding, body) = transfer(bytes, true, style);
            let head = fields("application/octet-stream", &format!("name=\"{}\"", style.choose(1000)), style);
            [format!("{head}Content-Transfer-Encoding: {encoding}\r\n\r\n").as_bytes(), &body].concat()
        }
        Part::Multipart(sub, parts) => {
            let boundary =
                format!("=_{}{}", style.choose(1 << 30), style.pick(&["", "=", "_x y", "'()+,./:?"]));
            let head = fields(&format!("multipart/{sub}"), &format!("boundary=\"{boundary}\""), style);
            let mut out = format!("{head}\r\n{}", style.pick(&["", "A preamble.\r\n"])).into_bytes();
            for part in parts {
                out.extend(
                    format!("{}--{boundary}{}\r\n", style.pick(&["", "\r\n"]), style.pick(&["", "  "]))
                        .bytes(),
                );
                out.extend(write(part, style));
                out.extend(b"\r\n");
            }
            out.extend(format!("--{boundary}--\r\n{}", style.pick(&["", "An epilogue.\r\n"])).bytes());
            out
        }
        Part::Message(subject, content) => {
            let head = fields("message/rfc822", "x=y", style);
            let inner = write(content, style);
            [format!("{head}\r\nSubject: {subject}\r\n").as_bytes(), &inner].concat()
        }
    }
}

/// The whole message.
pub fn mail(content: &Part, style: &mut Style) -> Vec<u8> {
    let sender = style.choose(1000);
    let head =
        format!("From: \"N {sender}\" <n{sender}@example.org>\r\nSubject: {sender}\r\n{}", noise(style));
    let raw = [head.as_bytes(), &write(content, style)].concat();
    // A file has LF alone. Binary parts are always encoded here, so they do not change.
    if style.choose(3) == 0 { raw.into_iter().filter(|&b| b != b'\r').collect() } else { raw }
}
