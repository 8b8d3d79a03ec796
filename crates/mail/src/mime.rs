// SPDX-License-Identifier: GPL-3.0-or-later
//! Walks the MIME tree of a message, within bounds.

use super::charset;
use super::cms;
use super::decode::{Mime, addresses, fields_of, name_and_value};
use super::entity::{Delimiter, Delimiters, has_bare_returns, split_entity, split_part, with_line_feeds};
use super::part::{File, Text, begins_html, is_text};
use super::style::Work;
use memchr::memmem;
use std::collections::HashSet;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Separate parts with content. Of the parts behind them, the last is read as such, since it is the shown one of alternatives, and the others
/// as one text. Real mail has some dozens, a digest some hundreds.
pub const MAX_PARTS: usize = 1000;

/// The same for parts without content, which otherwise would hide all others.
const MAX_BLANK: usize = 10 * MAX_PARTS;

/// Levels of multiparts and enclosed messages; deeper ones are passed on as attachments. Bounces of forwarded digests reach eight; the
/// bound keeps the walk's recursion and its repeated scans small.
pub const MAX_DEPTH: usize = 32;

/// Header fields of an enclosed message that a reader sees, so that they are content.
const SHOWN: [&[u8]; 5] = [b"from", b"to", b"cc", b"subject", b"date"];

/// Beginnings of the addresses from which mail servers send bounces.
const DAEMONS: [&str; 5] = ["mailer-daemon", "mail-daemon", "maildaemon", "postmaster", "microsoftexchange"];

/// Words in notes that programs write in front of the first part, and bytes of such a note.
const NOTES: [&[u8]; 3] = [b"MIME", b"multi-part", b"multipart"];
const MAX_NOTE: usize = 400;

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
    let work = Work::default();
    let mut walk =
        Walk { visitor, parts: 0, blank: 0, from: Vec::new(), in_report: false, named: None, work: &work };
    // Line ends of old machines, which mail programs accept if there are no others.
    let (head, body) = split_entity(message);
    if memchr::memchr(b'\n', body).is_none() && memchr::memchr(b'\r', body).is_some() {
        return walk.entity(&[head, b"\n", &with_line_feeds(body)].concat(), 0, Place::Message);
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
    /// Parts with content, and others.
    parts: usize,
    blank: usize,
    /// The From of the innermost message, if that is a multipart.
    from: Vec<u8>,
    /// Whether a report is open in the innermost message.
    in_report: bool,
    /// In a multipart/related: the Content-IDs that its pages name so far.
    named: Option<HashSet<String>>,
    /// The work that is left for pages.
    work: &'a Work,
}

impl Walk<'_> {
    fn entity(&mut self, entity: &[u8], depth: usize, place: Place) {
        let split = if place == Place::Message { split_entity } else { split_part };
        let (head, body) = split(entity);
        if depth > 0 && has_bare_returns(head) {
            return self.entity(&with_line_feeds(entity), depth, place);
        }
        let mut mime = Mime::of(head);
        let default = if place == Place::Digest { ("message", "rfc822") } else { ("text", "plain") };
        let media = mime.media.clone();
        let media = media.as_ref().map_or(default, |(kind, sub)| (kind, sub));
        let media = mime.by_name(media).filter(|media| media.0 == "message").unwrap_or(media);
        // A page that no page refers to is shown below the root.
        let is_named = |id: &String| self.named.as_ref().is_some_and(|named| named.contains(id));
        mime.is_related =
            place == Place::Related && media == ("text", "html") && mime.id.as_ref().is_some_and(is_named);
        match (media, &mime.boundary) {
            (("multipart" | "message", _), _) if depth >= MAX_DEPTH => {
                self.leaf(&mime, "text", "plain", body)
            }
            (("multipart", sub), Some(boundary)) => {
                if place == Place::Message {
                    self.from = first_value(head, b"from").to_owned();
                }
                self.multipart(&Multipart { sub, boundary, mime: &mime, body }, depth);
            }
            (("message", "rfc822" | "global" | "news"), _) => self.message(&mime, body, depth),
            // Signatures over the message differ from copy to copy and are no content.
            (("application", "pkcs7-signature" | "x-pkcs7-signature" | "pgp-signature"), _)
                if mime.by_name(media).is_none() =>
            {
                self.blank += 1
            }
            (("application", "pkcs7-mime" | "x-pkcs7-mime"), _) => {
                let bytes = mime.encoding.decoded(body);
                match cms::signed(bytes.shown()).filter(|_| depth < MAX_DEPTH) {
                    Some(signed) => self.entity(&signed, depth + 1, Place::Part),
                    None => self.leaf(&mime, media.0, media.1, body),
                }
            }
            // Only in a report is it for programs. An external body is elsewhere.
            (("message", sub), _) if !self.in_report && sub != "external-body" => {
                self.leaf(&mime, "text", "plain", body)
            }
            ((kind, sub), _) => self.leaf(&mime, kind, sub, body),
        }
    }

    /// An enclosed message.
    fn message(&mut self, mime: &Mime, body: &[u8], depth: usize) {
        let message = mime.encoding.exact(body);
        let (head, _) = split_entity(&message);
        let fields = SHOWN.map(|wanted| first_value(head, wanted));
        self.count(fields.iter().any(|field| !field.is_empty()));
        self.visitor.message(&fields);
        let (from, in_report) = (std::mem::take(&mut self.from), std::mem::take(&mut self.in_report));
        self.entity(&message, depth + 1, Place::Message);
        (self.from, self.in_report) = (from, in_report);
        self.visitor.message_end();
    }

    fn count(&mut self, has_content: bool) {
        *(if has_content { &mut self.parts } else { &mut self.blank }) += 1;
    }

    fn leaf(&mut self, mime: &Mime, kind: &str, sub: &str, body: &[u8]) {
        let bytes = mime.encoding.decoded(body);
        let by_name = mime.by_name((kind, sub)).filter(|_| is_text(bytes.shown()));
        let (kind, sub) = by_name.unwrap_or((kind, sub));
        let is_file = mime.is_attachment || by_name.is_some();
        let is_attachment = is_file || mime.is_related;
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
                let text = Text { exact: &exact, shown, subtype: sub, is_attachment, work: self.work };
                self.count(!text.is_blank());
                if (kind, sub) == ("text", "html") && !is_file {
                    self.named.iter_mut().for_each(|named| named.extend(ids_in(text.shown)));
                    self.visitor.html(text);
                } else {
                    self.visitor.text(text);
                }
            }
            _ => {
                self.count(!bytes.shown().trim_ascii().is_empty());
                self.visitor.file(File {
                    exact: &bytes.exact,
                    shown: bytes.shown(),
                    media: (kind, sub),
                    id: mime.id.as_deref(),
                    is_attachment,
                });
            }
        }
    }

    /// Passes on a multipart; if its parts have no content, also the text beside them.
    fn multipart(&mut self, multipart: &Multipart<'_>, depth: usize) {
        let (is_alternative, is_report) = (multipart.sub == "alternative", multipart.sub == "report");
        if is_alternative {
            self.visitor.alternatives();
        }
        let was_in_report = self.in_report;
        if is_report {
            self.in_report = true;
            self.visitor.report(is_of_daemon(&self.from));
        }
        let outer = (multipart.sub == "related").then(|| self.named.replace(HashSet::new()));
        let before = (self.parts, self.blank);
        // If no delimiter is valid, those with text behind them count.
        let begins = |is_strict| multipart.delimiters(is_strict).any(|delimiter| !delimiter.closes);
        let is_strict = begins(true) || !begins(false);
        self.parts(multipart, is_strict, depth);
        if let Some(outer) = outer {
            self.named = outer;
        }
        if is_report {
            self.in_report = was_in_report;
            self.visitor.report_end();
        }
        if self.parts == before.0 {
            let text = multipart.beside_parts(is_strict);
            // Without any part it is a text, even a blank one.
            if self.blank == before.1 || !text.trim_ascii().is_empty() {
                self.leaf(multipart.mime, "text", "plain", &text);
            }
        }
        if is_alternative {
            self.visitor.alternatives_end();
        }
    }

    /// Passes on the parts of a multipart.
    fn parts(&mut self, multipart: &Multipart<'_>, is_strict: bool, depth: usize) {
        let before = self.parts;
        let mut delimiters = multipart.delimiters(is_strict).peekable();
        let mut is_first = true;
        while let Some(delimiter) = delimiters.next() {
            if delimiter.closes {
                // Parts behind the end are better than nothing.
                if self.parts > before {
                    return;
                }
                continue;
            }
            if self.parts >= MAX_PARTS || self.blank >= MAX_BLANK {
                return self.last_part(multipart, delimiter.after, delimiters, depth);
            }
            let end = delimiters.peek().map_or(multipart.body.len(), |next| next.before);
            self.part(multipart, delimiter.after..end, is_first, depth);
            is_first = false;
        }
    }

    /// Passes on the last part, and those before it, from this byte on, as a whole.
    fn last_part(
        &mut self,
        multipart: &Multipart<'_>,
        from: usize,
        delimiters: impl Iterator<Item = Delimiter>,
        depth: usize,
    ) {
        let (mut others, mut last) = (Vec::new(), from..multipart.body.len());
        for delimiter in delimiters {
            if delimiter.closes {
                last.end = delimiter.before;
                break;
            }
            others.extend_from_slice(multipart.bytes(last.start..delimiter.before));
            others.extend_from_slice(b"\r\n");
            last.start = delimiter.after;
        }
        if multipart.sub == "alternative" {
            self.visitor.file(bare(&others));
        } else if !others.trim_ascii().is_empty() {
            self.leaf(&Mime::of(b""), "text", "plain", &others);
        }
        self.part(multipart, last, false, depth);
    }

    fn part(&mut self, multipart: &Multipart<'_>, part: Range<usize>, is_first: bool, depth: usize) {
        if multipart.sub == "alternative" {
            self.visitor.alternative();
        }
        let part = multipart.bytes(part);
        self.entity(part, depth + 1, multipart.place(part, is_first));
    }
}

/// A multipart with a boundary.
struct Multipart<'a> {
    /// The second half of its type.
    sub: &'a str,
    boundary: &'a str,
    mime: &'a Mime,
    body: &'a [u8],
}

impl<'a> Multipart<'a> {
    fn delimiters(&self, is_strict: bool) -> Delimiters<'a> {
        Delimiters::new(self.body, self.boundary, is_strict)
    }

    /// Some of its bytes; none where a delimiter follows another.
    fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        self.body.get(range).unwrap_or_default()
    }

    /// The place of a part.
    fn place(&self, part: &[u8], is_first: bool) -> Place {
        let is_root = || {
            let start = self.mime.start.as_ref();
            start.map_or(is_first, |start| Mime::of(split_part(part).0).id.as_ref() == Some(start))
        };
        match self.sub {
            "digest" => Place::Digest,
            "related" if !is_root() => Place::Related,
            _ => Place::Part,
        }
    }

    /// The text before, between and behind its delimiters that is in no part.
    fn beside_parts(&self, is_strict: bool) -> Vec<u8> {
        let (mut all, mut start) = (Vec::new(), Some(0));
        let mut add = |text: &[u8]| {
            if !text.trim_ascii().is_empty() {
                all.extend_from_slice(if all.is_empty() { b"" } else { b"\r\n" });
                all.extend_from_slice(text);
            }
        };
        for delimiter in self.delimiters(is_strict) {
            match start {
                Some(0) => add(without_notes(self.bytes(0..delimiter.before))),
                Some(start) => add(self.bytes(start..delimiter.before)),
                None => (),
            }
            start = delimiter.closes.then_some(delimiter.after);
        }
        if let Some(start) = start {
            add(&self.body[start..]);
        }
        all
    }
}

/// A text without the notes at its beginning for programs that know no parts. All mail of a program has the same.
fn without_notes(text: &[u8]) -> &[u8] {
    let mut rest = text.trim_ascii_start();
    loop {
        let start = &rest[..rest.len().min(MAX_NOTE)];
        let blank = [&b"\n\n"[..], b"\n\r\n"].into_iter().filter_map(|line| memmem::find(start, line)).min();
        let end = blank.or_else(|| (start.len() == rest.len()).then_some(rest.len()));
        let names = |note: &[u8]| NOTES.iter().any(|word| memmem::find(note, word).is_some());
        match end.filter(|&end| names(&rest[..end])) {
            Some(end) => rest = rest[end..].trim_ascii_start(),
            None => return rest,
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

/// The Content-IDs that a page names in `cid:` addresses, as far as a message may have parts.
fn ids_in(page: &str) -> impl Iterator<Item = String> {
    let addresses = memmem::find_iter(page.as_bytes(), b"cid:").take(MAX_PARTS);
    addresses.map(|at| {
        let id = &page[at + b"cid:".len()..];
        id[..id.find(|c: char| c.is_whitespace() || "\"'<>)".contains(c)).unwrap_or(id.len())].to_owned()
    })
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
