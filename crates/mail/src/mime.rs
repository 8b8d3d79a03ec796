// SPDX-License-Identifier: GPL-3.0-or-later
//! Walks the MIME tree of a message, within bounds.

use super::charset;
use super::cms;
use super::decode::{Mime, addresses, fields_of, name_and_value};
use super::entity::{Delimiters, split_entity, split_part};
use super::part::{File, Text, begins_html};

#[cfg(test)]
mod tests;

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
