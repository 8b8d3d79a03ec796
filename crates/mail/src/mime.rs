// SPDX-License-Identifier: GPL-3.0-or-later
//! Walks the MIME tree of a message, within bounds.

use super::charset;
use super::cms;
use super::decode::{Mime, addresses, exact_fields_of, fields_of, name_and_value};
use super::part::{File, Text, begins_html};
use memchr::memmem;

/// Separate parts; all behind the last of them are passed on as one attachment. Real mail has some dozens, a digest some hundreds.
pub const MAX_PARTS: usize = 1000;

/// Levels of multiparts and enclosed messages; deeper ones are passed on as attachments. Bounces of forwarded digests reach eight; the
/// bound keeps the walk's recursion and its repeated scans small.
pub const MAX_DEPTH: usize = 32;

/// Header fields of an enclosed message that a reader sees, so that they are content.
const SHOWN: [&[u8]; 5] = [b"from", b"to", b"cc", b"subject", b"date"];

/// Beginnings of the addresses from which mail servers send bounces.
const DAEMONS: [&str; 5] = ["mailer-daemon", "mail-daemon", "maildaemon", "postmaster", "microsoftexchange"];

/// Receives the content of a message, part by part, in order.
pub trait Visitor {
    /// A text part that is not HTML, or an attached file of any text type, decoded.
    fn text(&mut self, text: Text<'_>);
    /// An HTML part, decoded, with its tags.
    fn html(&mut self, html: Text<'_>);
    /// Any other part.
    fn file(&mut self, file: File<'_>);
    /// An enclosed message begins; `fields` are the values of the header fields that a reader sees, as written.
    fn message(&mut self, fields: &[&[u8]]);
    /// The innermost enclosed message ends.
    fn message_end(&mut self);
    /// The parts of a program's report on another message follow (RFC 6522): a bounce, a receipt. `by_daemon`: its visible From is a mail
    /// server's.
    fn report(&mut self, _by_daemon: bool) {}
    /// The innermost report ends.
    fn report_end(&mut self) {}
    /// Alternative parts follow. A mail program shows the last that it can show (RFC 2046, 5.1.4).
    fn alternatives(&mut self) {}
    /// The next alternative begins; it extends to the next one, or to their end.
    fn alternative(&mut self) {}
    /// The innermost alternatives end.
    fn alternatives_end(&mut self) {}
}

/// Passes on the content of a whole message.
pub(super) fn walk(message: &[u8], visitor: &mut dyn Visitor) {
    let mut walk = Walk { visitor, parts: 0, from: Vec::new() };
    // Line ends of old machines, which mail programs accept if there are no others.
    let (head, body) = split_entity(message);
    if memchr::memchr(b'\n', body).is_none() && memchr::memchr(b'\r', body).is_some() {
        let lines =
            |part: &[u8]| part.iter().map(|&b| if b == b'\r' { b'\n' } else { b }).collect::<Vec<_>>();
        return walk.entity(&[head, b"\n", &lines(body)].concat(), 0, Place::Message);
    }
    walk.entity(message, 0, Place::Message);
}

/// The place of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A message.
    Message,
    /// A part of a multipart.
    Part,
    /// A part of a digest, whose default type is a message (RFC 2046, 5.1.5).
    Digest,
    /// A part of a multipart/related that is not its root (RFC 2387, 3.2).
    Related,
}

struct Walk<'a> {
    visitor: &'a mut dyn Visitor,
    parts: usize,
    /// The From of the innermost message, if that is a multipart.
    from: Vec<u8>,
}

impl Walk<'_> {
    fn entity(&mut self, entity: &[u8], depth: usize, place: Place) {
        let (head, body) = if place == Place::Message { split_entity(entity) } else { split_part(entity) };
        let mut mime = Mime::of(head);
        let default = if place == Place::Digest { ("message", "rfc822") } else { ("text", "plain") };
        let media = mime.media.clone();
        let media = media.as_ref().map_or(default, |(kind, sub)| (kind, sub));
        mime.is_related = place == Place::Related && media == ("text", "html");
        match (media, &mime.boundary) {
            (("multipart" | "message", _), _) if depth >= MAX_DEPTH => {
                self.leaf(&mime, "text", "plain", body)
            }
            (("multipart", sub), Some(boundary)) => {
                let (alternative, report) = (sub == "alternative", sub == "report");
                if alternative {
                    self.visitor.alternatives();
                }
                if place == Place::Message {
                    self.from = first_value(head, b"from").to_owned();
                }
                if report {
                    self.visitor.report(is_of_daemon(&self.from));
                }
                let before = self.parts;
                self.multipart(body, boundary, depth, &mime);
                if report {
                    self.visitor.report_end();
                }
                if self.parts == before {
                    // It is shown as text, whatever its type: the text before a closing delimiter, or behind it.
                    let closed = Delimiters::new(body, boundary, true).next();
                    let text = closed.map_or(body, |closing| {
                        let before = &body[..closing.before];
                        if before.trim_ascii().is_empty() { &body[closing.after..] } else { before }
                    });
                    self.leaf(&mime, "text", "plain", text);
                }
                if alternative {
                    self.visitor.alternatives_end();
                }
            }
            (("message", "rfc822" | "global"), _) => {
                let message = mime.encoding.exact(body);
                let (head, _) = split_entity(&message);
                self.parts += 1;
                self.visitor.message(&SHOWN.map(|wanted| first_value(head, wanted)));
                let from = std::mem::take(&mut self.from);
                self.entity(&message, depth + 1, Place::Message);
                self.from = from;
                self.visitor.message_end();
            }
            // Signatures over the message differ from copy to copy and are no content.
            (("application", "pkcs7-signature" | "x-pkcs7-signature" | "pgp-signature"), _) => {
                self.parts += 1
            }
            (("application", "pkcs7-mime" | "x-pkcs7-mime"), _) => {
                let bytes = mime.encoding.decoded(body);
                match cms::signed(bytes.shown()).filter(|_| depth < MAX_DEPTH) {
                    Some(signed) => self.entity(&signed, depth + 1, Place::Part),
                    None => self.leaf(&mime, media.0, media.1, body),
                }
            }
            ((kind, sub), _) => self.leaf(&mime, kind, sub, body),
        }
    }

    fn leaf(&mut self, mime: &Mime, kind: &str, sub: &str, body: &[u8]) {
        self.parts += 1;
        let bytes = mime.encoding.decoded(body);
        let is_attachment = mime.is_attachment || mime.is_related;
        match (kind, sub) {
            // A multipart without a usable boundary is shown as text, as mail readers do.
            ("text" | "multipart", _) => {
                let declared = mime.charset.as_deref();
                let (exact, is_sure) = charset::exact(&bytes.exact, declared);
                let shown = (!is_sure || !bytes.is_clean()).then(|| {
                    charset::shown(bytes.shown(), declared, sub == "html" || begins_html(bytes.shown()))
                });
                let shown = shown.as_deref().unwrap_or(&exact);
                let joined = (mime.deletes_blanks && sub == "plain").then(|| join_lines(shown));
                let shown = joined.as_deref().unwrap_or(shown);
                let text = Text { exact: &exact, shown, subtype: sub, is_attachment };
                if (kind, sub) == ("text", "html") && !mime.is_attachment {
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

    /// Passes on the parts of a multipart; none if no delimiter begins one.
    fn multipart(&mut self, body: &[u8], boundary: &str, depth: usize, mime: &Mime) {
        let sub = mime.media.as_ref().map_or("", |(_, sub)| sub);
        // If no delimiter is valid, those with text behind them count.
        let begins =
            |is_strict| Delimiters::new(body, boundary, is_strict).any(|delimiter| !delimiter.closes);
        let mut delimiters = Delimiters::new(body, boundary, begins(true)).peekable();
        let mut first = true;
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
            let part = &body[delimiter.after..end.max(delimiter.after)];
            let is_first = std::mem::replace(&mut first, false);
            let is_root = || {
                mime.start
                    .as_ref()
                    .map_or(is_first, |start| Mime::of(split_part(part).0).id.as_ref() == Some(start))
            };
            let place = match sub {
                "digest" => Place::Digest,
                "related" if !is_root() => Place::Related,
                _ => Place::Part,
            };
            self.entity(part, depth + 1, place);
        }
    }
}

/// Joins lines that end with a blank and removes the blank (RFC 3676, 4.1).
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        match bare.strip_suffix(' ') {
            Some(flowed) if bare != "-- " => joined.push_str(flowed),
            _ => joined.push_str(line),
        }
    }
    joined
}

/// A file that is not parsed.
fn bare(bytes: &[u8]) -> File<'_> {
    let media = ("application", "octet-stream");
    File { exact: bytes, shown: bytes, media, id: None, is_attachment: true }
}

/// Whether the author of a message is a mail server, by the usual names in bounces (RFC 2142, 5; RFC 3464, 2.1).
fn is_of_daemon(from: &[u8]) -> bool {
    let authors = addresses(&[b"From: ", from].concat());
    authors.iter().any(|author| DAEMONS.iter().any(|name| author.starts_with(name)))
}

/// The value of the first field with that name, or nothing.
fn first_value<'a>(head: &'a [u8], wanted: &[u8]) -> &'a [u8] {
    let mut fields = fields_of(head).filter_map(name_and_value);
    fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map_or(&[], |(_, value)| value)
}

/// A delimiter line of a multipart.
struct Delimiter {
    /// The end of the text before it: the line end in front belongs to the delimiter (RFC 2046, 5.1.1).
    before: usize,
    /// Start of the line after it.
    after: usize,
    closes: bool,
}

struct Delimiters<'a> {
    body: &'a [u8],
    /// Whether only blanks may stand behind a delimiter.
    is_strict: bool,
    finder: memmem::Finder<'static>,
    needle: usize,
    at: usize,
}

impl<'a> Delimiters<'a> {
    fn new(body: &'a [u8], boundary: &str, is_strict: bool) -> Self {
        let needle = format!("--{boundary}");
        Self {
            body,
            is_strict,
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
            let mut behind = rest[..line_end].iter();
            let is_delimiter = match self.is_strict {
                true => behind.all(u8::is_ascii_whitespace),
                false => behind.next().is_none_or(u8::is_ascii_whitespace),
            };
            if !is_delimiter {
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

/// Header block and body of an entity. The block keeps the line end of its last field; the empty line belongs to neither. A line that is no
/// field also begins the body, unless MIME fields follow it before the first empty line.
pub(super) fn split_entity(entity: &[u8]) -> (&[u8], &[u8]) {
    let (end, after) = header_end(entity).unwrap_or((entity.len(), entity.len()));
    (&entity[..end], &entity[after..])
}

/// The same of a part. If no line ends its header, the body begins behind the last MIME field.
fn split_part(part: &[u8]) -> (&[u8], &[u8]) {
    let (end, after) = header_end(part).unwrap_or_else(|| {
        let fields = exact_fields_of(part);
        let mime = fields.scan(0, |at, field| {
            *at += field.len();
            Some(if is_of_mime(field) { *at } else { 0 })
        });
        let end = mime.max().unwrap_or(0);
        (end, end)
    });
    (&part[..end], &part[after..])
}

/// The end of the header and the start of the body; `None` if all lines are fields.
fn header_end(entity: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut ended) = (0, None);
    loop {
        let line = &entity[at..];
        match line {
            [] => return ended.map(|at| (at, at)),
            [b'\n', ..] => return Some(ended.map_or((at, at + 1), |at| (at, at))),
            [b'\r', b'\n', ..] => return Some(ended.map_or((at, at + 2), |at| (at, at))),
            _ => (),
        }
        let next = entity.len() - after_line(line).len();
        if ended.is_none() && !is_field(&entity[at..next], at == 0) {
            // No field follows the delimiter of a part.
            if line.starts_with(b"--") {
                return Some((at, at));
            }
            ended = Some(at);
        } else if ended.is_some() && is_of_mime(line) {
            ended = None;
        }
        at = next;
    }
}

/// Whether a line begins or continues a field (RFC 5322, 2.2 and 4.5.8), or is a mark of mailbox files.
fn is_field(line: &[u8], is_first: bool) -> bool {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return !is_first;
    }
    let name = line.iter().position(|b| !b.is_ascii_graphic() || *b == b':').unwrap_or(line.len());
    let is_named = name > 0 && line[name..].trim_ascii_start().starts_with(b":");
    is_named || line.starts_with(b">From ") || line.starts_with(b"From ")
}

/// Whether a field describes how to read a part.
fn is_of_mime(field: &[u8]) -> bool {
    field.get(..b"content-".len()).is_some_and(|name| name.eq_ignore_ascii_case(b"content-"))
        && is_field(field, false)
}

/// The bytes behind the first line.
pub(super) fn after_line(bytes: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', bytes).map_or(&[], |i| &bytes[i + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the calls, a line each.
    #[derive(Default)]
    struct Script(Vec<String>);

    impl Visitor for Script {
        fn text(&mut self, text: Text<'_>) {
            self.0.push(format!("text {}", text.exact));
        }
        fn html(&mut self, html: Text<'_>) {
            let aside = if html.is_attachment { " (aside)" } else { "" };
            self.0.push(format!("html {}{aside}", html.exact));
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
        assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\none\n--b--"), ["text one"]);
        let parts =
            |body: &str| script(&format!("Content-Type: multipart/mixed; boundary=b\n\n{body}\n--b--"));
        assert_eq!(parts("--b x\n\none\n--b y"), ["text one", "text "]);
        // A header without an end.
        let html = "Content-Type: text/html";
        assert_eq!(parts(&format!("--b\n{html}\none two: three")), ["html one two: three"]);
        assert_eq!(parts(&format!("--b\n{html}\nNote: one\nmore: two")), ["html Note: one\r\nmore: two"]);
        assert_eq!(parts(&format!("--b\nno field\n{html}\n\none")), ["html one"]);
        assert_eq!(
            parts("--b\nContent-Type: message/rfc822\n\none, two\n\nthree"),
            ["message ||||", "text one, two\r\n\r\nthree", "end"]
        );
        assert_eq!(
            script("Content-Type: message/rfc822\n\nSubject: s\nFrom: f\n"),
            ["message f|||s|", "text ", "end"]
        );
        let by_return = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b--";
        let mut script = Script::default();
        walk(by_return.replace('\n', "\r").replacen("b\r\r", "b\n\n", 1).as_bytes(), &mut script);
        assert_eq!(script.0, ["text one"]);
    }

    #[test]
    fn the_root_of_related_parts_is_shown() {
        let related = |kind: &str, parts: &[&str]| {
            let parts: String =
                parts.iter().map(|part| format!("--b\nContent-Type: text/html\n{part}\n")).collect();
            script(&format!("Content-Type: multipart/related; boundary=b{kind}\n\n{parts}--b--"))
        };
        assert_eq!(related("", &["\none", "\ntwo"]), ["html one", "html two (aside)"]);
        let parts = ["\none", "Content-ID: <r>\n\ntwo"];
        assert_eq!(related("; start=\"<r>\"", &parts), ["html one (aside)", "html two"]);
    }

    #[test]
    fn lines_that_flow_are_joined() {
        assert_eq!(join_lines("one tw \r\no \n-- \r\nx"), "one two-- \r\nx");
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let nested = "Content-Type: message/rfc822\n\n".repeat(1000) + "\ntext";
        let shown = script(&nested);
        assert_eq!(shown.len(), 2 * MAX_DEPTH + 1);
        assert!(shown[MAX_DEPTH].starts_with("text Content-Type"));

        let many = "Content-Type: multipart/mixed; boundary=b\n\n".to_owned() + &"--b\n\nx\n".repeat(10_000);
        let shown = script(&many);
        assert_eq!(shown.len(), MAX_PARTS + 1);
        assert!(shown[MAX_PARTS].starts_with("attachment \r\nx\r\n--b"));
    }
}
