// SPDX-License-Identifier: GPL-3.0-or-later
//! Fields of fixed size, read one after another.

/// The bytes end before the field ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff;

/// The remaining bytes; little-endian fields are taken from the front.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// Takes the next `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], CutOff> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(CutOff)?;
        self.0 = rest;
        Ok(*field)
    }

    /// Takes a number of eight bytes.
    pub fn u64(&mut self) -> Result<u64, CutOff> {
        self.take().map(u64::from_le_bytes)
    }

    /// Takes a number of four bytes.
    pub fn u32(&mut self) -> Result<u32, CutOff> {
        self.take().map(u32::from_le_bytes)
    }
}
