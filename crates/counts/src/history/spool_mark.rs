// SPDX-License-Identifier: GPL-3.0-or-later
//! The batches of one spool that a fleet counted. The last number is not enough: batches overtake one another on their way, and overtaken
//! ones would be lost.

use super::fields::{CutOff, Fields};
use std::collections::BTreeSet;

/// The range of numbers above the lowest open one. A batch beyond it waits until earlier ones are counted.
pub const REACH: u64 = 4096;

/// The batches of a spool that are counted, or given up by the spool itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpoolMark {
    /// All lower numbers are counted or given up.
    lowest: u64,
    /// The counted numbers above it; `lowest` itself is not counted.
    above: BTreeSet<u64>,
}

/// The result of marking a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStatus {
    /// The caller must count it now.
    New,
    /// It was counted before.
    Repeated,
    /// It is too far ahead of the open batches.
    TooFar,
}

impl SpoolMark {
    /// Whether a batch is counted, or will not be sent any more.
    pub fn has(&self, number: u64) -> bool {
        number < self.lowest || self.above.contains(&number)
    }

    /// Whether this number or a later one was counted or given up: another sender continues under this spool's number.
    pub fn reaches(&self, number: u64) -> bool {
        self.lowest > number || self.above.last().is_some_and(|&last| last >= number)
    }

    /// Whether all batches before this one are counted, and no later one.
    pub fn is_before(&self, number: u64) -> bool {
        self.lowest == number && self.above.is_empty()
    }

    /// The last batch that was counted or given up, 0 if there is none, and whether all before it were too.
    pub fn last(&self) -> (u64, bool) {
        let below = self.lowest.saturating_sub(1);
        (self.above.last().copied().unwrap_or(below), self.above.is_empty())
    }

    /// The number of batches counted above the lowest open one, which take memory.
    pub fn len_above(&self) -> usize {
        self.above.len()
    }

    /// Marks a batch of a spool as counted. `lowest` is the spool's lowest open number.
    pub fn take(&mut self, number: u64, lowest: u64) -> BatchStatus {
        self.lowest = self.lowest.max(lowest);
        self.tidy();
        if self.has(number) {
            return BatchStatus::Repeated;
        }
        // After the last number none could be open. No spool reaches it.
        if number - self.lowest >= REACH || number == u64::MAX {
            return BatchStatus::TooFar;
        }
        self.above.insert(number);
        self.tidy();
        BatchStatus::New
    }

    /// Raises the lowest open number as far as possible.
    fn tidy(&mut self) {
        self.above = self.above.split_off(&self.lowest);
        while self.above.remove(&self.lowest) {
            self.lowest += 1;
        }
    }

    /// Whether it includes all of another mark, so that no batch counts again.
    pub fn follows(&self, before: &Self) -> bool {
        self.lowest >= before.lowest && before.above.iter().all(|&number| self.has(number))
    }

    /// Appends the lowest open number, the number of counted ones above it, and the distance of each from it.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.lowest.to_le_bytes());
        let short = |number: u64| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes();
        bytes.extend_from_slice(&short(self.above.len() as u64));
        for number in &self.above {
            bytes.extend_from_slice(&short(number - self.lowest));
        }
    }

    /// Reads the bytes of [`encode`](Self::encode). The inner value is `None` for bytes that it never makes.
    pub fn decode(fields: &mut Fields<'_>) -> Result<Option<Self>, CutOff> {
        let lowest = fields.u64()?;
        let count = u16::from_le_bytes(fields.take()?);
        let (mut above, mut last) = (BTreeSet::new(), 0);
        for _ in 0..count {
            let offset = u16::from_le_bytes(fields.take()?);
            // The last number is never counted; see `take`.
            let Some(number) = lowest.checked_add(offset.into()).filter(|&number| number < u64::MAX) else {
                return Ok(None);
            };
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

    /// A number that only a lying client reaches does not restart the spool.
    #[test]
    fn the_last_number_is_no_batch() {
        let mut mark = SpoolMark::default();
        assert_eq!(mark.take(5, 5), BatchStatus::New);
        let before = mark.clone();
        assert_eq!(mark.take(u64::MAX - 1, u64::MAX - 1), BatchStatus::New);
        assert_eq!(mark.take(u64::MAX, u64::MAX), BatchStatus::TooFar);
        assert!(mark.follows(&before) && mark.has(6) && mark.has(u64::MAX - 1));
    }

    /// A mark in which the last number was counted would have no lowest open one.
    #[test]
    fn a_made_up_mark_of_the_last_number_is_refused() {
        let made_up = |lowest: u64, offset: u16| {
            let bytes = [&lowest.to_le_bytes()[..], &1_u16.to_le_bytes(), &offset.to_le_bytes()].concat();
            SpoolMark::decode(&mut Fields(&bytes)).unwrap()
        };
        assert_eq!((made_up(u64::MAX - 1, 1), made_up(u64::MAX, 1)), (None, None));
        let mut last = made_up(u64::MAX - 2, 1).unwrap();
        assert_eq!(last.take(u64::MAX, u64::MAX), BatchStatus::TooFar);
    }

    proptest! {
        /// In whatever order and however often batches come, each is new once; and the encoded mark is read back.
        #[test]
        fn each_is_new_once(numbers in prop::collection::vec(1u64..40, 0..120)) {
            let (mut mark, mut counted) = (SpoolMark::default(), BTreeSet::new());
            for number in numbers {
                let before = mark.clone();
                let open = (1..).find(|number| !counted.contains(number)).unwrap();
                let taken = mark.take(number, open.min(number));
                prop_assert_eq!(taken == BatchStatus::New, counted.insert(number));
                prop_assert!(mark.follows(&before) && (taken == BatchStatus::Repeated || !before.follows(&mark)));
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
        assert_eq!(mark.take(1 + REACH, 1), BatchStatus::TooFar);
        assert_eq!(mark.take(REACH, 1), BatchStatus::New);
        assert_eq!(mark.take(1, 1), BatchStatus::New);
        assert_eq!(mark.take(1 + REACH, 1), BatchStatus::New);
        assert_eq!(mark.take(3, 3), BatchStatus::New);
        assert_eq!(mark.take(2, 2), BatchStatus::Repeated, "it was given up");
    }
}
