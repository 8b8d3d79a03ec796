// SPDX-License-Identifier: GPL-3.0-or-later
//! Finds the messages of a file. Files are read as a stream: only the header of the current message is kept.
//!
//! The mbox reader of `mail-parser` loads whole messages of any size, gives no offsets, and starts a new message at every line that begins
//! with "From ".

use std::borrow::Cow;
use std::io::{self, BufRead};

/// Bytes of a header that are kept.
const MAX_HEAD: usize = 256 << 10;

/// Bytes of a line that are kept.
const MAX_LINE: usize = 8 << 10;

/// The beginning of each message of an mbox.
pub const SEPARATOR: &[u8] = b"From ";

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Messages in a row, each behind a line that begins with "From ".
    Mbox,
    /// One message.
    Message,
    /// A compressed file.
    Compressed,
    /// No mail.
    Other,
}

/// A message of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// The offset in the file, where the message before it ends.
    pub at: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The header, or the beginning of it.
    pub head: &'a [u8],
}

/// Passes on each message of a file of `size` bytes.
///
/// # Errors
/// If the file cannot be read.
pub fn scan(reader: &mut impl BufRead, size: u64, each: &mut dyn FnMut(Found<'_>)) -> io::Result<Shape> {
    let shape = shape(reader.fill_buf()?);
    match shape {
        Shape::Mbox => mbox(reader, each)?,
        Shape::Message => {
            let (mut head, mut line) = (Vec::new(), Vec::new());
            while next_line(reader, &mut line)? > 0 && !is_blank(&line) {
                keep(&mut head, &line);
            }
            each(Found { at: 0, length: size, head: &head });
        }
        Shape::Compressed | Shape::Other => (),
    }
    Ok(shape)
}

/// The kind of a file with this beginning. A message begins with a header field: `name: value`, with a name of letters, digits and dashes.
fn shape(begin: &[u8]) -> Shape {
    // gzip, bzip2, xz, zstd: used by archives and some mail servers.
    let packed: [&[u8]; 4] = [b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];
    let name = begin.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    if begin.starts_with(SEPARATOR) {
        Shape::Mbox
    } else if packed.iter().any(|magic| begin.starts_with(magic)) {
        Shape::Compressed
    } else if name > 0 && begin.get(name) == Some(&b':') {
        Shape::Message
    } else {
        Shape::Other
    }
}

fn mbox(reader: &mut impl BufRead, each: &mut dyn FnMut(Found<'_>)) -> io::Result<()> {
    let (mut head, mut line) = (Vec::new(), Vec::new());
    let (mut begin, mut at) = (0, 0);
    let (mut is_head, mut after_blank) = (true, true);
    loop {
        let length = next_line(reader, &mut line)?;
        let is_next = after_blank && at > 0 && is_separator(&line);
        if length == 0 || is_next {
            each(Found { at: begin, length: at - begin, head: &head });
        }
        if length == 0 {
            return Ok(());
        }
        after_blank = is_blank(&line);
        if is_next {
            head.clear();
            (begin, is_head) = (at, true);
        }
        is_head &= !after_blank;
        if is_head {
            keep(&mut head, &line);
        }
        at += length;
    }
}

fn keep(head: &mut Vec<u8>, line: &[u8]) {
    if head.len() + line.len() <= MAX_HEAD {
        head.extend_from_slice(line);
    }
}

fn is_blank(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

/// Whether a line behind an empty one begins a message: it has a time of day. Programs that do not quote write "From the editor:" into
/// their mboxes.
fn is_separator(line: &[u8]) -> bool {
    line.starts_with(SEPARATOR)
        && line.windows(3).any(|w| w[0].is_ascii_digit() && w[1] == b':' && w[2].is_ascii_digit())
}

/// Reads a line, keeps the beginning of it, and returns its length; 0 at the end.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = match reader.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = memchr::memchr(b'\n', buffer).map(|i| i + 1);
        let taken = end.unwrap_or(buffer.len());
        let room = MAX_LINE.saturating_sub(line.len()).min(taken);
        line.extend_from_slice(&buffer[..room]);
        length += taken as u64;
        reader.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok(length);
        }
    }
}

/// The delivered form of a message in a file: in an mbox, a ">" was added to each line that begins with "From " behind any number of ">".
#[must_use]
pub fn delivered(raw: &[u8]) -> Cow<'_, [u8]> {
    const QUOTED: &[u8] = b">From ";
    if !raw.starts_with(SEPARATOR) || memchr::memmem::find(raw, QUOTED).is_none() {
        return raw.into();
    }
    let mut plain = Vec::with_capacity(raw.len());
    for line in raw.split_inclusive(|&b| b == b'\n') {
        let marks = line.iter().take_while(|&&b| b == b'>').count();
        let is_quoted = marks > 0 && line[marks..].starts_with(SEPARATOR);
        plain.extend_from_slice(&line[usize::from(is_quoted)..]);
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// The messages of a file with the kept parts of their headers, read through a buffer of `capacity` bytes.
    fn found(text: &str, capacity: usize) -> (Shape, Vec<(String, String)>) {
        let mut all = Vec::new();
        let mut reader = BufReader::with_capacity(capacity, text.as_bytes());
        let shape = scan(&mut reader, text.len() as u64, &mut |message| {
            let at = usize::try_from(message.at).unwrap();
            let end = at + usize::try_from(message.length).unwrap();
            all.push((text[at..end].to_owned(), String::from_utf8(message.head.to_vec()).unwrap()));
        });
        (shape.unwrap(), all)
    }

    #[test]
    fn messages_of_an_mbox() {
        let first =
            "From a Sat Nov 21 10:00:00 2026\nSubject: 1\n\nFrom the editor: news\n\nFrom here on\nx\n\n";
        let second = "From b Sat Nov 21 10:00:01 2026\r\nSubject: 2\r\n\r\n>From me\r\n\r\n";
        let third = "From c Sat Nov 21 10:00:02 2026\nSubject: 3\n";
        for capacity in [9, 64, 10_000] {
            let (shape, all) = found(&[first, second, third].concat(), capacity);
            assert_eq!(shape, Shape::Mbox);
            let messages: Vec<_> = all.iter().map(|(message, _)| &**message).collect();
            assert_eq!(messages, [first, second, third]);
            assert_eq!(all[1].1, "From b Sat Nov 21 10:00:01 2026\r\nSubject: 2\r\n");
        }
    }

    #[test]
    fn one_message_and_none() {
        let letter = "Subject: 1\n\nFrom a Sat Nov 21 10:00:00 2026\n\nFrom b Sat Nov 21 10:00:00 2026\n";
        assert_eq!(found(letter, 64), (Shape::Message, vec![(letter.to_owned(), "Subject: 1\n".to_owned())]));
        assert_eq!(found("", 64), (Shape::Other, Vec::new()));
        assert_eq!(found("one\ttwo: three\n", 64).0, Shape::Other);
        assert_eq!(shape(b"\x1f\x8b\x08"), Shape::Compressed);
    }

    #[test]
    fn memory_is_bounded() {
        let endless = format!("From a Sat Nov 21 10:00:00 2026\nX: {}\n", "x".repeat(1 << 20));
        let many = format!("Subject: 1\n{}\nbody\n", "X: y\n".repeat(1 << 20));
        let mut longest = 0;
        for text in [&endless, &many] {
            let mut reader = BufReader::new(text.as_bytes());
            scan(&mut reader, 0, &mut |message| longest = message.head.len().max(longest)).unwrap();
        }
        assert!(longest <= MAX_HEAD, "{longest}");
    }

    #[test]
    fn quotes_of_an_mbox_are_taken_off() {
        let text = |raw: &str| String::from_utf8(delivered(raw.as_bytes()).into_owned()).unwrap();
        assert_eq!(
            text("From a\n>From b\n>>From c\n> From d\n>Fromm\n"),
            "From a\nFrom b\n>From c\n> From d\n>Fromm\n"
        );
        assert_eq!(text("From a >From b\n"), "From a >From b\n");
        assert_eq!(text("Subject: 1\n\n>From b\n"), "Subject: 1\n\n>From b\n");
    }
}
