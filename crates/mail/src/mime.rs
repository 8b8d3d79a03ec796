// SPDX-License-Identifier: GPL-3.0-or-later
//! The MIME tree of a message, walked within bounds.

use super::charset;
use super::decode::{Mime, fields_of, name_and_value};
use super::part::{File, Text, begins_html};
use memchr::memmem;

/// Parts that are told apart; what follows the last of them is shown as one attachment. Real mail has some dozens, a
/// digest some hundreds.
pub const MAX_PARTS: usize = 1000;

/// Levels of multiparts and enclosed messages; what is deeper is shown as an attachment. Bounces of forwarded digests
/// reach eight; the bound keeps the walk's recursion and its repeated scans small.
pub const MAX_DEPTH: usize = 32;

/// Header fields of an enclosed message that a reader sees, and that are therefore content.
const SHOWN: [&[u8]; 5] = [b"from", b"to", b"cc", b"subject", b"date"];

/// Is shown the content of a message, part by part, in order.
pub trait Visitor {
    /// A text part that is not HTML, or an attached file of any text type, decoded.
    fn text(&mut self, text: Text<'_>);
    /// An HTML part, decoded, with its tags.
    fn html(&mut self, html: Text<'_>);
    /// Any other part.
    fn file(&mut self, file: File<'_>);
    /// An enclosed message begins; the values of the header fields that a reader sees, as they stand.
    fn message(&mut self, fields: &[&[u8]]);
    /// The enclosed message that began last ends.
    fn message_end(&mut self);
    /// The parts of a program's report on another message follow (RFC 6522): a bounce, a receipt.
    fn report(&mut self) {}
    /// The report that began last ends.
    fn report_end(&mut self) {}
    /// Parts follow of which a reader is shown one, the last that his program can show (RFC 2046, 5.1.4).
    fn alternatives(&mut self) {}
    /// The next of the alternatives begins; what is shown up to the next one, or to their end, belongs to it.
    fn alternative(&mut self) {}
    /// The alternatives that began last end.
    fn alternatives_end(&mut self) {}
}

/// Shows the content of an entity: a whole message, or a part with its MIME header.
pub(super) fn walk(entity: &[u8], visitor: &mut dyn Visitor) {
    Walk { visitor, parts: 0 }.entity(entity, 0, false);
}

struct Walk<'a> {
    visitor: &'a mut dyn Visitor,
    parts: usize,
}

impl Walk<'_> {
    /// `in_digest`: parts without a type are messages there (RFC 2046, 5.1.5).
    fn entity(&mut self, entity: &[u8], depth: usize, in_digest: bool) {
        let (head, body) = split_entity(entity);
        let mime = Mime::of(head);
        let default = if in_digest { ("message", "rfc822") } else { ("text", "plain") };
        let media = mime.media.as_ref().map_or(default, |(kind, sub)| (kind, sub));
        match (media, &mime.boundary) {
            (("multipart" | "message", _), _) if depth >= MAX_DEPTH => self.visitor.file(bare(entity)),
            (("multipart", sub), Some(boundary)) => {
                let (alternative, report) = (sub == "alternative", sub == "report");
                if alternative {
                    self.visitor.alternatives();
                }
                if report {
                    self.visitor.report();
                }
                let has_parts = self.multipart(body, boundary, depth, sub);
                if report {
                    self.visitor.report_end();
                }
                if !has_parts {
                    // Whatever it is called, it is shown as text.
                    self.leaf(&mime, "text", "plain", body);
                }
                if alternative {
                    self.visitor.alternatives_end();
                }
            }
            (("message", "rfc822" | "global"), _) => {
                let message = mime.encoding.exact(body);
                let (head, _) = split_entity(&message);
                self.visitor.message(&SHOWN.map(|wanted| first_value(head, wanted)));
                self.entity(&message, depth + 1, false);
                self.visitor.message_end();
            }
            // Signatures over the message differ from copy to copy and are no content.
            (("application", "pkcs7-signature" | "x-pkcs7-signature" | "pgp-signature"), _) => (),
            ((kind, sub), _) => self.leaf(&mime, kind, sub, body),
        }
    }

    fn leaf(&mut self, mime: &Mime, kind: &str, sub: &str, body: &[u8]) {
        self.parts += 1;
        let bytes = mime.encoding.decoded(body);
        let is_attachment = mime.is_attachment;
        match (kind, sub) {
            // A multipart without a usable boundary is shown as text, as mail readers do.
            ("text" | "multipart", _) => {
                let declared = mime.charset.as_deref();
                let (exact, is_sure) = charset::exact(&bytes.exact, declared);
                let shown = (!is_sure || !bytes.is_clean()).then(|| {
                    charset::shown(bytes.shown(), declared, sub == "html" || begins_html(bytes.shown()))
                });
                let shown = shown.as_deref().unwrap_or(&exact);
                let text = Text { exact: &exact, shown, subtype: sub, is_attachment };
                if (kind, sub) == ("text", "html") && !is_attachment {
                    self.visitor.html(text);
                } else {
                    self.visitor.text(text);
                }
            }
            _ => self.visitor.file(File {
                exact: &bytes.exact,
                shown: bytes.shown(),
                media: (kind, sub),
                id: mime.id.as_deref(),
                is_attachment,
            }),
        }
    }

    /// False when no delimiter line is found at all.
    fn multipart(&mut self, body: &[u8], boundary: &str, depth: usize, sub: &str) -> bool {
        let mut delimiters = Delimiters::new(body, boundary).peekable();
        if delimiters.peek().is_none() {
            return false;
        }
        while let Some(delimiter) = delimiters.next() {
            if delimiter.closes {
                break;
            }
            if self.parts >= MAX_PARTS {
                self.visitor.file(bare(&body[delimiter.after..]));
                break;
            }
            if sub == "alternative" {
                self.visitor.alternative();
            }
            let end = delimiters.peek().map_or(body.len(), |next| next.before);
            self.entity(&body[delimiter.after..end.max(delimiter.after)], depth + 1, sub == "digest");
        }
        true
    }
}

/// What is not looked into.
fn bare(bytes: &[u8]) -> File<'_> {
    let media = ("application", "octet-stream");
    File { exact: bytes, shown: bytes, media, id: None, is_attachment: true }
}

/// The value of the first field of that name, or nothing.
fn first_value<'a>(head: &'a [u8], wanted: &[u8]) -> &'a [u8] {
    let mut fields = fields_of(head).filter_map(name_and_value);
    fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map_or(&[], |(_, value)| value)
}

/// A delimiter line of a multipart.
struct Delimiter {
    /// End of what stands before it: the line end in front belongs to the delimiter (RFC 2046, 5.1.1).
    before: usize,
    /// Start of the line after it.
    after: usize,
    closes: bool,
}

struct Delimiters<'a> {
    body: &'a [u8],
    finder: memmem::Finder<'static>,
    needle: usize,
    at: usize,
}

impl<'a> Delimiters<'a> {
    fn new(body: &'a [u8], boundary: &str) -> Self {
        let needle = format!("--{boundary}");
        Self {
            body,
            finder: memmem::Finder::new(needle.as_bytes()).into_owned(),
            needle: needle.len(),
            at: 0,
        }
    }
}

impl Iterator for Delimiters<'_> {
    type Item = Delimiter;

    fn next(&mut self) -> Option<Delimiter> {
        loop {
            let start = self.at + self.finder.find(self.body.get(self.at..)?)?;
            self.at = start + self.needle;
            let rest = &self.body[self.at..];
            if start > 0 && self.body[start - 1] != b'\n' {
                continue;
            }
            let (rest, closes) = rest.strip_prefix(b"--").map_or((rest, false), |rest| (rest, true));
            let line_end = memchr::memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
            if !rest[..line_end].iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let before = self.body[..start]
                .strip_suffix(b"\n")
                .map_or(&self.body[..start], |line| line.strip_suffix(b"\r").unwrap_or(line));
            let after = self.body.len() - rest.len() + line_end;
            self.at = after;
            return Some(Delimiter { before: before.len(), after, closes });
        }
    }
}

/// Header block and body of an entity. The block keeps the line end of its last field; the empty line goes to neither.
pub(super) fn split_entity(entity: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    loop {
        let line = &entity[at..];
        match line {
            [] => return (entity, &[]),
            [b'\n', body @ ..] | [b'\r', b'\n', body @ ..] => return (&entity[..at], body),
            _ => at = entity.len() - after_line(line).len(),
        }
    }
}

/// What follows the first line.
pub(super) fn after_line(bytes: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', bytes).map_or(&[], |i| &bytes[i + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down what is shown, one line each.
    #[derive(Default)]
    struct Script(Vec<String>);

    impl Visitor for Script {
        fn text(&mut self, text: Text<'_>) {
            self.0.push(format!("text {}", text.exact));
        }
        fn html(&mut self, html: Text<'_>) {
            self.0.push(format!("html {}", html.exact));
        }
        fn file(&mut self, file: File<'_>) {
            self.0.push(format!("attachment {}", String::from_utf8_lossy(file.exact)));
        }
        fn message(&mut self, fields: &[&[u8]]) {
            self.0.push(format!("message {}", String::from_utf8_lossy(&fields.join(&b'|'))));
        }
        fn message_end(&mut self) {
            self.0.push("end".to_owned());
        }
    }

    fn script(raw: &str) -> Vec<String> {
        let mut script = Script::default();
        walk(raw.replace('\n', "\r\n").as_bytes(), &mut script);
        script.0
    }

    #[test]
    fn parts_in_order() {
        let raw = "Content-Type: multipart/mixed; boundary=\"b 1\"\n\npreamble\n--b 1\n\none\n--b 1x\n\
                   --b 1  \nContent-Type: multipart/alternative; boundary=c\n\n--c\nContent-Type: text/plain\n\ntwo\n\
                   --c\nContent-Type: text/html\n\n<p>three\n--c--\n\
                   --b 1\nContent-Type: text/html; name=x.html\nContent-Disposition: attachment\n\n<p>four\n\
                   --b 1\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\nZml2ZQ==\n\
                   --b 1\nContent-Type: application/pkcs7-signature\n\nxyz\n--b 1--\nepilogue\n";
        assert_eq!(
            script(raw),
            ["text one\r\n--b 1x", "text two", "html <p>three", "text <p>four", "attachment five"]
        );
    }

    #[test]
    fn enclosed_messages() {
        let raw = "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: s\n t\nFrom: f\nX: y\n\none\n\
                   --b\nContent-Type: message/rfc822\n\nContent-Type: text/html\n\n<b>two\n--b--\n";
        assert_eq!(
            script(raw),
            ["message f|||s\r\n t|", "text one", "end", "message ||||", "html <b>two", "end"]
        );
    }

    #[test]
    fn broken_structure_is_still_shown() {
        assert_eq!(script(""), ["text "]);
        assert_eq!(script("\nbody"), ["text body"]);
        assert_eq!(script("Content-Type: multipart/mixed\n\none"), ["text one"]);
        assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\none"), ["text one"]);
        assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\n--b\n\none"), ["text one"]);
        assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\n--b\n--b"), ["text ", "text "]);
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let nested = "Content-Type: message/rfc822\n\n".repeat(1000) + "\ntext";
        let shown = script(&nested);
        assert_eq!(shown.len(), 2 * MAX_DEPTH + 1);
        assert!(shown[MAX_DEPTH].starts_with("attachment Content-Type"));

        let many = "Content-Type: multipart/mixed; boundary=b\n\n".to_owned() + &"--b\n\nx\n".repeat(10_000);
        let shown = script(&many);
        assert_eq!(shown.len(), MAX_PARTS + 1);
        assert!(shown[MAX_PARTS].starts_with("attachment \r\nx\r\n--b"));
    }
}
