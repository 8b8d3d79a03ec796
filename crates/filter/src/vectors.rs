// SPDX-License-Identifier: GPL-3.0-or-later
//! Cells of four bits, and keys in split storage, by the vectors of AVX-512: all those of an element at once.
//!
//! By words each of the eight cells is read and raised on its own. With vectors a batch of additions takes half to two thirds
//! of that time (`make bench-filter`).

use crate::blocks::Block;
#[cfg(target_arch = "x86_64")]
use crate::layout::CELL_MAX;
use crate::probe::Probe;

/// That this processor has the vectors; there is none where it has not.
#[derive(Clone, Copy)]
pub(crate) struct Vectors(Found);

#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
enum Found {}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Found;

#[cfg(not(target_arch = "x86_64"))]
impl Vectors {
    pub(crate) fn find() -> Option<Self> {
        None
    }

    pub(crate) fn least(self, _: &[Block], _: &[Probe], _: &mut [u32]) {
        match self.0 {}
    }

    pub(crate) fn add(self, _: &mut [Block], _: &[Probe], _: &[(u128, u32)], _: &mut [u32]) {
        match self.0 {}
    }

    pub(crate) fn equal<const BITS: u32, const N: usize>(self, _: &[[u8; 4]; 32], _: [u32; N]) -> [u32; N] {
        match self.0 {}
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(
    unsafe_code,
    reason = "vectors have no safe loads and stores, and no safe way in; what they gain is measured"
)]
impl Vectors {
    pub(crate) fn find() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi");
        has.then_some(Self(Found))
    }

    /// Writes the smallest cell of each element at its place in `least`.
    pub(crate) fn least(self, blocks: &[Block], probes: &[Probe], least: &mut [u32]) {
        // SAFETY: `find` made this, so the processor has the features.
        unsafe { x86::least_each(blocks, probes, least) }
    }

    /// The refined extension, one element after the other: each cell becomes the larger of what it was and the smallest of
    /// the element plus the times it is added. Writes what the smallest was before at the element's place in `before`.
    pub(crate) fn add(
        self,
        blocks: &mut [Block],
        probes: &[Probe],
        additions: &[(u128, u32)],
        before: &mut [u32],
    ) {
        // SAFETY: `find` made this, so the processor has the features.
        unsafe { x86::add_each(blocks, probes, additions, before) }
    }

    /// For each key a bit for each of the words that is not zero and has that key above its lowest `BITS` bits. Words are
    /// little-endian.
    #[inline]
    pub(crate) fn equal<const BITS: u32, const N: usize>(
        self,
        words: &[[u8; 4]; 32],
        keys: [u32; N],
    ) -> [u32; N] {
        // SAFETY: `find` made this, so the processor has the features.
        unsafe { x86::equal_each::<BITS, N>(words, keys) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Block, CELL_MAX, Probe};
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_and_si128, _mm_cvtepu8_epi16, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
        _mm_extract_epi16, _mm_extract_epi64, _mm_minpos_epu16, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi16,
        _mm_slli_epi16, _mm_srli_epi16, _mm_srlv_epi16, _mm512_and_si512, _mm512_andnot_si512,
        _mm512_castsi128_si512, _mm512_castsi512_si128, _mm512_cvtepu16_epi64, _mm512_extracti32x4_epi32,
        _mm512_loadu_si512, _mm512_mask_cmpeq_epi32_mask, _mm512_mask_max_epu8, _mm512_maskz_mov_epi64,
        _mm512_or_si512, _mm512_permutex2var_epi8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_epi64,
        _mm512_shuffle_i64x2, _mm512_sllv_epi64, _mm512_srli_epi32, _mm512_srli_epi64, _mm512_storeu_si512,
        _mm512_test_epi32_mask, _mm512_test_epi64_mask, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
    };

    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    pub(super) fn least_each(blocks: &[Block], probes: &[Probe], least: &mut [u32]) {
        for (probe, least) in probes.iter().zip(least) {
            let [a, b] = probe.blocks.map(|block| load(&blocks[block]));
            *least = smallest(values(a, b, words(probe)));
        }
    }

    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    pub(super) fn add_each(
        blocks: &mut [Block],
        probes: &[Probe],
        additions: &[(u128, u32)],
        before: &mut [u32],
    ) {
        for ((probe, &(_, times)), before) in probes.iter().zip(additions).zip(before) {
            let [first, second] = probe.blocks;
            let cells = words(probe);
            let (a, b) = (load(&blocks[first]), load(&blocks[second]));
            let least = smallest(values(a, b, cells));
            let [target, ..] = least.saturating_add(times).min(CELL_MAX).to_le_bytes();
            let [in_a, in_b] = places(cells);
            store(&mut blocks[first], raised(a, in_a, target));
            // Once more, for the two blocks may be one.
            let b = load(&blocks[second]);
            store(&mut blocks[second], raised(b, in_b, target));
            *before = least;
        }
    }

    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    pub(super) fn equal_each<const BITS: u32, const N: usize>(
        words: &[[u8; 4]; 32],
        keys: [u32; N],
    ) -> [u32; N] {
        let (blocks, []) = words.as_flattened().as_chunks() else { return [0; N] };
        let halves = [load(&blocks[0]), load(&blocks[1])]
            .map(|words| (_mm512_test_epi32_mask(words, words), _mm512_srli_epi32::<BITS>(words)));
        keys.map(|key| {
            let key = _mm512_set1_epi32(key.cast_signed());
            let [first, second] =
                halves.map(|(used, keys)| u32::from(_mm512_mask_cmpeq_epi32_mask(used, keys, key)));
            first | second << 16
        })
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    #[allow(unsafe_code, reason = "see above")]
    fn load(block: &Block) -> __m512i {
        // SAFETY: a block has the 64 bytes that are read; no alignment is asked for.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    #[allow(unsafe_code, reason = "see above")]
    fn store(block: &mut Block, vector: __m512i) {
        // SAFETY: a block has the 64 bytes that are written; no alignment is asked for.
        unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), vector) }
    }

    /// The numbers of an element's cells in their blocks, as words: four of the first block, then four of the second.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    fn words(probe: &Probe) -> __m128i {
        let [[a, b, c, d], [e, f, g, h]] = probe.cells;
        _mm_cvtepu8_epi16(_mm_cvtsi64_si128(i64::from_le_bytes([a, b, c, d, e, f, g, h])))
    }

    /// The values of these cells of the blocks `a` and `b`, as words.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    fn values(a: __m512i, b: __m512i, cells: __m128i) -> __m128i {
        // Two cells are in a byte, and the bytes of the second block come after the 64 of the first.
        let second = _mm_set_epi64x(0x0040_0040_0040_0040, 0);
        let bytes = _mm512_castsi128_si512(_mm_or_si128(_mm_srli_epi16::<1>(cells), second));
        let bytes = _mm512_castsi512_si128(_mm512_permutex2var_epi8(a, bytes, b));
        let shifts = _mm_slli_epi16::<2>(_mm_and_si128(cells, _mm_set1_epi16(1)));
        _mm_and_si128(_mm_srlv_epi16(bytes, shifts), _mm_set1_epi16(0xF))
    }

    /// The smallest of eight words.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    fn smallest(words: __m128i) -> u32 {
        _mm_extract_epi16::<0>(_mm_minpos_epu16(words)).cast_unsigned()
    }

    /// Which bytes of the first block and of the second have one of these cells in their lower half, and which in their
    /// upper.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    fn places(cells: __m128i) -> [[u64; 2]; 2] {
        let (cells, one) = (_mm512_cvtepu16_epi64(cells), _mm512_set1_epi64(1));
        let byte = _mm512_sllv_epi64(one, _mm512_srli_epi64::<1>(cells));
        let upper = _mm512_test_epi64_mask(cells, one);
        let (low, high) = (_mm512_maskz_mov_epi64(!upper, byte), _mm512_maskz_mov_epi64(upper, byte));
        let pairs = _mm512_or_si512(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
        let fours = _mm512_or_si512(pairs, _mm512_shuffle_i64x2::<0b10_11_00_01>(pairs, pairs));
        [_mm512_castsi512_si128(fours), _mm512_extracti32x4_epi32::<2>(fours)].map(|both| {
            [_mm_cvtsi128_si64(both).cast_unsigned(), _mm_extract_epi64::<1>(both).cast_unsigned()]
        })
    }

    /// A block whose cells at these places are at least `target`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx512vbmi")]
    fn raised(block: __m512i, [lower, upper]: [u64; 2], target: u8) -> __m512i {
        let half = _mm512_set1_epi8(0x0F);
        let (low, high) = (_mm512_and_si512(half, block), _mm512_andnot_si512(half, block));
        let low = _mm512_mask_max_epu8(low, lower, low, _mm512_set1_epi8(target.cast_signed()));
        let high = _mm512_mask_max_epu8(high, upper, high, _mm512_set1_epi8((target << 4).cast_signed()));
        _mm512_or_si512(low, high)
    }
}
