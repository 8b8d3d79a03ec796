// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads the content of a message: words, links and attachments.

use super::boxes::Boxes;
use super::collect::Collector;
use super::content::{Content, MAX_HIDDEN, Rendering};
use super::context::FEW_OWN;
use super::document;
use super::frames::Frame;
use super::line::Line;
use super::lines::{Lines, unfold};
use super::links;
use super::pixels::Work;
use super::product::WordKey;
use super::records;
use super::things::{Enclosed, FEW, MAX_DECODED, Page, Shown, Source, words_in};
use super::words::{Sink, Word, Words};
use crate::payload::{self, Found, Scanner};
use crate::text::is_blank;
use bulkmark_mail::{File, Piece, Text, Visitor, data, in_reading_order, is_data, pieces};
use std::borrow::Cow;

/// Bytes of own lines without content: "see below", a number that differs in each copy.
const SHORT: usize = 24;

/// Reads a message.
pub(crate) struct Reader {
    key: WordKey,
    words: Words,
    traced: bool,
    /// The content of the message, and of its open multiparts and messages, outermost first.
    read: Content,
    open: Vec<Frame>,
    parts: usize,
    /// The text of the current HTML part, a line for each block.
    html: String,
    /// The text that it quotes, and the text that it hides.
    html_quoted: String,
    html_hidden: String,
    html_page: Page,
    boxes: Boxes,
    /// Pictures that the HTML part contains, by the hashes of their addresses.
    html_data: Vec<(u64, Vec<u8>)>,
    /// Number of decoded pictures.
    decoded: usize,
    /// Bytes that may still be unpacked from documents.
    unpacked: usize,
    /// The work left for pictures.
    work: Work,
    /// Finds payload; `None` if not wanted.
    payload: Option<Finder>,
}

/// Finds payload in the parts of a message.
#[derive(Debug, Default)]
struct Finder {
    scanner: Scanner,
    page: payload::Page,
    /// Payload of the messages that the HTML part quotes.
    quoted: Found,
}

impl Reader {
    /// `key` hashes the words; `traced` keeps the place of each word.
    pub(super) fn new(key: WordKey, traced: bool) -> Self {
        Self {
            key,
            words: Words::new(key),
            traced,
            read: Content::default(),
            open: Vec::new(),
            parts: 0,
            html: String::new(),
            html_quoted: String::new(),
            html_hidden: String::new(),
            html_page: Page::default(),
            boxes: Boxes::default(),
            html_data: Vec::new(),
            decoded: 0,
            unpacked: document::MAX_TEXT,
            work: Work::new(),
            payload: None,
        }
    }

    /// Makes the reader find payload too.
    pub(crate) fn with_payload(self) -> Self {
        Self { payload: Some(Finder::default()), ..self }
    }

    /// The content read.
    pub(crate) fn finish(self) -> Content {
        self.read.with_fallbacks()
    }

    /// Reads a part; `quoted` is text of another message that other means than quote marks show.
    fn read_text(&mut self, text: &str, quoted: &str, mut part: Content) -> Content {
        self.parts += 1;
        let mut lines = Lines::of(text);
        if !quoted.is_empty() {
            lines.quoted.extend(Lines::all(quoted));
        }
        // An answer by a link or a line of code is an answer, even without words. A row of marks is none.
        let written = lines.own.iter().filter(|(_, line)| line.contains(is_answer));
        part.has_text = written.map(|(_, line)| line.len()).sum::<usize>() > SHORT;
        self.read_lines(&lines.own, &mut part);
        for (lines, in_footer) in [(&lines.own, false), (&lines.names, false), (&lines.footer, true)] {
            part.payload.set_in_footer(in_footer);
            self.find_payload(lines, &mut part);
        }
        part.payload.set_in_footer(false);
        if part.words.len() <= FEW_OWN {
            part.quoted = self.kept(lines.quoted);
        }
        if part.words.len() <= FEW && part.quoted.is_some() {
            let mut names = Content::default();
            self.read_lines(&lines.names, &mut names);
            part.names = names.words;
        }
        let quoted_payload = self.payload.as_mut().map(|finder| std::mem::take(&mut finder.quoted));
        if let (Some(content), Some(found)) = (&mut part.quoted, quoted_payload) {
            content.payload.append(found);
        }
        if part.words.is_empty() {
            part.footer = self.kept(lines.footer);
        }
        if part.words.len() < FEW {
            part.page.text(text);
        }
        part
    }

    /// Reads an attached text as a file. Its text is used only if a message has nearly no own words.
    fn attach(&mut self, text: Text<'_>) {
        // Attachments do not matter beside enough text.
        if self.read.words.len() >= FEW {
            return;
        }
        let content = if records::is_record(text.subtype) {
            self.read_text(&records::text(text.shown, text.work), "", Content::default())
        } else if text.is_html() {
            self.read_html(text)
        } else {
            self.read_text(text.shown, "", Content::default())
        };
        let attached = content.with_fallbacks();
        // An alternative that no mail program shows is no file.
        let is_file = text.is_attachment || !matches!(self.open.last(), Some(Frame::Alternatives { .. }));
        let file = is_file.then(|| file_of_text(text, &attached.words)).flatten();
        let words = (!attached.words.is_empty()).then(|| Box::new(attached));
        let is_shown = text.subtype.ends_with("calendar") && !text.is_attachment;
        let (calendar, attached) = if is_shown { (words, None) } else { (None, words) };
        let files = file.into_iter().collect();
        let (has_files, rendering) = (is_file, Rendering::AsFile);
        self.keep(Content { files, has_files, attached, calendar, rendering, ..Content::default() });
    }

    /// An office document as a file, by its text if that is long enough.
    fn text_of_document(&mut self, bytes: &[u8]) -> Option<Enclosed> {
        let text = document::text(bytes, &mut self.unpacked)?;
        let lines: Vec<Line<'_>> = Lines::all(&text).collect();
        let mut content = Content::default();
        self.read_lines(&lines, &mut content);
        Enclosed::of_document(&content.words, bytes.len())
    }

    /// A file, as a picture if there is work left for it.
    fn enclosed(&mut self, bytes: &[u8], id: Option<u64>) -> Option<Enclosed> {
        let mut none = Work::none();
        let work = if self.decoded < MAX_DECODED { &mut self.work } else { &mut none };
        let enclosed = Enclosed::of(bytes, id, work)?;
        self.decoded += usize::from(enclosed.is_picture());
        Some(enclosed)
    }

    fn read_html(&mut self, html: Text<'_>) -> Content {
        pieces(html.shown, html.work, &mut |piece| self.piece(piece));
        self.read_page()
    }

    /// Reads lines that count only if a message has no others.
    fn kept(&mut self, lines: Vec<Line<'_>>) -> Option<Box<Content>> {
        let mut content = Content::default();
        self.find_payload(&lines, &mut content);
        let lines = if lines.is_empty() { lines } else { unfold(lines) };
        self.read_lines(&lines, &mut content);
        (!content.words.is_empty()).then(|| Box::new(content))
    }

    /// Finds payload in lines, except quoted ones.
    fn find_payload(&mut self, lines: &[Line<'_>], part: &mut Content) {
        if let Some(finder) = &mut self.payload {
            let lines = lines.iter().filter(|(_, line)| !line.starts_with('>'));
            lines.for_each(|(_, line)| finder.scanner.line(line, &mut part.payload));
        }
    }

    fn read_lines(&mut self, lines: &[Line<'_>], part: &mut Content) {
        let traced = self.traced.then_some(self.parts);
        Collector::new(self.key, part, traced).read(lines, &mut self.words);
    }

    fn keep(&mut self, part: Content) {
        match self.open.last_mut() {
            Some(frame) => frame.add(part),
            None => self.read.append(part),
        }
    }

    /// The innermost open part ends.
    fn close(&mut self) {
        if let Some(frame) = self.open.pop() {
            self.keep(frame.finish());
        }
    }

    /// A piece of an HTML part; [`html_end`](Self::html_end) comes after the last.
    pub(crate) fn piece(&mut self, piece: Piece<'_>) {
        if let Some(finder) = &mut self.payload {
            finder.page.piece(piece);
        }
        match piece {
            Piece::Text(text) | Piece::Swallowed(text) => push_text(&mut self.html, text),
            Piece::Quoted(text) => {
                self.html_page.text(text);
                push_text(&mut self.html_quoted, text);
            }
            Piece::Hidden(text) => push_text(&mut self.html_hidden, text),
            Piece::Break => {
                self.html.push('\n');
                for other in [&mut self.html_quoted, &mut self.html_hidden] {
                    if !other.is_empty() && !other.ends_with('\n') {
                        other.push('\n');
                    }
                }
            }
            Piece::Target(target) | Piece::SwallowedTarget(target) => {
                if let Some(page) = links::page_of(target) {
                    self.html_page.link(self.key.hash(page.as_bytes()));
                }
            }
            Piece::Picture { source, size } => self.picture(source, size),
            Piece::Boxes { reversed } => self.boxes.open(reversed),
            Piece::Box { order } => self.boxes.next(order, self.html.len()),
            Piece::BoxesEnd => self.boxes.close(&mut self.html),
            Piece::Start { .. } | Piece::End(_) => (),
        }
    }

    fn picture(&mut self, source: &str, size: (Option<u32>, Option<u32>)) {
        if let Some(page) = links::page_of(source) {
            self.html_page.remove_link(self.key.hash(page.as_bytes()));
        }
        let place = match source.split_at_checked(4) {
            Some((scheme, id)) if scheme.eq_ignore_ascii_case("cid:") => {
                Some(Source::Part(self.key.hash(id.as_bytes())))
            }
            _ if is_data(source) => self.keep_data(source),
            _ => links::picture_of(source).map(|path| Source::Path(self.key.hash(path.as_bytes()))),
        };
        if let Some(source) = place
            && self.html_page.has_room()
        {
            let behind_text = words_in(&self.html, 1) > 0;
            self.html_page.show(Shown { source, size, behind_text });
        }
    }

    /// Keeps a picture that is contained in its address, unless it does not matter beside enough text.
    fn keep_data(&mut self, source: &str) -> Option<Source> {
        if self.read.words.len() >= FEW || !self.html_page.has_room() {
            return None;
        }
        let id = self.key.hash(source.as_bytes());
        if self.html_data.iter().all(|(known, _)| *known != id) {
            self.html_data.push((id, data(source)?));
        }
        Some(Source::Part(id))
    }

    /// The HTML part whose pieces were passed ends.
    pub(crate) fn html_end(&mut self) {
        let part = self.read_page();
        self.keep(part);
    }

    fn read_page(&mut self) -> Content {
        self.boxes.close_all(&mut self.html);
        let mut html = std::mem::take(&mut self.html);
        let mut quoted = std::mem::take(&mut self.html_quoted);
        let (page, hidden) = (std::mem::take(&mut self.html_page), self.hidden());
        let payload = self.payload.as_mut().map_or_else(Found::default, |finder| {
            let (found, quoted) = finder.page.finish();
            finder.quoted = quoted;
            found
        });
        let part = Content { page, hidden, payload, rendering: Rendering::Page, ..Content::default() };
        let mut part = self.read_text(&html, &quoted, part);
        for (id, bytes) in std::mem::take(&mut self.html_data) {
            let file = (part.words.len() < FEW).then(|| self.enclosed(&bytes, Some(id))).flatten();
            part.has_files |= file.is_some();
            part.add_files(file.into_iter().collect());
        }
        html.clear();
        quoted.clear();
        (self.html, self.html_quoted) = (html, quoted);
        part
    }

    /// The hidden words of the HTML part.
    fn hidden(&mut self) -> Vec<u64> {
        let mut words = Vec::new();
        for line in self.html_hidden.lines() {
            if words.len() >= MAX_HIDDEN {
                break;
            }
            self.words.read(line, &mut Hidden(&mut words));
        }
        self.html_hidden.clear();
        words
    }
}

/// An attached text as a file, by its words. One without words may be a script, and is known by its bytes; a calendar without words is a form.
fn file_of_text(text: Text<'_>, words: &[u64]) -> Option<Enclosed> {
    let by_bytes = || Enclosed::of(text.shown.as_bytes(), None, &mut Work::none());
    let by_words = Enclosed::of_text(words, text.shown.len());
    by_words.or_else(|| by_bytes().filter(|_| !records::is_record(text.subtype)))
}

/// Whether a character may answer: a letter, a digit, a pictograph.
fn is_answer(c: char) -> bool {
    c.is_alphanumeric() || c >= '\u{1F000}' && !is_blank(c)
}

/// Collects hidden words.
struct Hidden<'a>(&'a mut Vec<u64>);

impl Sink for Hidden<'_> {
    fn word(&mut self, word: Word<'_>) {
        if self.0.len() < MAX_HIDDEN {
            self.0.push(word.hash);
        }
    }

    fn link(&mut self, _link: &str) {}
}

/// Line ends in HTML are blanks.
fn push_text(all: &mut String, text: &str) {
    let mut rest = text;
    while let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) {
        all.push_str(&rest[..end]);
        all.push(' ');
        rest = &rest[end + 1..];
    }
    all.push_str(rest);
}

impl Visitor for Reader {
    fn text(&mut self, text: Text<'_>) {
        // The header of the message that a report is about.
        if let Some(report @ Frame::Report { .. }) = self.open.last_mut()
            && text.subtype == "rfc822-headers"
        {
            return report.note_type(("text", text.subtype));
        }
        if text.is_attachment || !Rendering::is_shown(text.subtype) {
            return self.attach(text);
        }
        if text.is_html() {
            return self.html(text);
        }
        let shown = match text.subtype {
            "enriched" | "richtext" => Cow::Owned(records::enriched(text.shown)),
            _ => in_reading_order(text.shown),
        };
        let part = self.read_text(&shown, "", Content { rendering: Rendering::Text, ..Content::default() });
        self.keep(part);
    }

    fn html(&mut self, html: Text<'_>) {
        if html.is_attachment {
            return self.attach(html);
        }
        let part = self.read_html(html);
        self.keep(part);
    }

    fn file(&mut self, file: File<'_>) {
        if let Some(frame) = self.open.last_mut() {
            frame.note_type(file.media);
        }
        // Attachments do not matter beside enough text.
        if self.read.words.len() >= FEW {
            return;
        }
        let id = file.id.map(|id| self.key.hash(id.as_bytes()));
        let text = self.text_of_document(file.shown);
        if let Some(enclosed) = text.or_else(|| self.enclosed(file.shown, id)) {
            let files = vec![enclosed];
            self.keep(Content { files, has_files: true, rendering: Rendering::AsFile, ..Content::default() });
        }
    }

    fn message(&mut self, _fields: &[&[u8]]) {
        self.open.push(Frame::Message(Content::default()));
    }

    fn message_end(&mut self) {
        let Some(mut message) = self.open.pop().map(Frame::finish) else {
            return;
        };
        message.enclosed = std::iter::once(0..message.words.len()).collect();
        match self.open.last_mut() {
            Some(frame) => frame.add_message(message),
            None => self.read.append(message),
        }
    }

    fn report(&mut self, by_daemon: bool) {
        self.open.push(Frame::report(by_daemon));
    }

    fn report_end(&mut self) {
        self.close();
    }

    fn alternatives(&mut self) {
        self.open.push(Frame::alternatives());
    }

    fn alternative(&mut self) {
        if let Some(frame) = self.open.last_mut() {
            frame.next_alternative();
        }
    }

    /// The alternative that mail programs show best is read, the last of equals. Attachments of all alternatives count.
    fn alternatives_end(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_mail::RawMessage;

    fn read(html: &str) -> Content {
        let raw = format!("Content-Type: text/html\n\n{html}");
        let mut reader = Reader::new(WordKey::new([7; 16]), false);
        RawMessage::from_bytes(raw.as_bytes()).visit(&mut reader);
        reader.finish()
    }

    /// Plain white pictures have no content, but each costs as much as any other.
    #[test]
    fn decoding_of_plain_pictures_is_bounded() {
        // A GIF of 4,000 x 4,000 pixels that ends too soon, which mail programs show as far as it goes.
        let gif = [
            &b"GIF89a\xA0\x0F\xA0\x0F\x80\0\0\xFF\xFF\xFF\0\0\0,\0\0\0\0\xA0\x0F\xA0\x0F\0\x02"[..],
            &[0; 1500],
        ]
        .concat();
        let mut reader = Reader::new(WordKey::new([7; 16]), false);
        for _ in 0..100 {
            let media = ("image", "gif");
            reader.file(File { exact: &gif, shown: &gif, media, id: None, is_attachment: false });
        }
        assert_eq!((reader.work.tried(), reader.decoded), (4, 0));
    }

    #[test]
    fn hidden_words_are_kept_apart() {
        let shown = read("<p>One two three</p>");
        let both = read(
            "<p>One <i style='display:none'>four<br>five</i>two three</p><p hidden>six\nseven http://a.example</p>",
        );
        assert_eq!(both.words, shown.words);
        assert_eq!(both.hidden, read("<p>four five six seven</p>").words);
        let many = read(&format!("<p hidden>{}</p>yes", "word ".repeat(5000)));
        assert_eq!((many.words.len(), many.hidden.len()), (1, MAX_HIDDEN));
    }
}
