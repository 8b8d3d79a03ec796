// SPDX-License-Identifier: GPL-3.0-or-later
//! The universal family of hashes that the study draws from (equation 2).

use rand_xoshiro::rand_core::Rng;

/// The study's prime, above all keys.
pub(super) const PRIME: u64 = 2_100_000_011;

/// A number below `bound`, without bias (Lemire's multiplication; the rejected part is below one in 2^32).
pub(super) fn below(random: &mut impl Rng, bound: u64) -> u64 {
    loop {
        let product = u128::from(random.next_u64()) * u128::from(bound);
        let (high, low) = ((product >> 64) as u64, product as u64);
        if low >= bound.wrapping_neg() % bound {
            return high;
        }
    }
}

/// `h(x) = ((c x + d) mod p) mod m` with 0 < c < p and 0 <= d < p.
#[derive(Debug, Clone, Copy)]
pub(super) struct Universal {
    c: u64,
    d: u64,
    m: u64,
}

impl Universal {
    /// Draws a function into `0 .. m`.
    pub(super) fn draw(random: &mut impl Rng, m: u32) -> Self {
        Self { c: 1 + below(random, PRIME - 1), d: below(random, PRIME), m: m.into() }
    }

    /// The cell of `key`, which is below [`PRIME`]: `c x + d` stays below 2^63.
    pub(super) const fn cell(&self, key: u32) -> u32 {
        ((self.c * key as u64 + self.d) % PRIME % self.m) as u32
    }
}
