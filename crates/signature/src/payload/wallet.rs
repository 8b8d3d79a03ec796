// SPDX-License-Identifier: GPL-3.0-or-later
//! Wallets: addresses of crypto-currencies with a valid checksum, so that no other row of letters is taken for one.

use super::base58;
use sha3::{Digest as _, Keccak256};

/// Letters and digits of the shortest and longest known wallet.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 26..=106;

/// The canonical form of a wallet, if this row of letters and digits is one.
pub(super) fn wallet(text: &str) -> Option<String> {
    let as_it_stands = match text.len() {
        26..=35 => base58::is_address(text),
        95 | 106 => base58::is_monero(text),
        _ => false,
    };
    if as_it_stands {
        return Some(text.to_owned());
    }
    let lower = text.to_ascii_lowercase();
    (is_ethereum(text, &lower) || is_segwit(text, &lower)).then_some(lower)
}

/// `0x` and 40 hexadecimal digits, in one case or with the capitals that are their checksum (EIP-55).
fn is_ethereum(text: &str, lower: &str) -> bool {
    let (Some(digits), Some(lower)) = (text.strip_prefix("0x"), lower.strip_prefix("0x")) else {
        return false;
    };
    let is_hexadecimal = digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    // The zero address is nobody's wallet.
    if !is_hexadecimal || lower.bytes().all(|b| b == b'0') {
        return false;
    }
    if digits == lower || digits == digits.to_ascii_uppercase() {
        return true;
    }
    let hash = Keccak256::digest(lower);
    digits.bytes().enumerate().all(|(i, digit)| {
        let nibble = hash[i / 2] >> (4 * (1 - i % 2)) & 0xF;
        digit.is_ascii_digit() || digit.is_ascii_uppercase() == (nibble >= 8)
    })
}

/// Text before the `1` of bech32 addresses: Bitcoin's, Litecoin's.
const PREFIXES: [&str; 2] = ["bc", "ltc"];

/// The digits of bech32.
const DIGITS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The result of the checksum for version 0 (BIP 173), and for later ones (BIP 350).
const BECH32: u32 = 1;
const BECH32M: u32 = 0x2BC8_30A3;

/// Whether a text is a segregated witness address (BIP 173, BIP 350), in small letters or in capitals.
fn is_segwit(text: &str, lower: &str) -> bool {
    let Some((prefix, data)) = lower.split_once('1').filter(|(prefix, _)| PREFIXES.contains(prefix)) else {
        return false;
    };
    if lower.len() > 90 || text != lower && text != text.to_ascii_uppercase() {
        return false;
    }
    let digits: Option<Vec<u8>> = data
        .bytes()
        .map(|b| DIGITS.iter().position(|&digit| digit == b).and_then(|at| u8::try_from(at).ok()))
        .collect();
    let Some([version, program @ .., _, _, _, _, _, _]) = digits.as_deref() else { return false };
    let high = prefix.bytes().map(|b| b >> 5);
    let low = prefix.bytes().map(|b| b & 31);
    let sum = checksum(high.chain([0]).chain(low).chain(digits.iter().flatten().copied()));
    // Five bits a digit; the remainder is less than a digit, and zero.
    let (bytes, over) = (program.len() * 5 / 8, program.len() * 5 % 8);
    let is_padded = over < 5 && program.last().is_some_and(|last| last & ((1 << over) - 1) == 0);
    is_padded
        && match version {
            0 => sum == BECH32 && matches!(bytes, 20 | 32),
            1..=16 => sum == BECH32M && (2..=40).contains(&bytes),
            _ => false,
        }
}

/// The remainder of BIP 173.
fn checksum(digits: impl Iterator<Item = u8>) -> u32 {
    const GENERATOR: [u32; 5] = [0x3B6A_57B2, 0x2650_8E6D, 0x1EA1_19FA, 0x3D42_33DD, 0x2A14_62B3];
    digits.fold(1, |sum, digit| {
        let top = sum >> 25;
        let sum = (sum & 0x1FF_FFFF) << 5 ^ u32::from(digit);
        GENERATOR
            .iter()
            .enumerate()
            .fold(sum, |sum, (i, number)| if top >> i & 1 == 1 { sum ^ number } else { sum })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From EIP-55, BIP 173 and BIP 350.
    const WALLETS: [&str; 7] = [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    ];

    #[test]
    fn a_wrong_character_is_refused() {
        for text in WALLETS {
            let form = wallet(text).unwrap();
            assert_eq!(wallet(&form).as_ref(), Some(&form), "{text}");
            for at in 4..text.len() {
                for other in ["2", "f", "Q"] {
                    let wrong = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                    let same = wrong.eq_ignore_ascii_case(text);
                    assert!(same || wallet(&wrong).is_none(), "{wrong}");
                }
            }
        }
    }

    #[test]
    fn capitals_without_a_meaning_do_not_matter() {
        for text in &WALLETS[..6] {
            let lower = text.to_lowercase();
            assert_eq!(wallet(&lower), Some(lower.clone()));
            assert_eq!(wallet(text), Some(lower.clone()));
        }
        assert_eq!(wallet(&format!("0x{}", WALLETS[0][2..].to_uppercase())), wallet(WALLETS[0]));
        // Mixed case.
        assert_eq!(wallet("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3T4"), None);
    }

    #[test]
    fn other_text_is_no_wallet() {
        for text in [
            // The checksum of another version, a test network's, a program of a wrong length (BIP 350).
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
            "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
            "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
            "bc1",
            "bc1gmk9yu",
            "0x0000000000000000000000000000000000000000",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "",
        ] {
            assert_eq!(wallet(text), None, "{text}");
        }
    }
}
