// SPDX-License-Identifier: GPL-3.0-or-later
//! The header of a message, which is kept until all of it is there; its body is handed on as it comes.

use crate::judging::Message;
use bulkmark_mail::{Received, header_fields};
use bulkmark_verdict::Unknown;

/// Bytes of a header. Mail servers take less (Postfix: 100 KiB for a field, and a message has some tens of them).
pub(super) const MOST: usize = 256 << 10;

/// A header as it comes.
#[derive(Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    /// Where the line begins that is not whole yet.
    line: usize,
    /// Whether any line was whole so far.
    has_line: bool,
    /// Whether all of it is there.
    is_whole: bool,
    is_over: bool,
    /// The line that is no field, where one ended it: the body begins with it, as for mail servers.
    begun: Vec<u8>,
}

impl Head {
    /// Takes bytes of a message; returns those that belong to its body.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.is_whole {
            return bytes;
        }
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end + 1);
            rest = behind;
            let is_first = !std::mem::replace(&mut self.has_line, true);
            self.add(line);
            let line = &self.bytes[self.line.min(self.bytes.len())..];
            if line == b"\n" || line == b"\r\n" {
                self.bytes.truncate(self.line);
                self.is_whole = true;
                return rest;
            }
            if is_first && line.starts_with(b"From ") {
                // Of an mbox.
                self.bytes.clear();
            } else if !is_field(line, self.line > 0) {
                self.begun = self.bytes.split_off(self.line.min(self.bytes.len()));
                self.is_whole = true;
                return rest;
            }
            self.line = self.bytes.len();
            if self.is_over {
                self.is_whole = true;
                return rest;
            }
        }
        self.add(rest);
        &[]
    }

    /// Whether all of it is there.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > MOST {
            self.is_over = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
        self.is_whole |= self.is_over;
    }

    /// The client of the mail server that wrote the Received field at this place, from the top.
    pub(super) fn client(&self, at: usize) -> Option<Received> {
        let is_received = |(name, _): &(&[u8], &[u8])| name.trim_ascii().eq_ignore_ascii_case(b"received");
        let (_, value) = header_fields(&self.bytes).filter(is_received).nth(at)?;
        Some(Received::of(&String::from_utf8_lossy(value)))
    }

    /// Hands its fields to a message, and what is of the body.
    pub(super) fn fill(&self, message: &mut Message) {
        let (head, last) = self.bytes.split_at(self.line.min(self.bytes.len()));
        // A message may end in its header, without the end of a line.
        let is_last_field = is_field(last, self.line > 0);
        for (name, value) in header_fields(if is_last_field { &self.bytes } else { head }) {
            message.header(name, value);
        }
        for line in [&*self.begun, if is_last_field { b"" } else { last }] {
            if !line.is_empty() {
                message.body(line);
            }
        }
        if self.is_over {
            message.fail(Unknown::TooLarge);
        }
    }
}

/// Whether a line of a header is one of a field, as mail servers see it: what is not ends the header, and begins the body.
fn is_field(line: &[u8], is_behind_one: bool) -> bool {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return is_behind_one;
    }
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let name = line[..colon].trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header and body are told apart however the bytes are cut, with either line end.
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
                assert!(of.is_whole && !of.is_over);
            }
        }
        let mut alone = Head::default();
        assert!(alone.take(b"A: b\nC: d").is_empty() && !alone.is_whole);
        assert_eq!(alone.bytes, b"A: b\nC: d");
    }

    /// What is no field ends the header, as it does for mail servers, and is of the body.
    #[test]
    fn what_is_no_field_is_of_the_body() {
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

    #[test]
    fn a_header_without_end_is_not_kept() {
        for line in [&b"X: yyyyyyy\n"[..], b"yyyyyyyyyyyyyyyyyyyyy"] {
            let mut head = Head::default();
            (0..100_000).for_each(|_| _ = head.take(line));
            assert!(head.is_over && head.is_whole && head.bytes.len() <= MOST);
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
