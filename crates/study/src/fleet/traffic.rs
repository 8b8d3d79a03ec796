// SPDX-License-Identifier: GPL-3.0-or-later
//! A day's mail in signatures: mailings, each with some copies, in a random order.

use super::law::Law;
use bulkmark_types::Signature;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Mailings of a window, the largest first.
pub struct Traffic {
    copies: Vec<u32>,
    /// Copies of all mailings up to each.
    sums: Vec<u64>,
    random: Xoshiro256PlusPlus,
}

impl Traffic {
    /// So many mailings by this law.
    #[must_use]
    pub fn new(law: Law, mailings: u32, seed: u64) -> Self {
        let share = |i: u32| (f64::from(i) + 0.5) / f64::from(mailings);
        let copies: Vec<u32> = (0..mailings).map(|i| law.copies(share(i))).collect();
        let sums = copies.iter().scan(0, |sum, &copies| {
            *sum += u64::from(copies);
            Some(*sum)
        });
        let sums = sums.collect();
        Self { copies, sums, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Copies of each mailing.
    #[must_use]
    pub fn copies(&self) -> &[u32] {
        &self.copies
    }

    /// Copies of all of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// A number below this one, which is not zero. (The bias of such small numbers is below one in a billion.)
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// Half of each mailing's copies, those before noon; an odd one falls by chance.
    pub fn morning(&mut self) -> Vec<u32> {
        let halves: Vec<_> = self.copies.iter().map(|&copies| (copies / 2, copies % 2)).collect();
        halves.into_iter().map(|(half, odd)| half + odd * u32::from(self.below(2) == 1)).collect()
    }

    /// The mailing of a message at a random time.
    pub fn draw(&mut self) -> usize {
        let all = self.all().max(1);
        let at = self.below(all);
        self.sums.partition_point(|&sum| sum <= at)
    }

    /// All messages, in a random order.
    pub fn shuffled(&mut self) -> Vec<usize> {
        let repeated = self.copies.iter().enumerate();
        let mut all: Vec<usize> =
            repeated.flat_map(|(i, &copies)| std::iter::repeat_n(i, copies as usize)).collect();
        for i in (1..all.len()).rev() {
            let other = self.below(i as u64 + 1);
            all.swap(i, usize::try_from(other).unwrap_or(i));
        }
        all
    }
}

/// One of a mailing's signatures.
#[must_use]
pub fn signature(mailing: usize, which: usize) -> Signature {
    let half = |n: u64| {
        let z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let number = (mailing as u64) << 8 | which as u64;
    let bits = u128::from(half(2 * number + 1)) << 64 | u128::from(half(2 * number + 2));
    Signature::from_bytes(bits.to_be_bytes())
}
