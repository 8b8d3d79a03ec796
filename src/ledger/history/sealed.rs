// SPDX-License-Identifier: GPL-3.0-or-later
//! Bytes with their kind before them and a checksum behind them.

/// The bytes, which begin with their kind, with the CRC-32 of all of them behind.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// What is between kind and checksum; none when these are not right.
pub(crate) fn unseal<'a>(kind: &[u8; 5], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (content, sum) = bytes.split_last_chunk()?;
    let right = *sum == crc32fast::hash(content).to_le_bytes();
    content.strip_prefix(kind).filter(|_| right)
}
