// SPDX-License-Identifier: GPL-3.0-or-later
//! The entries of split storage: the number of bits of key and value.

/// Bits of the value in an entry. The key is above them.
pub(crate) const VALUE_BITS: u32 = 15;

/// The largest value of an entry.
pub(crate) const VALUE_MAX: u32 = (1 << VALUE_BITS) - 1;

/// Homes of a row. Each has as many keys as a block has cells: those are looked up together.
pub(crate) const HOMES: usize = 1 << (u32::BITS - VALUE_BITS - HOME_BITS);

/// The low bits of a key, in which the keys of one home differ.
pub(crate) const HOME_BITS: u32 = 7;

/// A key and its value.
pub(crate) type Placed = (u32, u32);
