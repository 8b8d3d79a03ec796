// SPDX-License-Identifier: GPL-3.0-or-later
//! The Bloom filter and the pair of filters for nominations, compared with sets.

use crate::random::element;
use bulkmark_filter::{Bloom, Nominations, ParameterError};
use proptest::prelude::*;
use std::collections::HashSet;

/// Table 1 of the paper. For a rate too small to meet an unknown element that is reported, the table is compared with the filter's own
/// estimate from its fill.
#[test]
fn table_1_of_the_paper() {
    const N: u64 = 20_000;
    for (ratio, k, f) in
        [(16, 4, 2.394e-3), (10, 8, 8.455e-3), (16, 8, 5.745e-4), (40, 8, 1.166e-6), (40, 16, 1.948e-8)]
    {
        let mut filter = Bloom::new(ratio * N, k).unwrap();
        for i in 0..N {
            filter.insert(element(i));
        }
        let estimate = filter.false_positive_rate();
        assert!(
            (estimate / f - 1.0).abs() < 0.1,
            "m/n = {ratio}, k = {k}: estimated {estimate:e}, expected {f:e}"
        );
        let asked = 400_000;
        let shown = (0..asked).filter(|i| filter.contains(element(1 << 40 | i))).count() as f64;
        // The number of reported elements is Poisson: six deviations either side, and one if hardly any is expected.
        let expected = f * asked as f64;
        let margin = 6.0 * expected.sqrt() + 1.0;
        assert!(
            (shown - expected).abs() <= margin,
            "m/n = {ratio}, k = {k}: {shown} shown, expected {expected:.1}"
        );
    }
}

#[test]
fn sizing_holds_its_rate() {
    for f in [0.1, 0.01, 0.001] {
        let mut filter = Bloom::with_rate(30_000, f).unwrap();
        for i in 0..30_000 {
            filter.insert(element(i));
        }
        assert!((filter.fill() - 0.5).abs() < 0.04);
        assert!((filter.false_positive_rate() / f - 1.0).abs() < 0.15);
    }
}

#[test]
fn invalid_parameters_are_named() {
    let error = |result: Result<Bloom, ParameterError>| result.unwrap_err().to_string();
    assert_eq!(error(Bloom::new(0, 3)), "m is 0, expected 1 to 1099511627776");
    assert_eq!(error(Bloom::new((1 << 40) + 1, 3)), "m is 1099511627777, expected 1 to 1099511627776");
    assert_eq!(error(Bloom::new(10, 0)), "k is 0, expected 1 to 64");
    assert_eq!(error(Bloom::new(10, 65)), "k is 65, expected 1 to 64");
    for (f, named) in [(0.0, "0"), (1.0, "1"), (-0.1, "-0.1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let expected = format!("f is {named}, expected more than 0 and less than 1");
        assert_eq!(error(Bloom::with_rate(10, f)), expected);
    }
    assert!(error(Bloom::with_rate(u64::MAX, 0.5)).ends_with(", expected 1 to 1099511627776"));
    assert_eq!(Nominations::with_rate(10, 0.0).unwrap_err(), Bloom::with_rate(10, 0.0).unwrap_err());
    assert_eq!(error(Bloom::with_rate(0, 0.5)), "m is 0, expected 1 to 1099511627776");
    let mut filter = Bloom::new(10, 3).unwrap();
    let mut differ = |other| filter.union(&other).unwrap_err().to_string();
    let not_together = "the filters do not go together";
    assert_eq!(
        differ(Bloom::new(11, 3).unwrap()),
        format!("{not_together}: m is 10 in one and 11 in the other")
    );
    assert_eq!(
        differ(Bloom::new(10, 4).unwrap()),
        format!("{not_together}: k is 3 in one and 4 in the other")
    );
}

fn filter_of(elements: &HashSet<u128>) -> Bloom {
    let mut filter = Bloom::new(5000, 5).unwrap();
    for &element in elements {
        filter.insert(element);
    }
    filter
}

proptest! {
    /// Inserted elements are reported, a union reports those of both, and the bits can be restored from their bytes.
    #[test]
    fn nothing_is_forgotten(a: HashSet<u128>, b: HashSet<u128>) {
        let mut union = filter_of(&a);
        union.union(&filter_of(&b)).unwrap();
        prop_assert!(a.iter().chain(&b).all(|&element| union.contains(element)));
        let both: HashSet<_> = a.union(&b).copied().collect();
        prop_assert_eq!(&union, &filter_of(&both));
        let mut read = filter_of(&HashSet::new());
        prop_assert!(!read.restore(&union.bytes()[1..]) && read.fill() == 0.0);
        prop_assert!(read.restore(&union.bytes()));
        prop_assert_eq!(read, union);
    }

    /// The paper's rule, as long as there is room: nominated and not revoked.
    #[test]
    fn spam_is_nominated_and_not_revoked(nominated: HashSet<u128>, revoked: HashSet<u128>) {
        let mut nominations = Nominations::with_rate(1000, 1e-9).unwrap();
        nominated.iter().for_each(|&element| nominations.nominate(element));
        revoked.iter().for_each(|&element| nominations.revoke(element));
        for &element in nominated.union(&revoked) {
            prop_assert_eq!(nominations.contains(element), nominated.contains(&element) && !revoked.contains(&element));
        }
    }
}
