// SPDX-License-Identifier: GPL-3.0-or-later
//! Merging and deltas: several writers, one view, never below the truth; and coded bytes of any origin.

use crate::random::{Random, element};
use bulkmark_filter::{Counting, Delta, Merged, Refined};
use proptest::prelude::*;
use std::collections::HashMap;

/// Small enough that cells collide, so that nothing holds by luck.
const BLOCKS: usize = 3;

type History = Vec<(u64, u32)>;

/// Some elements, added a few times or often.
fn history() -> impl Strategy<Value = History> {
    prop::collection::vec((0u64..40, prop_oneof![4 => 1u32..8, 1 => 1u32..200]), 0..60)
}

fn add_all(filter: &mut Refined, history: &History) {
    for &(number, times) in history {
        filter.add(element(number), times);
    }
}

fn filter_of(history: &History) -> Refined {
    let mut filter = Refined::new(BLOCKS).unwrap();
    add_all(&mut filter, history);
    filter
}

fn merged_of(filters: &[&Refined]) -> Merged {
    let mut merged = Merged::new(BLOCKS).unwrap();
    for filter in filters {
        merged.merge(filter).unwrap();
    }
    merged
}

proptest! {
    /// Invariant 1 over merges: with any writers, the sum is never below the true count.
    #[test]
    fn a_merged_view_never_undercounts(histories in prop::collection::vec(history(), 1..5)) {
        let filters: Vec<_> = histories.iter().map(filter_of).collect();
        let merged = merged_of(&filters.iter().collect::<Vec<_>>());
        let mut truth: HashMap<u64, u32> = HashMap::new();
        for (number, times) in histories.into_iter().flatten() {
            *truth.entry(number).or_default() += times;
        }
        for (number, times) in truth {
            prop_assert!(merged.count(element(number)) >= times);
        }
    }

    /// Invariant 7: merging is commutative and associative.
    #[test]
    fn order_makes_no_difference(a in history(), b in history(), c in history()) {
        let [a, b, c] = [a, b, c].map(|history| filter_of(&history));
        let one = merged_of(&[&a, &b, &c]);
        let other = merged_of(&[&c, &a, &b]);
        prop_assert_eq!(one.bytes(0..BLOCKS), other.bytes(0..BLOCKS));
    }

    /// A delta is the difference: applied to an old view it gives the new one; and two in a row can be merged.
    #[test]
    fn a_delta_is_the_difference(first in history(), second in history(), third in history(), others in history()) {
        let old = filter_of(&first);
        let mut newer = filter_of(&first);
        add_all(&mut newer, &second);
        let mut newest = filter_of(&first);
        add_all(&mut newest, &second);
        add_all(&mut newest, &third);
        let (d1, d2) = (Delta::between(&old, &newer).unwrap(), Delta::between(&newer, &newest).unwrap());
        prop_assert_eq!(d1.merge(&d2).unwrap(), Delta::between(&old, &newest).unwrap());
        prop_assert!(Delta::between(&old, &old).unwrap().is_empty());

        let others = filter_of(&others);
        let mut view = merged_of(&[&old, &others]);
        view.apply(&d1).unwrap();
        view.apply(&d2).unwrap();
        prop_assert_eq!(view.bytes(0..BLOCKS), merged_of(&[&newest, &others]).bytes(0..BLOCKS));
    }

    /// The same for deltas: their order and grouping make no difference, and applying them one by one equals applying their
    /// sum.
    #[test]
    fn deltas_come_in_any_order(histories in [history(), history(), history()]) {
        let empty = Refined::new(BLOCKS).unwrap();
        let [a, b, c] = histories.each_ref().map(|history| Delta::between(&empty, &filter_of(history)).unwrap());
        let (ab, bc) = (a.merge(&b).unwrap(), b.merge(&c).unwrap());
        prop_assert_eq!(&ab, &b.merge(&a).unwrap());
        let sum = ab.merge(&c).unwrap();
        prop_assert_eq!(&sum, &a.merge(&bc).unwrap());
        let mut views = [(); 2].map(|()| Merged::new(BLOCKS).unwrap());
        views[0].apply(&sum).unwrap();
        [&c, &a, &b].into_iter().for_each(|delta| views[1].apply(delta).unwrap());
        prop_assert_eq!(views[0].bytes(0..BLOCKS), views[1].bytes(0..BLOCKS));
        let filters = histories.each_ref().map(filter_of);
        prop_assert_eq!(views[0].bytes(0..BLOCKS), merged_of(&filters.each_ref()).bytes(0..BLOCKS));
    }

    /// Decoding the coded form gives the same delta, however large the filter and dense the changes.
    #[test]
    fn the_coded_form_comes_back(blocks in 1usize..5000, signatures in 0u64..2000, seed: u64) {
        let mut random = Random::new(seed);
        let mut filter = Refined::new(blocks).unwrap();
        for _ in 0..signatures {
            let times = if random.below(10) == 0 { 1 + random.below(100_000) } else { 1 };
            filter.add(element(random.next() / 2), u32::try_from(times).unwrap());
        }
        let delta = Delta::between(&Refined::new(blocks).unwrap(), &filter).unwrap();
        let bytes = delta.encode();
        prop_assert_eq!(Delta::decode(&bytes, blocks, delta.len()), Ok(delta));
    }

    /// Arbitrary bytes give an error, or exactly the delta whose code they are.
    #[test]
    fn hostile_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), blocks in 1usize..100_000) {
        if let Ok(delta) = Delta::decode(&bytes, blocks, 10_000) {
            prop_assert_eq!(delta.encode(), bytes);
        }
    }

    /// Valid bytes with one change, or truncated.
    #[test]
    fn damaged_bytes_are_refused(history in history(), at: prop::sample::Index, bit in 0u32..8, cut: bool) {
        let delta = Delta::between(&Refined::new(BLOCKS).unwrap(), &filter_of(&history)).unwrap();
        let mut bytes = delta.encode();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        if let Ok(other) = Delta::decode(&bytes, BLOCKS, 1000) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }
}

/// The worked merge of the paper: servers a and b have reported x twice and three times, and once more each. The refined
/// extension shows 7, which is right.
#[test]
fn the_worked_merge_of_the_paper() {
    let (x, room) = (element(1), 1000);
    let mut filters = [Refined::new(room).unwrap(), Refined::new(room).unwrap()];
    for (filter, times) in filters.iter_mut().zip([2, 3]) {
        filter.add(x, times);
        // Others raise some cells of x in the meantime.
        for number in 2..3000 {
            filter.add(element(number), 1);
        }
        filter.add(x, 1);
    }
    let mut merged = Merged::new(room).unwrap();
    filters.iter().for_each(|filter| merged.merge(filter).unwrap());
    assert_eq!(merged.count(x), 7);
}

/// Counts of several writers that are large, or small in each and large in the sum; and the largest number stays.
#[test]
fn large_counts_are_merged() {
    for (a, b) in
        [(10, 4), (10, 5), (10, 6), (15, 1), (7, 40), (1 << 20, 1 << 20), (1 << 24, 3), (u32::MAX, 5)]
    {
        let (x, room) = (element(1), 1000);
        let mut filters = [Refined::new(room).unwrap(), Refined::new(room).unwrap()];
        let mut view = Merged::new(room).unwrap();
        for (filter, times) in filters.iter_mut().zip([a, b]) {
            filter.add(x, times);
            view.merge(filter).unwrap();
        }
        assert_eq!(view.count(x), a.saturating_add(b), "{a} and {b}");
    }
}

#[test]
fn unlike_filters_are_refused_by_name() {
    let (small, large) = (Refined::new(2).unwrap(), Refined::new(3).unwrap());
    let refused = "the filters do not go together: blocks is 3 in one and 2 in the other";
    let mut view = Merged::new(3).unwrap();
    assert_eq!(view.merge(&small).unwrap_err().to_string(), refused);
    assert_eq!(view.apply(&Delta::empty(2)).unwrap_err().to_string(), refused);
    assert_eq!(Delta::empty(3).merge(&Delta::empty(2)).unwrap_err().to_string(), refused);
    assert!(Delta::between(&small, &large).is_err());
}

#[test]
fn limits_hold_before_anything_is_made() {
    let delta = Delta::between(&Refined::new(BLOCKS).unwrap(), &filter_of(&vec![(1, 1), (2, 1)])).unwrap();
    let error = Delta::decode(&delta.encode(), BLOCKS, delta.len() - 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a coded delta, at byte 2: its lengths do not fit one another or the filter"
    );
    assert_eq!(Delta::decode(&[], BLOCKS, 10).unwrap_err().offset, 0);
    // Two numbers of more than 63 bits, and counts that no bytes could hold.
    assert!(Delta::decode(&[0xFF; 40], BLOCKS, usize::MAX).is_err());
    assert!(
        Delta::decode(&[0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0x7F, 9, 0, 0], 1 << 30, usize::MAX).is_err()
    );
}
