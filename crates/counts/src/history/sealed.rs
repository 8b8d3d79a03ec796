// SPDX-License-Identifier: GPL-3.0-or-later
//! Bytes between a tag of their kind and a checksum.

use std::fmt;

/// Data of another program version: its kind is known here, but its form is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherForm {
    /// The name of the kind.
    what: &'static str,
    /// The number of its form, and the first and last form known here.
    form: u8,
    known: (u8, u8),
}

impl fmt::Display for OtherForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, form, known: (first, last) } = self;
        let known = if first == last {
            format!("form {last} is known")
        } else {
            format!("forms {first} to {last} are known")
        };
        let who = if form > last {
            "a newer bulkmark made it: upgrade this one"
        } else {
            "an older bulkmark made it: upgrade that one"
        };
        write!(f, "it is {what} of form {form}, and {known} here; {who}")
    }
}

impl OtherForm {
    /// Recognizes whole bytes of this kind in another form. `kinds` has the known forms, from the oldest to the newest.
    pub fn of(kinds: &[&[u8; 5]], what: &'static str, bytes: &[u8]) -> Option<Self> {
        let (content, sum) = bytes.split_last_chunk()?;
        let right = *sum == checksum(&[content]);
        let (&[a, b, c, d, first], &[.., last]) = (*kinds.first()?, *kinds.last()?);
        let &[e, f, g, h, form] = content.first_chunk()?;
        let other = right && [a, b, c, d] == [e, f, g, h] && !(first..=last).contains(&form);
        other.then_some(Self { what, form, known: (first, last) })
    }
}

/// The CRC-32 of these parts in sequence, as appended to sent bytes and to rows on disk.
#[must_use]
pub fn checksum(parts: &[&[u8]]) -> [u8; 4] {
    let mut hash = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().to_le_bytes()
}

/// Appends the CRC-32 to bytes that begin with their kind.
#[must_use]
pub fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&[&bytes]);
    bytes.extend_from_slice(&sum);
    bytes
}

/// Returns the bytes between kind and checksum; `None` if one of these is not right.
#[must_use]
pub fn unseal<'a>(kind: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (content, sum) = bytes.split_last_chunk()?;
    let right = *sum == checksum(&[content]);
    content.strip_prefix(kind).filter(|_| right)
}
