// SPDX-License-Identifier: GPL-3.0-or-later
//! The Bloom filter, for nominations (Yan & Cho, section 3): was this element ever put in?

use crate::params::ParameterError;

/// Bits of a word of the filter.
const WORD: u64 = 64;

/// The largest filter: 2^40 bits, 128 GiB.
const MAX_BITS: u64 = 1 << 40;

/// The largest number of hashes.
const MAX_HASHES: u32 = 64;

/// m bits, of which an element has k. Never forgets what was put in; sometimes shows what was not.
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
    /// An empty filter of `m` bits with `k` hashes.
    ///
    /// # Errors
    /// When `m` is 0 or above 2^40 or more than the machine has memory for, or `k` is 0 or above 64.
    pub fn new(m: u64, k: u32) -> Result<Self, ParameterError> {
        ParameterError::check("m", m, 1, MAX_BITS)?;
        ParameterError::check("k", k.into(), 1, MAX_HASHES.into())?;
        let words = usize::try_from(m.div_ceil(WORD)).map_err(|_| ParameterError::memory("m", m))?;
        let mut bits = Vec::new();
        bits.try_reserve_exact(words).map_err(|_| ParameterError::memory("m", m))?;
        bits.resize(words, 0);
        Ok(Self { words: bits, m, k })
    }

    /// The smallest filter that shows a strange element with probability `f` when it holds `n`: m = -n ln f / (ln 2)^2
    /// and k = m/n ln 2, where f is least (section 3).
    ///
    /// # Errors
    /// When `f` is not between 0 and 1, or `n` is 0 or needs more than 2^40 bits.
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
    /// step are the halves of the element, so each of the m bits is reached by each of the k hashes.
    fn positions(&self, element: u128) -> impl Iterator<Item = (usize, u64)> + use<> {
        #[expect(clippy::cast_possible_truncation, reason = "the halves of the element")]
        let (start, step) = ((element >> 64) as u64, element as u64 | 1);
        let m = u128::from(self.m);
        (0..self.k.into()).map(move |i: u64| {
            let fraction = start.wrapping_add(step.wrapping_mul(i));
            // Below m, whose words are in memory.
            let bit = u64::try_from((u128::from(fraction) * m) >> 64).unwrap_or(u64::MAX);
            (usize::try_from(bit / WORD).unwrap_or(usize::MAX), 1 << (bit % WORD))
        })
    }

    /// Puts `element` in; true when it was not shown before.
    pub fn insert(&mut self, element: u128) -> bool {
        let mut new = false;
        for (word, bit) in self.positions(element) {
            new |= self.words[word] & bit == 0;
            self.words[word] |= bit;
        }
        new
    }

    /// Whether `element` was put in; for an element that was not, true with probability
    /// [`false_positive_rate`](Self::false_positive_rate).
    #[must_use]
    pub fn contains(&self, element: u128) -> bool {
        self.positions(element).all(|(word, bit)| self.words[word] & bit != 0)
    }

    /// Makes this the filter of what is in either: a bitwise OR (section 3, merging).
    ///
    /// # Errors
    /// When the other has another m or k; nothing is changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), ParameterError> {
        ParameterError::same("m", self.m, other.m)?;
        ParameterError::same("k", self.k.into(), other.k.into())?;
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        Ok(())
    }

    /// Its bits as bytes, in words of eight, little-endian.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Puts back what [`bytes`](Self::bytes) gave for a filter of the same m and k. False when it does not fit; nothing is changed then.
    #[must_use]
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks();
        let fits = words.len() == self.words.len() && rest.is_empty();
        if fits {
            self.words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        }
        fits
    }

    /// Bytes of memory.
    #[must_use]
    pub const fn memory(&self) -> usize {
        size_of::<u64>() * self.words.len()
    }

    /// The share of bits that are set, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let set: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        set as f64 / self.m as f64
    }

    /// The chance that a strange element is shown: all of its k bits are among the set ones.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.fill().powf(self.k.into())
    }
}

/// What was nominated, and what was revoked (section 3): two filters, since a Bloom filter knows no deletion.
///
/// One nomination is enough, one revocation ends it, and what was once revoked cannot be nominated any more. Where that will do,
/// nothing is as small. Where several people have a say, a pair of counting filters tells how many spoke on each side, and
/// [`Intuitive`](crate::Intuitive) lets one take back what he said.
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
    /// What was nominated.
    pub nominated: Bloom,
    /// What was revoked.
    pub revoked: Bloom,
}

impl Nominations {
    /// Both filters empty, for `n` nominations and as many revocations, each with the error rate `f`.
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

    /// Revokes the nomination, for good.
    pub fn revoke(&mut self, element: u128) {
        self.revoked.insert(element);
    }

    /// The paper's rule: in the filter of nominations and not in that of revocations. Most elements are in neither, so the former is
    /// asked first.
    #[must_use]
    pub fn contains(&self, element: u128) -> bool {
        self.nominated.contains(element) && !self.revoked.contains(element)
    }

    /// Bytes of memory, both filters.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.nominated.memory() + self.revoked.memory()
    }

    /// Adds what others nominated and revoked.
    ///
    /// # Errors
    /// As [`Bloom::union`].
    pub fn union(&mut self, other: &Self) -> Result<(), ParameterError> {
        self.nominated.union(&other.nominated)?;
        self.revoked.union(&other.revoked)
    }
}
