// SPDX-License-Identifier: GPL-3.0-or-later
//! The universal family of hashes that the study draws from (equation 2).

use crate::random::below;
use rand_xoshiro::rand_core::Rng;

/// The study's prime, above all keys.
pub(super) const PRIME: u32 = 2_100_000_011;

/// `h(x) = ((c x + d) mod p) mod m` with 0 < c < p and 0 <= d < p.
#[derive(Debug, Clone, Copy)]
pub(super) struct Universal {
    c: u32,
    d: u32,
    m: u32,
}

impl Universal {
    /// Draws a function into `0 .. m`.
    pub(super) fn draw(random: &mut dyn Rng, m: u32) -> Self {
        Self { c: 1 + below(random, PRIME - 1), d: below(random, PRIME), m }
    }

    /// The cell of `key`, which is below [`PRIME`]: `c x + d` stays below 2^63.
    pub(super) const fn cell(&self, key: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "below m")]
        let cell = ((self.c as u64 * key as u64 + self.d as u64) % PRIME as u64 % self.m as u64) as u32;
        cell
    }
}
