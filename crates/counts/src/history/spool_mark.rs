// SPDX-License-Identifier: GPL-3.0-or-later
//! Which batches of one spool a fleet counted. "The last number" would not do: batches overtake one another on their way, and one
//! that was overtaken would be lost.

use super::fields::{CutOff, Fields};
use std::collections::BTreeSet;

/// Numbers above the lowest open one that are told apart. A batch beyond waits until those before it were counted.
pub const REACH: u64 = 4096;

/// The batches of a spool that were counted, or given up by the spool itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpoolMark {
    /// All below are counted or given up.
    lowest: u64,
    /// Those above it that are counted; it itself is not.
    above: BTreeSet<u64>,
}

/// What becomes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is to be counted now.
    New,
    /// It was before.
    Repeated,
    /// It is too far ahead of those that are open.
    TooFar,
}

impl SpoolMark {
    /// Whether a batch is counted, or nobody will send it any more.
    pub fn has(&self, number: u64) -> bool {
        number < self.lowest || self.above.contains(&number)
    }

    /// Whether anything of this number or a later one was counted or given up: by somebody who goes on under this spool's name.
    pub fn reaches(&self, number: u64) -> bool {
        self.lowest > number || self.above.last().is_some_and(|&last| last >= number)
    }

    /// Whether all before a batch are counted, and nothing from it on.
    pub fn is_before(&self, number: u64) -> bool {
        self.lowest == number && self.above.is_empty()
    }

    /// The last batch that was counted or given up, 0 where there is none, and whether all before it were, too.
    pub fn last(&self) -> (u64, bool) {
        let below = self.lowest.saturating_sub(1);
        (self.above.last().copied().unwrap_or(below), self.above.is_empty())
    }

    /// How many batches are counted above the lowest that is not: what it takes in memory.
    pub fn len_above(&self) -> usize {
        self.above.len()
    }

    /// Marks a batch as counted, of a spool whose lowest open number is `lowest`.
    pub fn take(&mut self, number: u64, lowest: u64) -> Taken {
        self.lowest = self.lowest.max(lowest);
        self.tidy();
        if self.has(number) {
            return Taken::Repeated;
        }
        // Behind the last number there is none that could be open. No spool comes that far.
        if number - self.lowest >= REACH || number == u64::MAX {
            return Taken::TooFar;
        }
        self.above.insert(number);
        self.tidy();
        Taken::New
    }

    /// The lowest open number is as high as it can be.
    fn tidy(&mut self) {
        self.above = self.above.split_off(&self.lowest);
        while self.above.remove(&self.lowest) {
            self.lowest += 1;
        }
    }

    /// Whether it has all that another one has, so that nothing is counted again.
    pub fn follows(&self, before: &Self) -> bool {
        self.lowest >= before.lowest && before.above.iter().all(|&number| self.has(number))
    }

    /// The lowest open number, how many are counted above it, and for each how far above it is.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.lowest.to_le_bytes());
        let short = |number: u64| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes();
        bytes.extend_from_slice(&short(self.above.len() as u64));
        for number in &self.above {
            bytes.extend_from_slice(&short(number - self.lowest));
        }
    }

    /// Reads what [`encode`](Self::encode) made. The inner value is none for what it does not make.
    pub fn decode(fields: &mut Fields<'_>) -> Result<Option<Self>, CutOff> {
        let lowest = fields.u64()?;
        let count = u16::from_le_bytes(fields.take()?);
        let (mut above, mut last) = (BTreeSet::new(), 0);
        for _ in 0..count {
            let offset = u16::from_le_bytes(fields.take()?);
            let Some(number) = lowest.checked_add(offset.into()) else { return Ok(None) };
            if offset <= last || u64::from(offset) >= REACH {
                return Ok(None);
            }
            last = offset;
            above.insert(number);
        }
        Ok(Some(Self { lowest, above }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number that only a liar reaches does not begin the spool anew.
    #[test]
    fn the_last_number_is_no_batch() {
        let mut mark = SpoolMark::default();
        assert_eq!(mark.take(5, 5), Taken::New);
        let before = mark.clone();
        assert_eq!(mark.take(u64::MAX - 1, u64::MAX - 1), Taken::New);
        assert_eq!(mark.take(u64::MAX, u64::MAX), Taken::TooFar);
        assert!(mark.follows(&before) && mark.has(6) && mark.has(u64::MAX - 1));
    }

    proptest! {
        /// In whatever order batches come, and however often, each is new once; and what is told of them is read again.
        #[test]
        fn each_is_new_once(numbers in prop::collection::vec(1u64..40, 0..120)) {
            let (mut mark, mut counted) = (SpoolMark::default(), BTreeSet::new());
            for number in numbers {
                let before = mark.clone();
                let open = (1..).find(|number| !counted.contains(number)).unwrap();
                let taken = mark.take(number, open.min(number));
                prop_assert_eq!(taken == Taken::New, counted.insert(number));
                prop_assert!(mark.follows(&before) && (taken == Taken::Repeated || !before.follows(&mark)));
                let mut bytes = Vec::new();
                mark.encode(&mut bytes);
                let mut fields = Fields(&bytes);
                prop_assert_eq!(SpoolMark::decode(&mut fields), Ok(Some(mark.clone())));
                prop_assert!(fields.0.is_empty());
                prop_assert!((1..40).all(|number| mark.has(number) == counted.contains(&number)));
                prop_assert!((1..45).all(|n| mark.reaches(n) == counted.last().is_some_and(|&last| last >= n)));
            }
        }
    }

    #[test]
    fn those_too_far_ahead_wait() {
        let mut mark = SpoolMark::default();
        assert_eq!(mark.take(1 + REACH, 1), Taken::TooFar);
        assert_eq!(mark.take(REACH, 1), Taken::New);
        assert_eq!(mark.take(1, 1), Taken::New);
        assert_eq!(mark.take(1 + REACH, 1), Taken::New);
        assert_eq!(mark.take(3, 3), Taken::New);
        assert_eq!(mark.take(2, 2), Taken::Repeated, "it was given up");
    }
}
