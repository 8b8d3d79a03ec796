// SPDX-License-Identifier: GPL-3.0-or-later
//! Entities of MIME: header and body, line ends, and the delimiters between parts.

use super::decode::exact_fields_of;
use memchr::memmem;

/// Header block and body of an entity. The block keeps the line end of its last field; the empty line belongs to neither. A line that is no
/// field also begins the body, unless MIME fields follow it before the first empty line.
pub(super) fn split_entity(entity: &[u8]) -> (&[u8], &[u8]) {
    let (end, after) = header_end(entity).unwrap_or((entity.len(), entity.len()));
    (&entity[..end], &entity[after..])
}

/// The same of a part. If no line ends its header, the body begins behind the last MIME field.
pub(super) fn split_part(part: &[u8]) -> (&[u8], &[u8]) {
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

/// A delimiter line of a multipart.
pub(super) struct Delimiter {
    /// The end of the text before it: the line end in front belongs to the delimiter (RFC 2046, 5.1.1).
    pub(super) before: usize,
    /// Start of the line after it.
    pub(super) after: usize,
    pub(super) closes: bool,
}

pub(super) struct Delimiters<'a> {
    body: &'a [u8],
    /// Whether only blanks may stand behind a delimiter.
    is_strict: bool,
    finder: memmem::Finder<'static>,
    needle: usize,
    at: usize,
}

impl<'a> Delimiters<'a> {
    pub(super) fn new(body: &'a [u8], boundary: &str, is_strict: bool) -> Self {
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

/// Whether a CR ends a line. Those in front of an LF belong to its line end.
pub(super) fn has_bare_returns(lines: &[u8]) -> bool {
    lines.windows(2).any(|pair| pair[0] == b'\r' && !matches!(pair[1], b'\r' | b'\n'))
}

/// The same lines with an LF for each CR that ends a line.
pub(super) fn with_line_feeds(lines: &[u8]) -> Vec<u8> {
    let mut lines = lines.to_vec();
    let mut next = 0;
    for b in lines.iter_mut().rev() {
        if *b != b'\r' {
            next = *b;
        } else if next != b'\n' {
            *b = b'\n';
        }
    }
    lines
}
