// SPDX-License-Identifier: GPL-3.0-or-later
//! Packed numbers: each takes as many bits as it needs, the highest first.

/// Packs bits into bytes.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Used bits of the last byte.
    taken: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of a number.
    pub fn put(&mut self, number: u64, width: u32) {
        let mut left = width;
        while left > 0 {
            if self.taken == 0 {
                self.bytes.push(0);
            }
            let now = left.min(8 - self.taken);
            let piece = (number >> (left - now)) & ((1 << now) - 1);
            if let Some(last) = self.bytes.last_mut() {
                // At most eight bits, of which the upper ones are taken.
                *last |= u8::try_from(piece << (8 - self.taken - now)).unwrap_or(0);
            }
            self.taken = (self.taken + now) % 8;
            left -= now;
        }
    }

    /// Appends `ones` ones and a zero.
    pub fn put_unary(&mut self, ones: u64) {
        (0..ones).for_each(|_| self.put(1, 1));
        self.put(0, 1);
    }

    /// Returns the bytes; the last one is padded with zeros.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Unpacks the bits of a [`BitWriter`].
pub struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next `width` bits, 64 at most; `None` if fewer are left.
    pub fn take(&mut self, width: u32) -> Option<u64> {
        let (mut number, mut left) = (0u64, width);
        while left > 0 {
            let byte = *self.bytes.get(self.at / 8)?;
            let used = u32::try_from(self.at % 8).unwrap_or(0);
            let now = left.min(8 - used);
            let piece = (u64::from(byte) >> (8 - used - now)) & ((1 << now) - 1);
            number = number << now | piece;
            self.at += now as usize;
            left -= now;
        }
        Some(number)
    }

    /// Returns the number of ones before the next zero; `None` if there is no zero.
    pub fn take_unary(&mut self) -> Option<u64> {
        let mut ones = 0;
        while self.take(1)? == 1 {
            ones += 1;
        }
        Some(ones)
    }

    /// Whether only the zeros that pad the last byte are left.
    pub fn is_at_end(&mut self) -> bool {
        let left = self.bytes.len() * 8 - self.at;
        left < 8 && self.take(u32::try_from(left).unwrap_or(0)) == Some(0)
    }
}
