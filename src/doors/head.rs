// SPDX-License-Identifier: GPL-3.0-or-later
//! The header of a message, which is kept until all of it is there; its body is handed on as it comes.

use crate::judging::Message;
use crate::mail::{Received, header_fields};
use crate::verdict::Unknown;

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

    /// Hands its fields to a message.
    pub(super) fn fill(&self, message: &mut Message) {
        for (name, value) in header_fields(&self.bytes) {
            message.header(name, value);
        }
        if self.is_over {
            message.fail(Unknown::TooLarge);
        }
    }
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
