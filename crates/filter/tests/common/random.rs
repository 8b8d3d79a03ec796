// SPDX-License-Identifier: GPL-3.0-or-later
//! Pseudo-random numbers that are the same in each run.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns the next number.
    #[allow(clippy::should_implement_trait, reason = "the numbers never end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Returns 128 bits for the element with this number: spread over a filter as signatures are.
pub fn element(number: u64) -> u128 {
    // Each element takes two numbers of the sequence, so that no half is shared.
    let mut random = Random::new(2 * number);
    u128::from(random.next()) << 64 | u128::from(random.next())
}
