// SPDX-License-Identifier: GPL-3.0-or-later
//! Origins, versions and version vectors.

use bulkmark_filter::ParameterError;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The most origins that a holder takes from others, over all servers and partners, including gone ones.
pub const MAX_ORIGINS: usize = 65_536;

/// The most origins in a vector that is read: those of others, and a server's own and its partners'. These come on top, because a server
/// that knows all others must still be able to count.
pub const MAX_READ: usize = MAX_ORIGINS + 16_384;

/// Bytes of the text of the largest vector: per origin 16 digits, a version of up to 20, a hash of 32, and separators.
pub const MAX_VECTOR_BYTES: usize = MAX_READ * 71;

/// One server's own community: only this server writes its filters. A random number, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(pub u64);

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The first half of the SHA-256 of an update. As each update contains the previous hash, equal hashes mean equal histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Chain(pub [u8; 16]);

impl Chain {
    /// The hash of an update's bytes.
    pub fn of(update: &[u8]) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(&Sha256::digest(update)[..16]);
        Self(half)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The end of the known part of a history: its version, and the hash of its last update. Version 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The number of updates.
    pub version: u64,
    /// The hash of the last one.
    pub chain: Chain,
}

/// The mark of each known origin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vector(BTreeMap<Origin, Mark>);

impl Vector {
    /// The empty vector.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The mark of an origin; an unknown one has the mark before the first update.
    #[must_use]
    pub fn get(&self, origin: Origin) -> Mark {
        self.0.get(&origin).copied().unwrap_or_default()
    }

    /// Moves the mark of an origin.
    pub fn set(&mut self, origin: Origin, mark: Mark) {
        self.0.insert(origin, mark);
    }

    /// All origins with their marks, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Origin, Mark)> {
        self.0.iter().map(|(&origin, &mark)| (origin, mark))
    }

    /// The number of origins.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Checks whether there is room for so many more origins of others.
    ///
    /// # Errors
    /// If there would be more than [`MAX_ORIGINS`].
    pub fn check_room(&self, more: usize) -> Result<(), ParameterError> {
        let all = if more > 0 { self.len() + more } else { 0 };
        ParameterError::check("the number of origins", all as u64, 0, MAX_ORIGINS as u64)
    }

    /// Reads the text of a vector that this ledger wrote itself, however long it is: a server continues under new origins, and those before
    /// stay in its vector.
    ///
    /// # Errors
    /// As [`from_str`](Self::from_str).
    pub fn from_own(text: &str) -> Result<Self, ParseError> {
        Self::read(text, usize::MAX)
    }

    fn read(text: &str, most: usize) -> Result<Self, ParseError> {
        let mut vector = Self::default();
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            let fault = || ParseError::new(entry, "origin:version:hash");
            if vector.len() >= most {
                return Err(ParseError::new(entry, "no more than 81,920 origins"));
            }
            let (origin, rest) = entry.split_once(':').ok_or_else(fault)?;
            let (version, chain) = rest.split_once(':').ok_or_else(fault)?;
            let version = version.parse().map_err(|_| fault())?;
            vector.set(origin.parse()?, Mark { version, chain: chain.parse()? });
        }
        Ok(vector)
    }

    /// The marks that differ from `before`; for an origin that is gone, the mark before the first update. Walks through both once.
    #[must_use]
    pub fn moved_since(&self, before: &Self) -> Self {
        let moved = self.0.iter().filter(|(origin, mark)| before.0.get(origin) != Some(mark));
        let gone = before.0.keys().filter(|origin| !self.0.contains_key(origin));
        let gone = gone.map(|&origin| (origin, Mark::default()));
        Self(moved.map(|(&origin, &mark)| (origin, mark)).chain(gone).collect())
    }

    /// Drops the origins that `known` does not have, except for so many.
    pub fn bound_others(&mut self, known: &Self, mut most: usize) {
        self.0.retain(|origin, _| {
            let is_known = known.0.contains_key(origin);
            let stays = is_known || most > 0;
            most -= usize::from(stays && !is_known);
            stays
        });
    }

    /// Takes over the marks of another vector, and keeps those that it does not have.
    pub fn follow(&mut self, moved: &Self) {
        self.0.extend(moved.iter());
    }

    /// Whether it has no origin.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it includes every update that `other` includes.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.iter().all(|(origin, mark)| self.get(origin).version >= mark.version)
    }
}

/// `origin:version:chain`, with commas between; the empty vector is the empty text.
impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (origin, Mark { version, chain })) in self.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{origin}:{version}:{chain}")?;
        }
        Ok(())
    }
}

/// The text is not a version vector, or not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct ParseError {
    found: String,
    expected: &'static str,
}

/// Maximum characters of the wrong text in an error.
const MAX_SHOWN: usize = 80;

impl ParseError {
    fn new(found: &str, expected: &'static str) -> Self {
        Self { found: found.chars().take(MAX_SHOWN).collect(), expected }
    }
}

impl FromStr for Origin {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let origin = u64::from_str_radix(text, 16).ok().filter(|_| valid);
        let fault = || ParseError::new(text, "an origin of 16 hexadecimal digits");
        origin.map(Self).ok_or_else(fault)
    }
}

impl FromStr for Chain {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || ParseError::new(text, "a hash of 32 hexadecimal digits");
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(fault());
        }
        let bits = u128::from_str_radix(text, 16).map_err(|_| fault())?;
        Ok(Self(std::array::from_fn(|i| (bits >> (120 - 8 * i) & 0xFF) as u8)))
    }
}

impl FromStr for Vector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::read(text, MAX_READ)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A megabyte of colons is one wrong entry, and its error is short.
    #[test]
    fn errors_are_short() {
        for text in
            [":".repeat(1 << 20), "x".repeat(1 << 20), format!("{:016x}:1:{}", 7, "é".repeat(1 << 20))]
        {
            let error = text.parse::<Vector>().unwrap_err();
            assert!(error.to_string().len() < 1000 && error.found.chars().count() <= MAX_SHOWN, "{error}");
        }
    }

    /// A server that knows as many others as it may, and has partners, writes a vector that all can read.
    #[test]
    fn the_vector_of_a_server_with_all_others_can_be_read() {
        let of = |origins: u64| {
            Vector(
                (0..origins)
                    .map(|n| (Origin(n << 40), Mark { version: u64::MAX, ..Mark::default() }))
                    .collect(),
            )
        };
        let full = of(MAX_READ as u64);
        let text = full.to_string();
        assert!(text.len() <= MAX_VECTOR_BYTES);
        assert_eq!(text.parse(), Ok(full));
        let more = of(MAX_READ as u64 + 1);
        assert!(more.to_string().parse::<Vector>().is_err());
        assert_eq!(Vector::from_own(&more.to_string()), Ok(more));
    }

    /// A vector includes another if it is as far along each of the other's histories.
    #[test]
    fn a_vector_covers_what_is_not_ahead_of_it() {
        let of = |versions: &[(u64, u64)]| {
            let mark = |version| Mark { version, ..Mark::default() };
            Vector(versions.iter().map(|&(origin, version)| (Origin(origin), mark(version))).collect())
        };
        let ours = of(&[(1, 5), (2, 7)]);
        for (theirs, covered) in [
            (of(&[]), true),
            (of(&[(1, 5)]), true),
            (of(&[(1, 4), (2, 7)]), true),
            (of(&[(1, 6)]), false),
            (of(&[(1, 5), (3, 1)]), false),
        ] {
            assert_eq!(ours.covers(&theirs), covered, "{theirs}");
        }
    }

    proptest! {
        #[test]
        fn text_and_vector_agree(entries in prop::collection::vec((any::<u64>(), any::<u64>(), any::<[u8; 16]>()), 0..20)) {
            let mut vector = Vector::default();
            for (origin, version, chain) in entries {
                vector.set(Origin(origin), Mark { version, chain: Chain(chain) });
            }
            prop_assert_eq!(vector.to_string().parse(), Ok(vector));
        }

        /// A vector that follows the moved marks becomes equal.
        #[test]
        fn moved_marks_lead_from_one_vector_to_the_other(
            before in prop::collection::vec((0u64..9, 1u64..3), 0..9),
            after in prop::collection::vec((0u64..9, 1u64..3), 0..9),
        ) {
            let vector = |entries: Vec<(u64, u64)>| {
                let mut vector = Vector::default();
                for (origin, version) in entries {
                    vector.set(Origin(origin), Mark { version, ..Mark::default() });
                }
                vector
            };
            let (before, after) = (vector(before), vector(after));
            let moved = after.moved_since(&before);
            let mut known = before.clone();
            known.follow(&moved);
            prop_assert!(known.covers(&after) && after.iter().all(|(origin, mark)| known.get(origin) == mark));
            prop_assert!(known.iter().all(|(origin, mark)| after.get(origin) == mark));
            prop_assert!(after.moved_since(&after).is_empty());
        }

        /// Known origins stay, and so many others.
        #[test]
        fn others_are_bounded(ours in 0u64..9, theirs in 0u64..30, most in 0usize..9) {
            let of = |most: u64| Vector((0..most).map(|origin| (Origin(origin), Mark::default())).collect());
            let mut bounded = of(theirs);
            bounded.bound_others(&of(ours), most);
            let others = theirs.saturating_sub(ours).min(most as u64);
            prop_assert_eq!(bounded, of(ours.min(theirs) + others));
        }

        #[test]
        fn any_text_is_a_vector_or_an_error(text in "[0-9a-f:,]{0,80}") {
            if let Ok(vector) = text.parse::<Vector>() {
                prop_assert_eq!(vector.to_string().parse(), Ok(vector));
            }
        }
    }
}
