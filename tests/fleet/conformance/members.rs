// SPDX-License-Identifier: GPL-3.0-or-later
//! What members say of themselves.

use super::{Engine, bounded, insist, own};
use bulkmark_sync::log::{Log, LogError, MAX_WORD, Word};

/// Each under its own name, the last word of each, and no more of it than is promised.
pub(crate) async fn say_how_they_are_under_their_own_names<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (mx1, mx2, log) = (engine.client("mx1").await, engine.client("mx2").await, engine.aggregator().await);
    assert_eq!(insist(|| log.words()).await, []);
    insist(|| mx1.tell(b"first".to_vec())).await;
    insist(|| mx2.tell(vec![7; MAX_WORD])).await;
    insist(|| log.tell(b"an aggregator".to_vec())).await;
    insist(|| mx1.tell(b"then".to_vec())).await;
    bounded(mx2.tell(vec![8; MAX_WORD + 1])).await.unwrap_err();
    let expected = [
        ("agg".to_owned(), b"an aggregator".to_vec()),
        ("mx1".to_owned(), b"then".to_vec()),
        ("mx2".to_owned(), vec![7; MAX_WORD]),
    ];
    // Any copy of the log may answer, also one that has the last word a moment later.
    let words = insist(async || {
        let words = log.words().await?;
        assert!(words.iter().all(|word| word.seconds_ago < 600), "said just now");
        let mut words: Vec<_> = words.into_iter().map(|Word { name, bytes, .. }| (name, bytes)).collect();
        words.sort();
        if words == expected {
            Ok(words)
        } else {
            Err(LogError::Unavailable(format!("{} words", words.len())))
        }
    });
    assert_eq!(words.await, expected);
}

/// What others say is an aggregator's to read, not a client's.
pub(crate) async fn read_nothing_of_one_another<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (mx1, mx2) = (engine.client("mx1").await, engine.client("mx2").await);
    insist(|| mx2.tell(b"mx2's".to_vec())).await;
    let error = bounded(mx1.words()).await.unwrap_err();
    assert!(matches!(error, LogError::Unavailable(_) | LogError::Denied(_)), "{error}");
}
