// SPDX-License-Identifier: GPL-3.0-or-later
//! The Bloom filter, for nominations (Yan & Cho, section 3): was this element ever inserted?

use crate::params::ParameterError;

/// Bits of a word of the filter.
const WORD: u64 = 64;

/// The largest filter: 2^40 bits, 128 GiB.
const MAX_BITS: u64 = 1 << 40;

/// The largest number of hashes.
const MAX_HASHES: u32 = 64;

/// m bits, of which an element has k. Never forgets an inserted element; sometimes reports others.
///
/// ```
/// use bulkmark_filter::Bloom;
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let mut filter = Bloom::with_rate(10_000, 0.001)?;
/// assert!(filter.insert(element), "it is new");
/// assert!(filter.contains(element));
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bloom {
    words: Vec<u64>,
    m: u64,
    k: u32,
}

impl Bloom {
    /// Returns an empty filter of `m` bits with `k` hashes.
    ///
    /// # Errors
    /// If `m` is 0 or above 2^40 or exceeds the machine's memory, or `k` is 0 or above 64.
    pub fn new(m: u64, k: u32) -> Result<Self, ParameterError> {
        ParameterError::check("m", m, 1, MAX_BITS)?;
        ParameterError::check("k", k.into(), 1, MAX_HASHES.into())?;
        let words = usize::try_from(m.div_ceil(WORD)).map_err(|_| ParameterError::memory("m", m))?;
        let mut bits = Vec::new();
        bits.try_reserve_exact(words).map_err(|_| ParameterError::memory("m", m))?;
        bits.resize(words, 0);
        Ok(Self { words: bits, m, k })
    }

    /// Returns the smallest filter that reports an unknown element with probability `f` when it holds `n`: m = -n ln f / (ln 2)^2
    /// and k = m/n ln 2, where f is minimal (section 3).
    ///
    /// # Errors
    /// If `f` is not between 0 and 1, or `n` is 0 or needs more than 2^40 bits.
    pub fn with_rate(n: u64, f: f64) -> Result<Self, ParameterError> {
        if !(f > 0.0 && f < 1.0) {
            return Err(ParameterError::rate(f));
        }
        let ln2 = std::f64::consts::LN_2;
        let m = (-(n as f64) * f.ln() / (ln2 * ln2)).ceil();
        let k = (m / n as f64 * ln2).round().clamp(1.0, f64::from(MAX_HASHES));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both are positive; new checks m"
        )]
        Self::new(m as u64, k as u32)
    }

    /// The bits of `element`: an arithmetic progression on the circle of 64-bit fractions, scaled to m. Its start and
    /// step are the halves of the element, so each of the k hashes can reach each of the m bits.
    fn positions(&self, element: u128) -> impl Iterator<Item = (usize, u64)> + use<> {
        #[expect(clippy::cast_possible_truncation, reason = "the halves of the element")]
        let (start, step) = ((element >> 64) as u64, element as u64 | 1);
        let m = u128::from(self.m);
        (0..self.k.into()).map(move |i: u64| {
            let fraction = start.wrapping_add(step.wrapping_mul(i));
            // Below m, whose words fit into memory.
            let bit = u64::try_from((u128::from(fraction) * m) >> 64).unwrap_or(u64::MAX);
            (usize::try_from(bit / WORD).unwrap_or(usize::MAX), 1 << (bit % WORD))
        })
    }

    /// Inserts `element`; returns true if it was not reported before.
    pub fn insert(&mut self, element: u128) -> bool {
        let mut new = false;
        for (word, bit) in self.positions(element) {
            new |= self.words[word] & bit == 0;
            self.words[word] |= bit;
        }
        new
    }

    /// Whether `element` was inserted; true for other elements with probability
    /// [`false_positive_rate`](Self::false_positive_rate).
    #[must_use]
    pub fn contains(&self, element: u128) -> bool {
        self.positions(element).all(|(word, bit)| self.words[word] & bit != 0)
    }

    /// Adds all elements of another filter: a bitwise OR (section 3, merging).
    ///
    /// # Errors
    /// If the other has another m or k; nothing is changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), ParameterError> {
        ParameterError::same("m", self.m, other.m)?;
        ParameterError::same("k", self.k.into(), other.k.into())?;
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        Ok(())
    }

    /// Returns the bits as bytes, in words of eight, little-endian.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Restores the [`bytes`](Self::bytes) of a filter with the same m and k. Returns false if they do not fit; nothing is changed then.
    #[must_use]
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks();
        let fits = words.len() == self.words.len() && rest.is_empty();
        if fits {
            self.words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        }
        fits
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub const fn memory(&self) -> usize {
        size_of::<u64>() * self.words.len()
    }

    /// Returns the share of bits that are set, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let set: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        set as f64 / self.m as f64
    }

    /// Returns the probability that an unknown element is reported: that all of its k bits are set.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.fill().powf(self.k.into())
    }
}

/// Nominated and revoked elements (section 3): two filters, since a Bloom filter supports no deletion.
///
/// One nomination is enough, one revocation ends it, and a revoked element cannot be nominated again. If these rules suffice, nothing is
/// smaller. If several people vote, a pair of counting filters counts the votes on each side, and
/// [`Intuitive`](crate::Intuitive) lets a voter withdraw.
///
/// ```
/// use bulkmark_filter::Nominations;
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let mut nominations = Nominations::with_rate(10_000, 0.001)?;
/// nominations.nominate(element);
/// assert!(nominations.contains(element));
/// nominations.revoke(element);
/// assert!(!nominations.contains(element));
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nominations {
    /// The nominated elements.
    pub nominated: Bloom,
    /// The revoked elements.
    pub revoked: Bloom,
}

impl Nominations {
    /// Returns empty filters for `n` nominations and as many revocations, each with the error rate `f`.
    ///
    /// # Errors
    /// As [`Bloom::with_rate`].
    pub fn with_rate(n: u64, f: f64) -> Result<Self, ParameterError> {
        let empty = Bloom::with_rate(n, f)?;
        Ok(Self { nominated: empty.clone(), revoked: empty })
    }

    /// Nominates an element.
    pub fn nominate(&mut self, element: u128) {
        self.nominated.insert(element);
    }

    /// Revokes the nomination permanently.
    pub fn revoke(&mut self, element: u128) {
        self.revoked.insert(element);
    }

    /// The paper's rule: in the filter of nominations and not in that of revocations. Most elements are in neither, so the former is
    /// checked first.
    #[must_use]
    pub fn contains(&self, element: u128) -> bool {
        self.nominated.contains(element) && !self.revoked.contains(element)
    }

    /// Returns the bytes of memory of both filters.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.nominated.memory() + self.revoked.memory()
    }

    /// Adds others' nominations and revocations.
    ///
    /// # Errors
    /// As [`Bloom::union`].
    pub fn union(&mut self, other: &Self) -> Result<(), ParameterError> {
        self.nominated.union(&other.nominated)?;
        self.revoked.union(&other.revoked)
    }
}
