// SPDX-License-Identifier: GPL-3.0-or-later
//! A cheap hash for internal use: the folded product of two 64-bit numbers. One multiplication mixes 128 bits.

/// The upper half of the product, XOR the lower half.
#[inline]
pub(super) const fn folded_product(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ (product & 0xFFFF_FFFF_FFFF_FFFF) as u64
}

/// Number `n` of SplitMix64 with seed 0: constants without a hidden choice.
pub(super) const fn constant(n: u64) -> u64 {
    let mut x = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A keyed hash of words: without the secret key, nobody can construct words with equal hashes. The hash never leaves the process.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordKey([u64; 2]);

/// Bytes per product.
pub(super) const BLOCK: usize = 16;

impl WordKey {
    /// Makes a key from a secret.
    pub(super) fn new(secret: [u8; 16]) -> Self {
        let [a, b] = words_of(&secret);
        Self([a, b])
    }

    /// The hash of any number of bytes.
    pub(super) fn hash(self, bytes: &[u8]) -> u64 {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let mut hash = blocks.iter().fold(bytes.len() as u64, |hash, block| self.add(hash, block));
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            hash = self.add(hash, &block);
        }
        hash
    }

    /// Adds a block to a hash, which starts as the number of bytes.
    #[inline]
    pub(super) fn add(self, hash: u64, block: &[u8; BLOCK]) -> u64 {
        let [a, b] = words_of(block);
        folded_product(a ^ hash ^ self.0[0], b ^ self.0[1])
    }
}

fn words_of(block: &[u8; BLOCK]) -> [u64; 2] {
    [0, BLOCK / 2].map(|half| u64::from_le_bytes(std::array::from_fn(|i| block[half + i])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the reference implementation of SplitMix64, seed 0.
    #[test]
    fn constants_are_those_of_splitmix64() {
        assert_eq!([constant(0), constant(1)], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn hashes_of_words_differ_by_word_and_key() {
        let mut seen = std::collections::HashSet::new();
        for n in [10, 20] {
            let key = WordKey([constant(n), constant(n + 1)]);
            for length in 0..70 {
                for letter in b"aby" {
                    assert!(
                        seen.insert(key.hash(&vec![*letter; length])) || length == 0,
                        "{length} {letter}"
                    );
                }
            }
        }
    }
}
