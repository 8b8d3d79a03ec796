// SPDX-License-Identifier: GPL-3.0-or-later
//! A binary range coder with adaptive probabilities: decisions cost as many bits as they are surprising.

/// Bits of a probability.
const PRECISION: u32 = 12;

/// The speed at which a probability adapts: by a 32nd of the distance.
const RATE: u32 = 5;

/// Below this value the range is widened by a byte.
const LOW_RANGE: u32 = 1 << 24;

/// The probability that a decision is `false`, learned from earlier ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model(u16);

impl Default for Model {
    fn default() -> Self {
        Self(1 << (PRECISION - 1))
    }
}

impl Model {
    /// Returns the part of `range` that stands for `false`.
    fn bound(self, range: u32) -> u32 {
        (range >> PRECISION) * u32::from(self.0)
    }

    fn learn(&mut self, bit: bool) {
        if bit {
            self.0 -= self.0 >> RATE;
        } else {
            self.0 += ((1 << PRECISION) - self.0) >> RATE;
        }
    }
}

/// Writes decisions to bytes.
pub(crate) struct Encoder {
    low: u64,
    range: u32,
    /// A byte that a carry may still change, and how many 0xFF bytes follow it.
    cache: Option<u8>,
    pending: usize,
    out: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self { low: 0, range: u32::MAX, cache: None, pending: 0, out: Vec::new() }
    }

    pub(crate) fn bit(&mut self, model: &mut Model, bit: bool) {
        let bound = model.bound(self.range);
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        self.normalise();
    }

    /// Encodes the lowest `count` bits of `value` with equal probabilities; the highest first.
    pub(crate) fn bits(&mut self, value: u128, count: u32) {
        for i in (0..count).rev() {
            self.range >>= 1;
            if value >> i & 1 == 1 {
                self.low += u64::from(self.range);
            }
            self.normalise();
        }
    }

    fn normalise(&mut self) {
        while self.range < LOW_RANGE {
            self.range <<= 8;
            self.shift();
        }
    }

    /// Outputs the highest byte of `low`, once it is known that no carry will change it.
    fn shift(&mut self) {
        let [_, _, _, top, carry, ..] = self.low.to_le_bytes();
        if carry != 0 || top != 0xFF {
            if let Some(cache) = self.cache {
                self.out.push(cache.wrapping_add(carry));
            }
            for _ in 0..std::mem::take(&mut self.pending) {
                self.out.push(0xFF_u8.wrapping_add(carry));
            }
            self.cache = Some(top);
        } else {
            self.pending += 1;
        }
        self.low = (self.low & 0x00FF_FFFF) << 8;
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        for _ in 0..5 {
            self.shift();
        }
        // The decoder reads zeros beyond the end.
        while self.out.last() == Some(&0) {
            self.out.pop();
        }
        self.out
    }
}

/// Reads decisions from bytes. Missing bytes at the end are read as zero; [`position`](Self::position) shows how many.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    position: usize,
    code: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { bytes, position: 0, code: 0, range: u32::MAX };
        for _ in 0..4 {
            decoder.code = decoder.code << 8 | decoder.next();
        }
        decoder
    }

    fn next(&mut self) -> u32 {
        let byte = self.bytes.get(self.position).copied().unwrap_or(0);
        self.position += 1;
        byte.into()
    }

    /// Returns the number of bytes taken, four of them in advance.
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn bit(&mut self, model: &mut Model) -> bool {
        let bound = model.bound(self.range);
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        self.normalise();
        bit
    }

    pub(crate) fn bits(&mut self, count: u32) -> u128 {
        let mut value = 0;
        for _ in 0..count {
            self.range >>= 1;
            let bit = self.code >= self.range;
            if bit {
                self.code -= self.range;
            }
            value = value << 1 | u128::from(bit);
            self.normalise();
        }
        value
    }

    fn normalise(&mut self) {
        while self.range < LOW_RANGE {
            self.range <<= 8;
            self.code = self.code << 8 | self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decisions_come_back(decisions in prop::collection::vec((0usize..3, any::<bool>(), any::<u64>(), 0u32..64), 0..500)) {
            let mut models = [Model::default(); 3];
            let mut encoder = Encoder::new();
            for (model, bit, value, count) in &decisions {
                encoder.bit(&mut models[*model], *bit);
                encoder.bits((*value).into(), *count);
            }
            let bytes = encoder.finish();
            let mut models = [Model::default(); 3];
            let mut decoder = Decoder::new(&bytes);
            for (model, bit, value, count) in decisions {
                prop_assert_eq!(decoder.bit(&mut models[model]), bit);
                prop_assert_eq!(decoder.bits(count), u128::from(value & ((1u64 << count) - 1)));
            }
        }
    }

    #[test]
    fn expected_decisions_cost_little() {
        let mut model = Model::default();
        let mut encoder = Encoder::new();
        for i in 0..10_000 {
            encoder.bit(&mut model, i % 100 == 0);
        }
        // The entropy of one in a hundred is 0.081 bits.
        assert!(encoder.finish().len() < 10_000 / 8 / 8);
    }
}
