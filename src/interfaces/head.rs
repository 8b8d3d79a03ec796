// SPDX-License-Identifier: GPL-3.0-or-later
//! The header of a message, which is kept until it is complete; the body is passed on as it arrives.

use crate::judging::{Message, Reservation};
use bulkmark_mail::{Received, header_fields};
use bulkmark_verdict::Unknown;
use std::borrow::Cow;

/// The most bytes of a header that are kept. Mail servers accept less of a field (Postfix: 100 KiB), and a message has some tens of them. The
/// rest is skipped: a long header avoids no verdict.
pub(super) const MOST: usize = 256 << 10;

/// The most bytes of a line that are kept.
const MOST_OF_LINE: usize = 128 << 10;

/// An incoming header.
#[derive(Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    /// The incomplete line.
    line: Vec<u8>,
    /// Whether there was a complete line.
    has_line: bool,
    /// Whether there was a field.
    has_field: bool,
    /// Whether the current field has no room.
    is_skipped: bool,
    /// Whether the header is complete.
    is_whole: bool,
    /// The line that is no field, if one ended the header: the body begins with it, as for mail servers.
    begun: Vec<u8>,
    /// The memory of all these.
    reservation: Reservation,
    reserved: usize,
    /// Whether there was no memory for it.
    is_overloaded: bool,
}

impl Head {
    /// A header that is kept in this memory.
    #[must_use]
    pub fn new(reservation: Reservation) -> Self {
        Self { reservation, ..Self::default() }
    }

    /// Takes bytes of a message; returns those of its body.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let body = self.keep(bytes);
        let kept = self.bytes.len() + self.line.len() + self.begun.len();
        let more = kept.saturating_sub(self.reserved);
        if self.reservation.take(more) {
            self.reserved += more;
        } else {
            self.forget();
            (self.is_overloaded, self.is_whole) = (true, true);
        }
        body
    }

    /// Frees its memory.
    fn forget(&mut self) {
        (self.bytes, self.line, self.begun, self.reserved) = Default::default();
        self.reservation.release();
    }

    fn keep<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while !self.is_whole && !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            let (piece, behind) = rest.split_at(end);
            let kept = piece.len().min(MOST_OF_LINE.saturating_sub(self.line.len()));
            let is_long = kept < piece.len();
            self.line.extend_from_slice(&piece[..kept]);
            // A line without a colon in so many bytes is no field.
            if is_long && !is_field(&self.line, self.has_field) {
                self.begun = std::mem::take(&mut self.line);
                self.is_whole = true;
                return &rest[kept..];
            }
            rest = behind;
            if piece.ends_with(b"\n") {
                if is_long {
                    self.line.push(b'\n');
                }
                self.end_line();
            }
        }
        rest
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        let is_first = !std::mem::replace(&mut self.has_line, true);
        if line == b"\n" || line == b"\r\n" {
            self.is_whole = true;
        } else if is_first && line.starts_with(b"From ") {
            // The first line of a message in an mbox.
        } else if !is_field(&line, self.has_field) {
            self.begun = std::mem::take(&mut line);
            self.is_whole = true;
        } else {
            let is_full = self.bytes.len() + line.len() > MOST;
            self.is_skipped = is_full || self.is_skipped && is_fold(&line);
            if !self.is_skipped {
                self.bytes.extend_from_slice(&line);
            }
            self.has_field = true;
        }
        line.clear();
        if line.capacity() <= MOST_OF_LINE / 16 {
            self.line = line;
        }
    }

    /// Whether the header is complete.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The client of the mail server that wrote the Received field at this place, from the top.
    pub(super) fn client(&self, at: usize) -> Option<Received> {
        let is_received = |(name, _): &(&[u8], &[u8])| name.trim_ascii().eq_ignore_ascii_case(b"received");
        let (_, value) = header_fields(&self.bytes).filter(is_received).nth(at)?;
        Some(Received::of(&String::from_utf8_lossy(value)))
    }

    /// Passes its fields to a message, and the beginning of the body; keeps none of them.
    pub(super) fn fill(&mut self, message: &mut Message) {
        if self.is_overloaded {
            message.fail(Unknown::Overloaded);
        }
        // A message may end in its header, without a line end.
        let is_last_field = is_field(&self.line, self.has_field);
        let last = if is_last_field && !(self.is_skipped && is_fold(&self.line)) { &*self.line } else { b"" };
        let head: Cow<'_, [u8]> =
            if last.is_empty() { Cow::Borrowed(&self.bytes) } else { [&self.bytes, last].concat().into() };
        for (name, value) in header_fields(&head) {
            message.header(name, value);
        }
        for line in [&*self.begun, if is_last_field { b"" } else { &self.line }] {
            if !line.is_empty() {
                message.body(line);
            }
        }
        self.forget();
    }
}

/// Whether a line continues the field above it.
fn is_fold(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// Whether a line belongs to a field, as mail servers see it: any other line ends the header, and begins the body.
fn is_field(line: &[u8], is_after_field: bool) -> bool {
    if is_fold(line) {
        return is_after_field;
    }
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let name = line[..colon].trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header and body are separated in chunks of any size, with either line end.
    #[test]
    fn the_body_begins_behind_the_empty_line() {
        for (mail, head) in [
            (&b"From x\nA: b\n c\nD: e\n\nbody\n\nmore"[..], &b"A: b\n c\nD: e\n"[..]),
            (b"A: b\r\n\r\nbody\n\nmore", b"A: b\r\n"),
            (b"\nbody\n\nmore", b""),
            (b"\r\nbody\n\nmore", b""),
        ] {
            for size in 1..=mail.len() {
                let (mut of, mut body) = (Head::default(), Vec::new());
                mail.chunks(size).for_each(|chunk| body.extend_from_slice(of.take(chunk)));
                assert_eq!((&*of.bytes, &*body), (head, &b"body\n\nmore"[..]), "in pieces of {size}");
                assert!(of.is_whole);
            }
        }
        let mut alone = Head::default();
        assert!(alone.take(b"A: b\nC: d").is_empty() && !alone.is_whole);
        assert_eq!([&*alone.bytes, &*alone.line].concat(), b"A: b\nC: d");
    }

    /// A line that is no field ends the header, as for mail servers, and belongs to the body.
    #[test]
    fn lines_that_are_no_fields_belong_to_the_body() {
        for (mail, head, begun) in [
            (&b"A: b\nno field\nC: d\n\nbody"[..], &b"A: b\n"[..], &b"no field\n"[..]),
            (b" a fold\nA: b\n\nbody", b"", b" a fold\n"),
            (b": no name\n\nbody", b"", b": no name\n"),
            (b"A\xfc: b\r\n\r\nbody", b"", b"A\xfc: b\r\n"),
            (b"From x\nno field\n\nbody", b"", b"no field\n"),
            (b"A : b\n\tc\n\nbody", b"A : b\n\tc\n", b""),
        ] {
            for size in 1..=mail.len() {
                let mut of = Head::default();
                mail.chunks(size).for_each(|chunk| _ = of.take(chunk));
                assert_eq!((&*of.bytes, &*of.begun, of.is_whole), (head, begun, true), "in pieces of {size}");
            }
        }
    }

    /// The rest of a long header is skipped, and the body after it is found.
    #[test]
    fn the_rest_of_a_long_header_is_skipped() {
        let fields = b"X: yyyyyyy\n".repeat(100_000);
        let folds = [b"X: y\n".to_vec(), b"\tyyyyyyyyyyyy\n".repeat(100_000)].concat();
        let line = [b"X: ".to_vec(), vec![b'y'; 1 << 20], b"\n".to_vec()].concat();
        for long in [&fields, &folds, &line] {
            for size in [1000, 100_000] {
                let (mut head, mut body) = (Head::default(), Vec::new());
                let mail = [long, &b"Subject: s\n\nbody"[..]].concat();
                mail.chunks(size).for_each(|chunk| body.extend_from_slice(head.take(chunk)));
                assert!(head.is_whole && head.bytes.len() <= MOST && head.line.is_empty());
                assert_eq!((&*head.begun, &*body), (&b""[..], &b"body"[..]));
                assert_eq!(head.bytes.ends_with(b"Subject: s\n"), long != &fields && long != &folds);
            }
        }
        let (mut head, mut body) = (Head::default(), Vec::new());
        for _ in 0..100_000 {
            body.extend_from_slice(head.take(b"yyyyyyyyyyyyyyyyyyyyy"));
        }
        assert_eq!((head.is_whole, head.begun.len() + body.len()), (true, 2_100_000));
    }

    /// A header is kept in the memory of all messages: without room, nothing of it stays, and the message cannot be judged.
    #[test]
    fn a_header_without_room_is_not_kept() {
        let mut nearly_full = Reservation::default();
        assert!(nearly_full.take(1000));
        while [1 << 20, 1000].into_iter().any(|bytes| nearly_full.take(bytes)) {}
        let fits = [b"X: ".to_vec(), vec![b'y'; 500], b"\n".to_vec()].concat();
        let mut rest = Head::new(nearly_full);
        assert!(rest.take(&fits).is_empty() && !rest.is_overloaded && rest.bytes == fits);
        for piece in [&fits[..], b"X: y\n\nbody"] {
            rest.take(piece);
            assert!(rest.is_whole && rest.is_overloaded, "{rest:?}");
            assert_eq!([&rest.bytes, &rest.line, &rest.begun].map(Vec::capacity), [0; 3]);
        }
    }

    #[test]
    fn the_client_is_that_of_a_received_field() {
        let mut head = Head::default();
        head.take(
            b"Received: from a (h [192.0.2.7]) by mx\nX: y\nReceived: from b ([2001:db8::1])\n\tby h\n\n",
        );
        let client = |at| head.client(at).and_then(|received| received.client).map(|ip| ip.to_string());
        assert_eq!(
            [client(0), client(1), client(2)],
            [Some("192.0.2.7".into()), Some("2001:db8::1".into()), None]
        );
    }
}
