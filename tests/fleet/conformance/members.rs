// SPDX-License-Identifier: GPL-3.0-or-later
//! State reports of members.

use super::{Engine, becomes, bounded, insist, own};
use bulkmark_sync::log::{Log, LogError, MAX_STATE_REPORT, StateReport};

/// Each member's last state report, under its own name, and at most as long as promised.
pub(crate) async fn say_how_they_are_under_their_own_names<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (mx1, mx2, log) = (engine.client("mx1").await, engine.client("mx2").await, engine.aggregator().await);
    assert_eq!(insist(|| log.state_reports()).await, []);
    insist(|| mx1.publish_state(b"first".to_vec())).await;
    insist(|| mx2.publish_state(vec![7; MAX_STATE_REPORT])).await;
    insist(|| log.publish_state(b"an aggregator".to_vec())).await;
    insist(|| mx1.publish_state(b"then".to_vec())).await;
    bounded(mx2.publish_state(vec![8; MAX_STATE_REPORT + 1])).await.unwrap_err();
    let expected = [
        ("agg".to_owned(), b"an aggregator".to_vec()),
        ("mx1".to_owned(), b"then".to_vec()),
        ("mx2".to_owned(), vec![7; MAX_STATE_REPORT]),
    ];
    let reports = async || {
        let reports = log.state_reports().await?;
        assert!(reports.iter().all(|report| report.seconds_ago < 600), "said just now");
        let mut reports: Vec<_> =
            reports.into_iter().map(|StateReport { name, bytes, .. }| (name, bytes)).collect();
        reports.sort();
        Ok(reports)
    };
    becomes(reports, |reports| *reports == expected).await;
}

/// An aggregator can read others' state reports; a client cannot.
pub(crate) async fn read_nothing_of_one_another<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (mx1, mx2) = (engine.client("mx1").await, engine.client("mx2").await);
    insist(|| mx2.publish_state(b"mx2's".to_vec())).await;
    let error = bounded(mx1.state_reports()).await.unwrap_err();
    assert!(matches!(error, LogError::Unavailable(_) | LogError::Denied(_)), "{error}");
}
