// SPDX-License-Identifier: GPL-3.0-or-later
//! Signatures: 128 bits and a kind.

use std::fmt;
use std::str::FromStr;

/// The source of a signature. The name includes the version of its canonical form: another version is another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// All text, links and attachments, exactly.
    Body,
    /// A passage, a file or the links, which copies of a message share even if they differ elsewhere.
    Near,
    /// A wallet, an account, a telephone number, an address or a page that a message asks its readers to use.
    Payload,
    /// Counts how often the rest of a message with a `near` signature was new.
    Stray,
    /// The same for less certain cases, and for one origin.
    StrayBy,
    /// Counts how often another signature came from one client network.
    SourceCount,
    /// Marks that another signature came from some network of a bucket.
    SourceBucket,
    /// Counts the messages with another signature, regardless of the number of recipients.
    Message,
    /// Stands for another signature in mail that one's own users send, which is counted separately.
    Outbound,
    /// Sums the weights of spam reports of messages with another signature.
    Nomination,
    /// A digest that a client of Pyzor made.
    Pyzor,
    /// A signature that a client of Razor made with its engine 4.
    Razor4,
    /// A signature that a client of Razor made with its engine 8.
    Razor8,
}

impl Kind {
    /// The name that is hashed with the content, so that kinds never meet.
    #[must_use]
    pub const fn domain(self) -> &'static str {
        match self {
            Self::Body => "body/1",
            Self::Near => "near/1",
            Self::Payload => "payload/1",
            Self::Stray => "stray/1",
            Self::StrayBy => "stray-by/1",
            Self::SourceCount => "source-count/1",
            Self::SourceBucket => "source-bucket/1",
            Self::Message => "message/1",
            Self::Outbound => "outbound/1",
            Self::Nomination => "nomination/1",
            Self::Pyzor => "pyzor/1",
            Self::Razor4 => "razor-4/1",
            Self::Razor8 => "razor-8/1",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Body => "body",
            Self::Near => "near",
            Self::Payload => "payload",
            Self::Stray => "stray",
            Self::StrayBy => "stray-by",
            Self::SourceCount => "source-count",
            Self::SourceBucket => "source-bucket",
            Self::Message => "message",
            Self::Outbound => "outbound",
            Self::Nomination => "nomination",
            Self::Pyzor => "pyzor",
            Self::Razor4 => "razor-4",
            Self::Razor8 => "razor-8",
        })
    }
}

/// The bits of a signature that mark a user report: the last 16 of each half. Filters choose cells by the first bits of the halves, so they
/// lose nothing. One in four billion other signatures has the tag by chance; every holder then keeps it for as long as user reports.
const TAG_BITS: u128 = 0xFFFF << 64 | 0xFFFF;
const TAG: u128 = 0x7370 << 64 | 0x616D;

/// 128 bits that stand for the content of a message; written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature(u128);

impl Signature {
    /// The first half of a digest.
    pub fn from_digest(digest: &[u8; 32]) -> Self {
        Self::from_bytes(std::array::from_fn(|i| digest[i]))
    }

    /// A signature from its 16 bytes, most significant first.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes.iter().fold(0, |bits, &byte| bits << 8 | u128::from(byte)))
    }

    /// Its 16 bytes, as [`from_bytes`](Self::from_bytes) takes them.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        std::array::from_fn(|i| (self.0 >> (120 - 8 * i) & 0xFF) as u8)
    }

    /// Whether it is a user report of another signature. The tag shows this, and reading it needs no key.
    #[must_use]
    pub const fn is_user_report(self) -> bool {
        self.0 & TAG_BITS == TAG
    }

    /// This signature with the tag of user reports.
    pub const fn tagged(self) -> Self {
        Self(self.0 & !TAG_BITS | TAG)
    }

    /// This signature with all bits inverted except the tag.
    pub const fn inverted(self) -> Self {
        Self(self.0 ^ !TAG_BITS)
    }

    /// The signature as the element of a filter.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text is no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a signature of 32 hexadecimal digits")]
pub struct ParseSignatureError;

impl FromStr for Signature {
    type Err = ParseSignatureError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ParseSignatureError);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ParseSignatureError)
    }
}

/// A message has too little text for a signature: unrelated messages would share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("low information: {words} distinct words and no attachment; {wanted} words are needed")]
pub struct LowInformation {
    /// The number of distinct words.
    pub words: usize,
    /// The number of distinct words that are needed (`min-words`).
    pub wanted: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let text = "00112233445566778899aabbccddeeff";
        let signature: Signature = text.parse().unwrap();
        assert_eq!(signature.to_string(), text);
        assert_eq!(signature.to_bytes()[..3], [0x00, 0x11, 0x22]);
        assert_eq!(Signature::from_bytes(signature.to_bytes()), signature);
        for bad in ["", "0011", "+0112233445566778899aabbccddeeff", "g0112233445566778899aabbccddeeff"] {
            assert_eq!(bad.parse::<Signature>(), Err(ParseSignatureError));
        }
    }
}
