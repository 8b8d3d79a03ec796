// SPDX-License-Identifier: GPL-3.0-or-later
//! Wallets in base 58: Bitcoin's addresses and their like, and Monero's.

use sha2::{Digest as _, Sha256};
use sha3::Keccak256;

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Marks a byte that is no digit.
const NONE: u8 = 0xFF;

/// The digit of each byte.
const DIGITS: [u8; 256] = {
    let mut digits = [NONE; 256];
    let mut digit = 0u8;
    while digit < 58 {
        digits[ALPHABET[digit as usize] as usize] = digit;
        digit += 1;
    }
    digits
};

/// The first byte of an address: Bitcoin (1..., 3...), Dogecoin (D..., 9... or A...), Litecoin (L..., M...), Tron (T...), Dash (X...). Test
/// networks are left out: their coins are worthless.
const VERSIONS: [u8; 8] = [0x00, 0x05, 0x1E, 0x16, 0x30, 0x32, 0x41, 0x4C];

/// Bytes of such an address: version, 20 bytes of a hash, four of a checksum.
const ADDRESS: usize = 25;

/// Whether a text is an address with the right checksum: the first four bytes of SHA-256 of SHA-256 (Bitcoin wiki, Base58Check).
pub(super) fn is_address(text: &str) -> bool {
    let Some(bytes) = number::<ADDRESS>(text.as_bytes()) else { return false };
    // Each leading zero byte is written as a digit.
    let zeros = |bytes: &[u8], zero| bytes.iter().take_while(|&&b| b == zero).count();
    let (content, checksum) = bytes.split_at(ADDRESS - 4);
    VERSIONS.contains(&bytes[0])
        && zeros(&bytes, 0) == zeros(text.as_bytes(), b'1')
        && Sha256::digest(Sha256::digest(content))[..4] == *checksum
}

/// The number in these digits, most significant byte first, if it is below 256^N.
fn number<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for &digit in digits {
        let digit = DIGITS[usize::from(digit)];
        if digit == NONE {
            return None;
        }
        let mut carry = u32::from(digit);
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            [*byte, ..] = carry.to_le_bytes();
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    Some(bytes)
}

/// Digits that Monero writes for eight bytes, and the number of bytes for fewer digits.
const BLOCK: usize = 11;
const BLOCKS: [Option<usize>; BLOCK + 1] =
    [Some(0), None, Some(1), Some(2), None, Some(3), Some(4), Some(5), None, Some(6), Some(7), Some(8)];

/// The first byte of Monero's addresses: standard, integrated, subaddress.
const MONERO: [u8; 3] = [18, 19, 42];

/// Whether a text is an address of Monero with the right checksum: the first four bytes of Keccak-256 (monero, src/common/base58.cpp).
pub(super) fn is_monero(text: &str) -> bool {
    let mut bytes = Vec::new();
    for block in text.as_bytes().chunks(BLOCK) {
        let (Some(length), Some(number)) = (BLOCKS[block.len()], number::<8>(block)) else { return false };
        let (above, bytes_of_block) = number.split_at(8 - length);
        if above.iter().any(|&byte| byte != 0) {
            return false;
        }
        bytes.extend_from_slice(bytes_of_block);
    }
    let Some((content, checksum)) = bytes.split_last_chunk::<4>() else { return false };
    content.first().is_some_and(|version| MONERO.contains(version))
        && Keccak256::digest(content)[..4] == *checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Public addresses, from genesis blocks, documents and donations.
    pub(in super::super) const ADDRESSES: [&str; 6] = [
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
        "1111111111111111111114oLvT2",
        "DH5yaieqoZN36fDVciNyRueRGvGLR3mr7L",
        "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
    ];

    const MONERO_ADDRESS: &str =
        "44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft3XjrpDtQGv7SqSsaBYBb98uNbr2VBBEt7f2wfn3RVGQBEP3A";

    #[test]
    fn a_wrong_digit_is_refused() {
        let monero = |text: &str| is_monero(text);
        for (text, check) in ADDRESSES
            .map(|text| (text, is_address as fn(&str) -> bool))
            .into_iter()
            .chain([(MONERO_ADDRESS, monero as _)])
        {
            assert!(check(text), "{text}");
            for at in 0..text.len() {
                for other in ["2", "z"] {
                    let wrong = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                    assert!(wrong == text || !check(&wrong), "{wrong}");
                }
            }
        }
    }

    #[test]
    fn other_text_is_no_wallet() {
        // A test network's, too short and too long ones, and letters outside the alphabet.
        for text in
            ["mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", "", "1", "111111111111111111111111111111111", "O0Il", "é"]
        {
            assert!(!is_address(text) && !is_monero(text), "{text}");
        }
    }
}
