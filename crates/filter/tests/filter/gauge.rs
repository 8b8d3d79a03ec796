// SPDX-License-Identifier: GPL-3.0-or-later
//! The gauge, compared with lookups of unknown elements.

use crate::random::element;
use bulkmark_filter::{Counting, Gauge, Merged, Refined};

/// The estimate equals the share found with unknown elements, in a filter so crowded that many seem to be bulk.
#[test]
fn the_estimate_equals_the_share_found() {
    let mut filter = Refined::new(50).unwrap();
    for n in 0..3000 {
        filter.add(element(n), if n % 3 == 0 { 40 } else { 1 + u32::try_from(n % 7).unwrap() });
    }
    for threshold in [1, 2, 10, 15, 16, 20, 40, 60] {
        let strange = 200_000u32;
        let found =
            (1u64 << 40..).take(strange as usize).filter(|&n| filter.count(element(n)) >= threshold).count()
                as f64;
        let expected = filter.gauge(threshold).false_positive_rate * f64::from(strange);
        assert!(
            (found - expected).abs() <= 5.0 * expected.sqrt() + 1.0,
            "{found} strange elements show {threshold}, {expected} are expected"
        );
    }
    let gauge = filter.gauge(20);
    assert!(gauge.fill > gauge.saturated && gauge.saturated > 0.3 && gauge.fill <= 1.0);
}

/// One element, computed by hand: its three cells with further counts are in the block in which its other one is saturated.
#[test]
fn one_element_is_computed_by_hand() {
    let mut filter = Refined::new(50).unwrap();
    let probe = filter.probe(0x3123_4567_89AB_CDEF_B246_8ACE_1357_9BDF);
    assert_ne!(probe.blocks[0], probe.blocks[1]);
    filter.add_at(&probe, 40);
    let group = (4.0f64 / 128.0).powi(4);
    let further = (3.0f64 / 128.0).powi(3) * 4.0 / 128.0;
    let two_of_50 = 2.0 / 50.0;
    for (threshold, false_positive_rate) in [
        (1, (two_of_50 * group).powi(2)),
        (15, (two_of_50 * group).powi(2)),
        (16, further / 50.0 * two_of_50 * group),
        (40, further / 50.0 * two_of_50 * group),
        (41, 0.0),
    ] {
        let gauge = filter.gauge(threshold);
        assert!(
            (gauge.false_positive_rate - false_positive_rate).abs() <= false_positive_rate * 1e-9,
            "{threshold}: {gauge:?}"
        );
        assert!((gauge.fill - 8.0 / 6400.0).abs() < 1e-9 && (gauge.saturated - 8.0 / 6400.0).abs() < 1e-9);
    }
}

/// A merged view of one filter equals that filter; an empty one shows nothing.
#[test]
fn a_view_is_gauged_as_its_filter() {
    let (mut filter, mut view) = (Refined::new(50).unwrap(), Merged::new(50).unwrap());
    assert_eq!(view.gauge(1), Gauge { fill: 0.0, saturated: 0.0, false_positive_rate: 0.0 });
    for n in 1..500u32 {
        filter.add(element(n.into()), n % 40);
    }
    view.merge(&filter).unwrap();
    let gauges = [1, 15, 16, 30].map(|threshold| filter.gauge(threshold));
    assert_eq!([1, 15, 16, 30].map(|threshold| view.gauge(threshold)), gauges);
    assert!(gauges.windows(2).all(|pair| pair[1].false_positive_rate < pair[0].false_positive_rate));
}
