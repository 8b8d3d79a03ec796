// SPDX-License-Identifier: GPL-3.0-or-later
//! Numbers in as many bytes as they need (LEB128): the lengths in a coded [`Delta`](crate::Delta), and other numbers in a program's own
//! messages.

/// Appends a number: seven bits a byte, the lowest first; the highest bit of a byte marks that more follow.
///
/// ```
/// let mut bytes = Vec::new();
/// bulkmark_filter::varint::put(&mut bytes, 300);
/// assert_eq!(bytes, [0xAC, 0x02]);
/// assert_eq!(bulkmark_filter::varint::take(&mut &bytes[..]), Some(300));
/// ```
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while let [low, ..] = number.to_le_bytes()
        && number >= 0x80
    {
        bytes.push(low | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes a number from the front of `bytes`. Returns `None` if they end within it, or it has more than 63 bits; then the rest of
/// `bytes` is unspecified.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_taken_as_they_were_put(number in 0..1u64 << 63, behind: Vec<u8>) {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let length = bytes.len();
            bytes.extend_from_slice(&behind);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(number));
            prop_assert_eq!(rest, &behind[..]);
            prop_assert_eq!(take(&mut &bytes[..length - 1]), None);
        }
    }

    #[test]
    fn numbers_without_an_end_are_none() {
        assert_eq!(take(&mut &[0xFF; 20][..]), None);
        assert_eq!(take(&mut &[][..]), None);
    }
}
