// SPDX-License-Identifier: GPL-3.0-or-later
//! The message in an opaque-signed S/MIME part (RFC 5652, 5.1 and 5.2; RFC 8551, 3.5.2).

/// Object identifier of signed data, 1.2.840.113549.1.7.2.
const SIGNED_DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02];

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;
const OCTETS: u8 = 0x04;
/// Octets in pieces.
const PIECES: u8 = 0x24;
/// The explicit tag 0.
const TAGGED: u8 = 0xA0;

/// The signed entity; `None` for other content, such as encrypted data.
pub(super) fn signed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut info = Elements(inner(bytes, SEQUENCE)?);
    if info.next().filter(|element| element.tag == OBJECT)?.content != SIGNED_DATA {
        return None;
    }
    let signed = inner(info.next().filter(|element| element.tag == TAGGED)?.content, SEQUENCE)?;
    // Skips the version and the digests.
    let content = Elements(signed).nth(2).filter(|element| element.tag == SEQUENCE)?.content;
    let octets = Elements(content).nth(1).filter(|element| element.tag == TAGGED)?.content;
    let octets = Elements(octets).next()?;
    match octets.tag {
        OCTETS => Some(octets.content.to_vec()),
        PIECES => Some(
            Elements(octets.content).filter(|e| e.tag == OCTETS).flat_map(|e| e.content).copied().collect(),
        ),
        _ => None,
    }
}

/// The content of the first element if it has this tag.
fn inner(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    Elements(bytes).next().filter(|element| element.tag == tag).map(|element| element.content)
}

/// An element of BER (X.690).
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// A sequence of elements.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        // The end of contents, or a tag of several bytes, which is never needed.
        if tag == 0 || tag & 0x1F == 0x1F {
            return None;
        }
        let (length, rest) = match first {
            0..=0x7F => (usize::from(first), rest),
            0x80 => (open_length(rest)?, rest),
            _ => {
                let (number, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
                // Four bytes are enough for the length of any message.
                let number = number.get(number.len().saturating_sub(4)..)?;
                (number.iter().fold(0, |length, &b| length << 8 | usize::from(b)), rest)
            }
        };
        let content = &rest[..length.min(rest.len())];
        self.0 = rest.get(length..).unwrap_or(&[]);
        if first == 0x80 {
            self.0 = self.0.get(2..).unwrap_or(&[]);
        }
        Some(Element { tag, content })
    }
}

/// The length of contents up to two zero bytes, skipping nested elements. One pass: open lengths are counted.
fn open_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut open) = (0usize, 1usize);
    loop {
        let &[tag, first] = bytes.get(at..)?.first_chunk()?;
        at += 2;
        match (tag, first) {
            (0, 0) => {
                open -= 1;
                if open == 0 {
                    return Some(at - 2);
                }
            }
            (_, 0..=0x7F) => at += usize::from(first),
            (_, 0x80) => open += 1,
            _ => {
                let number = bytes.get(at..at + usize::from(first & 0x7F))?;
                let last = number.get(number.len().saturating_sub(4)..)?;
                let length = last.iter().fold(0, |length, &b| length << 8 | usize::from(b));
                at = (at + number.len()).saturating_add(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element with these contents; `long`: with a length in two bytes; `open`: without a length.
    fn element(tag: u8, parts: &[&[u8]], form: u8) -> Vec<u8> {
        let content = parts.concat();
        let [low, high] = u16::try_from(content.len()).unwrap().to_le_bytes();
        match form {
            0x80 => [&[tag, 0x80][..], &content, &[0, 0]].concat(),
            _ => [&[tag, 0x82, high, low][..], &content].concat(),
        }
    }

    fn message(form: u8, octets: &[u8]) -> Vec<u8> {
        let content = element(SEQUENCE, &[&[6, 1, 0x2A], &element(TAGGED, &[octets], form)], form);
        let signed = element(SEQUENCE, &[&[2, 1, 1], &[0x31, 0], &content, &[0x31, 0]], form);
        let kind = [&[OBJECT, 9][..], SIGNED_DATA].concat();
        element(SEQUENCE, &[&kind, &element(TAGGED, &[&signed], form)], form)
    }

    #[test]
    fn the_signed_entity_is_found() {
        let pieces = element(PIECES, &[&[OCTETS, 2, b'a', b'b'], &[OCTETS, 1, b'c']], 0x80);
        for form in [0x80, 0x82] {
            for octets in [&[OCTETS, 3, b'a', b'b', b'c'][..], &pieces] {
                let bytes = message(form, octets);
                assert_eq!(signed(&bytes).as_deref(), Some(&b"abc"[..]));
                // Truncated or damaged anywhere.
                for at in 0..bytes.len() {
                    signed(&bytes[..at]);
                    for byte in [0, 0x7F, 0x80, 0x84, 0x88, 0xFF] {
                        let mut damaged = bytes.clone();
                        damaged[at] = byte;
                        signed(&damaged);
                    }
                }
            }
        }
        assert_eq!(signed(&message(0x82, &[0x80, 0])), None);
    }
}
