// SPDX-License-Identifier: GPL-3.0-or-later
//! The entries of split storage: how many bits key and value have.

/// Bits of the value in an entry. The key is above them.
pub(crate) const VALUE_BITS: u32 = 15;

/// The largest value of an entry.
pub(crate) const VALUE_MAX: u32 = (1 << VALUE_BITS) - 1;

/// Homes of a row, each for as many keys as there are cells in a block: those are looked for together.
pub(crate) const HOMES: usize = 1 << (u32::BITS - VALUE_BITS - HOME_BITS);

/// Bits of a key that keys of one home differ in.
pub(crate) const HOME_BITS: u32 = 7;

/// A key and its value.
pub(crate) type Placed = (u32, u32);
