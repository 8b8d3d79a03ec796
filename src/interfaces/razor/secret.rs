// SPDX-License-Identifier: GPL-3.0-or-later
//! Authentication by password without sending it: HMAC with SHA-1, in the form of Razor's clients.
//!
//! The stored secret is SHA-1's state after the two blocks that are made from the password: it suffices to check an answer, and does not
//! reveal the password. Its owner can authenticate, though, as with every such protocol.

use sha1::block_api::compress;
use std::fmt::Write as _;
use subtle::ConstantTimeEq as _;

/// The number of digits of both states.
const DIGITS: usize = 80;

const BLOCK: usize = 64;

/// The initial state of SHA-1.
const BEGIN: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// The stored secret of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Secret {
    outer: [u32; 5],
    inner: [u32; 5],
}

impl Secret {
    /// The secret of a password of at most 64 bytes; the rest is ignored.
    pub(super) fn of(password: &str) -> Self {
        let state = |pad: u8| {
            let mut block = [pad; BLOCK];
            block.iter_mut().zip(password.bytes()).for_each(|(to, byte)| *to ^= byte);
            let mut state = BEGIN;
            compress(&mut state, &[block]);
            state
        };
        Self { outer: state(0x36), inner: state(0x5c) }
    }

    /// Whether this is the answer to that challenge, which has at most 55 bytes.
    pub(super) fn is_proved(&self, challenge: &str, answer: &str) -> bool {
        let expected = self.answer(challenge);
        answer.len() == expected.len() && bool::from(answer.as_bytes().ct_eq(expected.as_bytes()))
    }

    fn answer(&self, challenge: &str) -> String {
        let inner = hex(finish(self.inner, challenge.as_bytes()));
        letters(&hex(finish(self.outer, inner.as_bytes())))
    }

    /// The form in the file.
    pub(super) fn encode(&self) -> String {
        hex(self.outer) + &hex(self.inner)
    }

    /// The secret from its form in the file.
    pub(super) fn decode(digits: &str) -> Option<Self> {
        if digits.len() != DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let word = |at: usize| u32::from_str_radix(digits.get(8 * at..8 * at + 8)?, 16).ok();
        let state = |from: usize| -> Option<[u32; 5]> {
            let mut state = [0; 5];
            for (at, to) in state.iter_mut().enumerate() {
                *to = word(from + at)?;
            }
            Some(state)
        };
        Some(Self { outer: state(0)?, inner: state(5)? })
    }
}

/// SHA-1 of a block that led to this state and a text that fits into one more.
#[expect(clippy::big_endian_bytes, reason = "SHA-1 has its length so")]
fn finish(mut state: [u32; 5], text: &[u8]) -> [u32; 5] {
    let mut block = [0; BLOCK];
    let text = &text[..text.len().min(BLOCK - 9)];
    block[..text.len()].copy_from_slice(text);
    block[text.len()] = 0x80;
    let bits = 8 * (BLOCK + text.len()) as u64;
    block[BLOCK - 8..].copy_from_slice(&bits.to_be_bytes());
    compress(&mut state, &[block]);
    state
}

fn hex(state: [u32; 5]) -> String {
    state.iter().fold(String::with_capacity(DIGITS / 2), |mut text, word| {
        let _ = write!(text, "{word:08x}");
        text
    })
}

/// Hexadecimal digits in Razor's alphabet: three digits are two letters. The bits of a digit are taken from the lowest on.
fn letters(digits: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits: Vec<u32> =
        digits.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit.reverse_bits() >> 28).collect();
    let mut text = String::new();
    for three in digits.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 4 | three.get(at).copied().unwrap_or(0));
        for letter in [bits >> 6, bits & 63] {
            text.push(ALPHABET.get(letter as usize).copied().map_or('A', char::from));
        }
    }
    text
}

/// Random digits.
pub(super) fn random_text() -> std::io::Result<String> {
    let bytes: [u8; 16] = bulkmark_ledger::random_bytes()?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of razor-agents 2.85: `perl -MRazor2::String -e 'print hmac_sha1("0123456789abcdef", xor_key("secret-password"))'`.
    #[test]
    fn the_answer_is_that_of_clients() {
        let secret = Secret::of("secret-password");
        assert_eq!(secret.answer("0123456789abcdef"), "9NcvzFd-z6HkeKAVYdbHhFW4ZigA");
        let kept = Secret::decode(&secret.encode()).unwrap();
        assert!(kept.is_proved("0123456789abcdef", "9NcvzFd-z6HkeKAVYdbHhFW4ZigA"));
        assert!(!kept.is_proved("0123456789abcdef", "9NcvzFd-z6HkeKAVYdbHhFW4ZigB"));
        assert!(!kept.is_proved("0123456789abcdeg", "9NcvzFd-z6HkeKAVYdbHhFW4ZigA"));
        assert!(!Secret::of("secret-Password").is_proved("0123456789abcdef", "9NcvzFd-z6HkeKAVYdbHhFW4ZigA"));
        assert!(Secret::decode("").is_none() && Secret::decode(&"\u{e9}".repeat(40)).is_none());
    }
}
