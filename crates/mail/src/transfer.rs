// SPDX-License-Identifier: GPL-3.0-or-later
//! Decodes transfer encodings, strictly or as mail programs do.

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use std::borrow::Cow;

/// The transfer encoding of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    QuotedPrintable,
    Base64,
    Uuencode,
}

/// The bytes of a part.
pub(super) struct Decoded<'a> {
    /// Decoded strictly: a part that is not valid in its encoding stays undecoded.
    pub(super) exact: Cow<'a, [u8]>,
    /// Decoded as mail programs do, if that differs.
    lenient: Option<Vec<u8>>,
}

impl Decoded<'_> {
    /// The bytes as mail programs read them.
    pub(super) fn shown(&self) -> &[u8] {
        self.lenient.as_deref().unwrap_or(&self.exact)
    }

    /// Whether both are the same.
    pub(super) const fn is_clean(&self) -> bool {
        self.lenient.is_none()
    }
}

impl Encoding {
    /// The encoding with this name in the header, in lower case; `None` if it is unknown.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "base64" => Some(Self::Base64),
            "quoted-printable" => Some(Self::QuotedPrintable),
            "x-uuencode" | "uuencode" | "x-uue" | "uue" => Some(Self::Uuencode),
            "7bit" | "8bit" | "binary" => Some(Self::Identity),
            _ => None,
        }
    }

    /// Decodes the body strictly. An invalid body stays undecoded.
    pub(super) fn exact(self, body: &[u8]) -> Cow<'_, [u8]> {
        self.strict(body).map_or(Cow::Borrowed(body), Cow::Owned)
    }

    /// Decodes the body in both ways. The lenient one costs nothing if the strict one succeeds.
    pub(super) fn decoded(self, body: &[u8]) -> Decoded<'_> {
        let strict = self.strict(body);
        let lenient = match self {
            _ if strict.is_some() => None,
            Self::Identity | Self::Uuencode => None,
            Self::QuotedPrintable => Some(quoted_printable(body)),
            // A body without base64 characters is no base64.
            Self::Base64 => Some(base64(body)).filter(|bytes| !bytes.is_empty()),
        };
        Decoded { exact: strict.map_or(Cow::Borrowed(body), Cow::Owned), lenient }
    }

    fn strict(self, body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Identity => None,
            Self::QuotedPrintable => quoted_printable_decode(body),
            Self::Base64 => base64_decode(body),
            Self::Uuencode => uuencoded(body),
        }
    }
}

/// Decodes uuencode (POSIX, uuencode): lines from `begin` on, each beginning with its number of bytes. `None` if there are none.
fn uuencoded(body: &[u8]) -> Option<Vec<u8>> {
    let mut lines = body.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    lines.find(|line| line.starts_with(b"begin "))?;
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    for line in lines.take_while(|line| *line != b"end") {
        let Some((&length, groups)) = line.split_first() else { continue };
        let end = out.len() + usize::from(length.wrapping_sub(b' ') & 63);
        for group in groups.chunks(4) {
            let mut sextets = [0; 4];
            group.iter().zip(&mut sextets).for_each(|(b, sextet)| *sextet = b.wrapping_sub(b' ') & 63);
            end_group(&mut out, sextets, 4);
        }
        out.truncate(end);
    }
    Some(out).filter(|out| !out.is_empty())
}

/// The number of a base64 character.
pub(super) const fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Bytes of a line behind padding that are checked. A line of base64 has 76 characters.
const NEXT_LINE: usize = 80;

/// Decodes base64 as mail programs do: other characters are skipped, and padding ends a block, behind which another one may begin. Text
/// added below the last block, such as a list footer, ends it.
fn base64(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() / 4 * 3 + 3);
    let (mut group, mut have) = ([0; 4], 0);
    // Base64 is known to continue up to here.
    let mut looked = 0;
    for (at, &byte) in body.iter().enumerate() {
        if let Some(value) = sextet(byte) {
            group[have] = value;
            have += 1;
            if have == 4 {
                end_group(&mut out, group, have);
                have = 0;
            }
        } else if byte == b'=' && have > 0 {
            end_group(&mut out, group, have);
            have = 0;
            if at >= looked {
                let rest = &body[at + 1..];
                match next_line(rest) {
                    None if rest.len() < body.len() / 2 => return out,
                    None => looked = at + NEXT_LINE,
                    Some(length) => looked = at + 1 + length,
                }
            }
        }
    }
    end_group(&mut out, group, have);
    out
}

/// The bytes for the first `have` characters of a group.
fn end_group(out: &mut Vec<u8>, [a, b, c, d]: [u8; 4], have: usize) {
    let bytes = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
    out.extend_from_slice(&bytes[..have.saturating_sub(1)]);
}

/// The end of the next line that is not empty; `None` if it has a character outside base64.
fn next_line(rest: &[u8]) -> Option<usize> {
    let start = rest.iter().position(|&b| b != b'=' && !b.is_ascii_whitespace()).unwrap_or(rest.len());
    let line = &rest[start..rest.len().min(start + NEXT_LINE)];
    let line = memchr::memchr(b'\n', line).map_or(line, |end| &line[..end]);
    line.trim_ascii_end().iter().all(|&b| sextet(b).is_some() || b == b'=').then_some(start + line.len())
}

/// Decodes quoted-printable as mail programs do: an invalid escape stays as written.
fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|&b| b == b'\n') {
        let end = line.len() - line.strip_suffix(b"\n").map_or(0, |l| 1 + usize::from(l.ends_with(b"\r")));
        let (text, line_end) = line.split_at(end);
        let text = text.trim_ascii_end();
        let (text, line_end) = text.strip_suffix(b"=").map_or((text, line_end), |text| (text, &[]));
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'=', rest) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let length = match hexadecimal(rest) {
                Some(byte) => {
                    out.push(byte);
                    3
                }
                None => {
                    out.push(b'=');
                    1
                }
            };
            rest = &rest[length..];
        }
        out.extend_from_slice(rest);
        out.extend_from_slice(line_end);
    }
    out
}

/// The byte of an escape at the beginning.
fn hexadecimal(escape: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*escape.get(at)?).to_digit(16).and_then(|d| u8::try_from(d).ok());
    Some(digit(1)? << 4 | digit(2)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(encoding: Encoding, body: &str) -> String {
        String::from_utf8_lossy(encoding.decoded(body.as_bytes()).shown()).into_owned()
    }

    /// "An offer for you" is `QW4gb2ZmZXIgZm9yIHlvdQ==`.
    #[test]
    fn base64_is_decoded_past_other_characters() {
        for body in [
            "QW4gb2ZmZXIgZm9yIHlvdQ==",
            "QW4gb2Zm!ZXIgZm9yIHlvdQ==",
            "QW4gb2Zm\u{a0}ZXIgZm9yIHlvdQ",
            "#QW4gb2Zm\r\nZXIgZm9yIHlvdQ=",
            "QW4gb2Zm ZXIg\tZm9yIHlvdQ==~",
            // Two blocks.
            "QW4gb2ZmZXI=\r\nIGZvciB5b3U=!\r\n",
            "QW4gb2ZmZXI=IGZvciB5b3U=!",
            // A footer of a list.
            "QW4gb2ZmZXIgZm9yIHlvdQ==\r\n\r\n-- \r\nlist",
        ] {
            assert_eq!(shown(Encoding::Base64, body), "An offer for you", "{body}");
        }
        // Text behind padding that is most of the body is no footer.
        let long = format!("QQ==\r\na b\r\n{}", "QW4gb2Zm".repeat(20));
        assert!(shown(Encoding::Base64, &long).len() > 100);
    }

    #[test]
    fn a_body_without_base64_characters_stays() {
        assert_eq!(shown(Encoding::Base64, "\u{2014} ?!"), "\u{2014} ?!");
    }

    #[test]
    fn invalid_escapes_stand_as_they_are() {
        for (body, text) in [
            ("=41n =zz offer", "An =zz offer"),
            ("=41n of=\r\nfer ==42!", "An offer =B!"),
            ("=41n of=  \nfer  \r\nfor =", "An offer\r\nfor "),
            ("=!a=4", "=!a=4"),
            ("=G1=c3=BC", "=G1\u{fc}"),
        ] {
            assert_eq!(shown(Encoding::QuotedPrintable, body), text, "{body:?}");
        }
    }

    #[test]
    fn uuencode_is_decoded() {
        assert_eq!(shown(Encoding::Uuencode, "x\r\nbegin 644 f\r\n#0V%T\r\n`\r\nend\r\nfooter"), "Cat");
        for body in ["", "begin ", "begin x\n", "begin x\n\u{ff}!\n#0", "Cat"] {
            shown(Encoding::Uuencode, body);
        }
        assert_eq!(shown(Encoding::Uuencode, "Cat"), "Cat");
    }

    /// The lenient way differs from the strict one only if that one fails.
    #[test]
    fn both_ways_agree_on_valid_bodies() {
        for body in ["a=3D=\r\nb \r\n\r\nc", "=\n", "", "x\n", "=41=0A\r\n"] {
            let strict = quoted_printable_decode(body.as_bytes()).unwrap();
            assert_eq!(quoted_printable(body.as_bytes()), strict, "{body:?}");
        }
        for body in ["QUJD", "QUI=", "QQ==\r\nQUI=", "QUJDR\r\nA==", ""] {
            assert_eq!(base64(body.as_bytes()), base64_decode(body.as_bytes()).unwrap(), "{body:?}");
        }
    }
}
