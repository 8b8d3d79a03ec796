// SPDX-License-Identifier: GPL-3.0-or-later
//! A fast lexer for ordinary HTML. It leaves all other HTML to the tokenizer, which reads one character at a time, so only one program
//! defines the meaning of HTML; a test compares the two.

use super::atoms::Atoms;
use super::reference::{Reference, reference};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, TokenSinkResult};
use html5ever::{Attribute, LocalName, QualName, local_name, ns};
use memchr::{memchr, memchr3, memmem};

/// Receives the tokens.
pub(super) trait Tokens {
    /// Characters, with references resolved.
    fn characters(&self, text: &str);

    /// A tag.
    fn tag(&self, tag: Tag);

    /// How the tokenizer must continue after the start tag of an element.
    fn content_of(&self, name: &LocalName) -> TokenSinkResult<()>;

    /// Whether `<![CDATA[` begins text here.
    fn has_sections(&self) -> bool;
}

/// Bytes that may end an attribute.
pub(super) const SEPARATORS: &[u8] = b" \t\r\n\x0c/\"'";

/// The tokenizer compares each attribute of a tag with all before it, so a tag with a million would take minutes. After a tag with more
/// separators than this, the rest of the HTML is shown as text.
pub(super) const MAX_SEPARATORS: usize = 4096;

/// The most attributes of an ordinary tag, since each is compared with all before it.
const MAX_ATTRIBUTES: usize = 32;

/// Passes on the tokens of `html` as long as they are ordinary. Returns the start of the first other token, or the length.
pub(super) fn ordinary(html: &str, sink: &impl Tokens) -> usize {
    // The tokenizer skips this mark at the start of its input.
    let start = if html.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    if memmem::find(&html.as_bytes()[start..], "\u{FEFF}".as_bytes()).is_some() {
        return 0;
    }
    let mut lexer = Lexer { html, at: start, sink, names: Atoms::default() };
    while lexer.at < html.len() && lexer.token().is_some() {}
    if lexer.at > start { lexer.at } else { 0 }
}

struct Lexer<'a, S> {
    html: &'a str,
    at: usize,
    sink: &'a S,
    names: Atoms,
}

impl<S: Tokens> Lexer<'_, S> {
    /// Passes on the next token and moves behind it; `None` if it is not an ordinary one.
    fn token(&mut self) -> Option<()> {
        let rest = &self.html.as_bytes()[self.at..];
        match rest {
            [b'<', b'a'..=b'z' | b'A'..=b'Z', ..] => self.start_tag(),
            [b'<', b'/', b'a'..=b'z' | b'A'..=b'Z', ..] => {
                let (tag, end) = self.tag(2, TagKind::EndTag)?;
                self.sink.tag(tag);
                self.at = end;
                Some(())
            }
            // The second of these makes no token, which would change the count of bytes since the last token.
            [b'<'] | [b'<', b'/', b'>', ..] => None,
            [b'<', b'!', b'[', ..] if self.sink.has_sections() => None,
            [b'<', b'!' | b'?' | b'/', ..] => {
                let length = comment(rest).filter(|&length| is_bounded(&rest[..length]))?;
                self.at += length;
                Some(())
            }
            _ => self.text(),
        }
    }

    /// Text up to the next `<`. A `<` that begins no tag is text itself.
    fn text(&mut self) -> Option<()> {
        let bytes = self.html.as_bytes();
        let from = self.at + usize::from(bytes[self.at] == b'<');
        let end = memchr(b'<', &bytes[from..]).map_or(bytes.len(), |i| from + i);
        while let Some(i) = memchr3(b'&', b'\r', 0, &bytes[self.at..end]) {
            self.characters_to(self.at + i);
            match bytes[self.at] {
                b'&' => match reference(&bytes[self.at..], false)? {
                    Reference::None => {
                        self.sink.characters("&");
                        self.at += 1;
                    }
                    Reference::To { chars, length } => {
                        let mut buffer = [0; 4];
                        chars.iter().filter(|c| **c != '\0').for_each(|c| {
                            self.sink.characters(c.encode_utf8(&mut buffer));
                        });
                        self.at += length;
                    }
                },
                b'\r' => {
                    self.sink.characters("\n");
                    self.at += 1 + usize::from(bytes.get(self.at + 1) == Some(&b'\n'));
                }
                _ => return None,
            }
        }
        self.characters_to(end);
        Some(())
    }

    fn characters_to(&mut self, end: usize) {
        if self.at < end {
            self.sink.characters(&self.html[self.at..end]);
            self.at = end;
        }
    }

    fn start_tag(&mut self) -> Option<()> {
        let (tag, end) = self.tag(1, TagKind::StartTag)?;
        let length = match self.sink.content_of(&tag.name) {
            TokenSinkResult::Continue => 0,
            // The content of these is invisible.
            TokenSinkResult::RawData(RawKind::Rawtext) if tag.name == local_name!("style") => {
                raw_content(&self.html.as_bytes()[end..], &tag.name)?
            }
            TokenSinkResult::RawData(RawKind::Rcdata) if tag.name == local_name!("title") => {
                raw_content(&self.html.as_bytes()[end..], &tag.name)?
            }
            // Scripts may have scripts in comments.
            TokenSinkResult::RawData(RawKind::ScriptData) => {
                let content = &self.html.as_bytes()[end..];
                let length = raw_content(content, &tag.name)?;
                memmem::find(&content[..length], b"<!--").is_none().then_some(length)?
            }
            _ => return None,
        };
        self.sink.tag(tag);
        self.at = end + length;
        Some(())
    }

    /// The tag whose name begins `name_at` bytes further on, and its end.
    fn tag(&mut self, name_at: usize, kind: TagKind) -> Option<(Tag, usize)> {
        let bytes = &self.html.as_bytes()[self.at..];
        let mut at = name_at;
        let name = self.name(bytes, &mut at)?;
        let mut tag =
            Tag { kind, name, self_closing: false, attrs: Vec::new(), had_duplicate_attributes: false };
        loop {
            skip_blanks(bytes, &mut at);
            match bytes.get(at)? {
                b'>' => return is_bounded(&bytes[..at]).then(|| (tag, self.at + at + 1)),
                b'/' => {
                    at += 1;
                    tag.self_closing = bytes.get(at)? == &b'>';
                }
                _ => {
                    let attribute = self.attribute(bytes, &mut at)?;
                    // The first of two attributes with one name counts.
                    if tag.attrs.iter().any(|other| other.name.local == attribute.name.local) {
                        tag.had_duplicate_attributes = true;
                    } else if tag.attrs.len() < MAX_ATTRIBUTES {
                        tag.attrs.push(attribute);
                    } else {
                        return None;
                    }
                }
            }
        }
    }

    /// A name of letters, digits and some signs, in small letters. Moves behind it.
    fn name(&mut self, bytes: &[u8], at: &mut usize) -> Option<LocalName> {
        let length = bytes[*at..].iter().position(
            |b| !matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'-' | b'.'),
        )?;
        let name = self.names.get(&bytes[*at..*at + length])?;
        *at += length;
        matches!(bytes[*at], b'\t' | b'\n' | b'\r' | b'\x0C' | b' ' | b'/' | b'>' | b'=').then_some(name)
    }

    fn attribute(&mut self, bytes: &[u8], at: &mut usize) -> Option<Attribute> {
        let name = self.name(bytes, at)?;
        skip_blanks(bytes, at);
        let mut value = StrTendril::new();
        if bytes.get(*at)? == &b'=' {
            *at += 1;
            skip_blanks(bytes, at);
            let from = self.at;
            match bytes.get(*at)? {
                b'>' => (),
                quote @ (b'"' | b'\'') => {
                    let start = *at + 1;
                    let end = start + memchr(*quote, &bytes[start..])?;
                    value = unescaped(&self.html[from + start..from + end], bytes, start)?;
                    *at = end + 1;
                }
                _ => {
                    let start = *at;
                    let end = start + bytes[start..].iter().position(|b| is_blank(*b) || *b == b'>')?;
                    value = unescaped(&self.html[from + start..from + end], bytes, start)?;
                    *at = end;
                }
            }
        }
        Some(Attribute { name: QualName::new(None, ns!(), name), value })
    }
}

/// The value of an attribute, which is in `bytes` from `start`.
fn unescaped(value: &str, bytes: &[u8], start: usize) -> Option<StrTendril> {
    let Some(mut next) = memchr3(b'&', b'\r', 0, value.as_bytes()) else {
        return Some(StrTendril::from_slice(value));
    };
    let (mut plain, mut at) = (StrTendril::new(), 0);
    loop {
        plain.push_slice(&value[at..next]);
        at = next;
        match value.as_bytes().get(at) {
            None => return Some(plain),
            // The byte behind the value neither continues a name nor is a semicolon.
            Some(b'&') => match reference(&bytes[start + at..], true)? {
                Reference::None => {
                    plain.push_char('&');
                    at += 1;
                }
                Reference::To { chars, length } => {
                    chars.iter().filter(|c| **c != '\0').for_each(|c| plain.push_char(*c));
                    at += length;
                }
            },
            Some(b'\r') => {
                plain.push_char('\n');
                at += 1 + usize::from(value.as_bytes().get(at + 1) == Some(&b'\n'));
            }
            Some(_) => return None,
        }
        next = memchr3(b'&', b'\r', 0, &value.as_bytes()[at..]).map_or(value.len(), |i| at + i);
    }
}

const fn is_blank(b: u8) -> bool {
    matches!(b, b'\t' | b'\n' | b'\r' | b'\x0C' | b' ')
}

fn skip_blanks(bytes: &[u8], at: &mut usize) {
    while bytes.get(*at).is_some_and(|b| is_blank(*b)) {
        *at += 1;
    }
}

/// Whether the tokenizer would read all of a tag or comment.
fn is_bounded(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_SEPARATORS || bytes.iter().filter(|b| SEPARATORS.contains(b)).count() <= MAX_SEPARATORS
}

/// Bytes up to the end tag of a raw text element.
fn raw_content(content: &[u8], name: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memmem::find(&content[from..], b"</")?;
        let behind = &content[at + 2..];
        let is_it = behind.get(..name.len())?.eq_ignore_ascii_case(name.as_bytes());
        if is_it && matches!(behind.get(name.len())?, b'/' | b'>' | b'\t' | b'\n' | b'\r' | b'\x0C' | b' ') {
            return Some(at);
        }
        from = at + 2;
    }
}

/// Bytes of a comment, or of a declaration or instruction, which the tokenizer reads as a comment.
fn comment(rest: &[u8]) -> Option<usize> {
    let Some(content) = rest.strip_prefix(b"<!--") else {
        return memchr(b'>', rest).map(|end| end + 1);
    };
    if content.starts_with(b">") || content.starts_with(b"->") {
        return memchr(b'>', rest).map(|end| end + 1);
    }
    let mut from = 0;
    loop {
        from += memmem::find(&content[from..], b"--")?;
        match &content[from + 2..] {
            [b'>', ..] => return Some(b"<!--".len() + from + 3),
            [b'!', b'>', ..] => return Some(b"<!--".len() + from + 4),
            _ => from += 1,
        }
    }
}
