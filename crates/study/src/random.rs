// SPDX-License-Identifier: GPL-3.0-or-later
//! Random numbers without bias, for all studies.

use rand_xoshiro::rand_core::Rng;

/// A number below `bound`, which is not 0, without bias (Lemire's multiplication with rejection).
pub(crate) fn below(random: &mut dyn Rng, bound: u32) -> u32 {
    loop {
        let product = u64::from(random.next_u32()) * u64::from(bound);
        #[expect(clippy::cast_possible_truncation, reason = "the halves of a number of 64 bits")]
        let (high, low) = ((product >> 32) as u32, product as u32);
        // The first test is the second's bound: it spares a division nearly always.
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return high;
        }
    }
}
