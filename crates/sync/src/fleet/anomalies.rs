// SPDX-License-Identifier: GPL-3.0-or-later
//! Anomalies that a fleet's machine meets without stopping: the operator gets a log line and advice.

use bulkmark_counts::FleetMark;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// How long an anomaly is shown, and how often it is logged at most: others may append such entries each second.
const SHOWN_FOR: Duration = Duration::from_mins(10);
const LOGGED_EVERY: Duration = Duration::from_mins(1);

/// How long batches may wait in the log before a warning that nobody counts them. An aggregator that died is replaced sooner.
const UNCOUNTED: Duration = Duration::from_secs(30);

/// An anomaly, with the times of the last occurrence and of the last log line.
#[derive(Debug, Clone)]
struct Anomaly {
    what: String,
    at: Instant,
    logged: Instant,
}

/// All anomalies.
#[derive(Debug, Default)]
pub(super) struct Anomalies(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Steps or batches in formats of other versions, and members that kept others waiting.
    met: [Option<Anomaly>; 3],
    /// Since when batches in the log wait to be counted, behind this place.
    waits: Option<(Instant, u64)>,
    /// Since when steps cover batches behind the log's end, up to this place.
    beyond: Option<(Instant, u64)>,
    /// The number of own batches that were repeatedly skipped.
    passed_over: u64,
}

/// The source of an anomaly.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Steps,
    Batches,
    Stuck,
}

impl Anomalies {
    /// Records an anomaly; true if it should be logged.
    pub(super) fn record(&self, source: Source, what: String, now: Instant) -> bool {
        let met = &mut self.0.lock().met[source as usize];
        let known = met.as_ref().map(|met| met.logged).filter(|logged| *logged + LOGGED_EVERY > now);
        *met = Some(Anomaly { what, at: now, logged: known.unwrap_or(now) });
        known.is_none()
    }

    /// Records that batches up to the place `covers` are counted, and that the log has them up to `last`, if known.
    pub(super) fn counted(&self, covers: u64, last: Option<u64>, now: Instant) {
        let Inner { waits, beyond, .. } = &mut *self.0.lock();
        let since = |before: &Option<(Instant, u64)>| {
            before.filter(|(_, before)| *before == covers).unwrap_or((now, covers))
        };
        *waits = last.filter(|last| *last > covers).map(|_| since(waits));
        *beyond = last.filter(|last| *last < covers).map(|_| since(beyond));
    }

    /// Records how many own batches were repeatedly skipped; true if there are more than before.
    pub(super) fn set_passed_over(&self, batches: u64) -> bool {
        let before = std::mem::replace(&mut self.0.lock().passed_over, batches);
        batches > before
    }

    /// Returns a sentence for each current anomaly.
    pub(super) fn advice(&self, now: Instant) -> Vec<String> {
        let Inner { met, waits, beyond, passed_over } = &*self.0.lock();
        let met =
            (met.iter().zip(["skipped in the log", "skipped in the log", "a member kept others waiting"]))
                .filter_map(|(met, how)| Some((met.as_ref().filter(|met| met.at + SHOWN_FOR > now)?, how)));
        let mut advice: Vec<String> =
            met.map(|(met, how)| format!("{how}: {}", bulkmark_types::remote_text(&met.what))).collect();
        if let Some((since, _)) = waits.filter(|(since, _)| *since + UNCOUNTED <= now) {
            advice.push(format!(
                "reports wait in the log for {} s, and no aggregator counts them: is one running, and what does bulkmark fleet status \
                 --server say there?",
                (now - since).as_secs()
            ));
        }
        if let Some((_, covers)) = beyond.filter(|(since, _)| *since + UNCOUNTED <= now) {
            advice.push(format!(
                "the steps count batches up to place {covers}, behind the end of the log, so nothing new is counted: an aggregator begins \
                 another epoch within seconds; is one running, and what does bulkmark fleet status --server say there?"
            ));
        }
        if *passed_over > 0 {
            advice.push(uncounted(*passed_over));
        }
        advice
    }
}

/// Returns the advice for a ledger whose chain is at an impossible position, if it is.
pub(super) fn impossible(mark: FleetMark) -> Option<String> {
    (!mark.is_possible(bulkmark_ledger::now()))
        .then(|| format!("{}; docs/fleet.md#a-poisoned-chain says how to go back", no_more_epochs(mark)))
}

/// Describes such a position.
pub(super) fn no_more_epochs(mark: FleetMark) -> String {
    format!(
        "step {} of epoch {} is counted here, which no honest aggregator made: a false one did, and an older bulkmark took it",
        mark.version, mark.epoch
    )
}

/// Returns the advice about own batches that aggregators skip.
pub(super) fn uncounted(batches: u64) -> String {
    format!(
        "the aggregators pass over {batches} batches of this machine again and again, and their log says why: an older bulkmark, or \
         another federation key; the batches are kept and appended again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// An anomaly that occurs each second is logged each minute, and shown until it has not occurred for a while.
    #[test]
    fn repeated_anomalies_are_logged_now_and_then() {
        let (anomalies, begin) = (Anomalies::default(), Instant::now());
        let logged = (0..180)
            .filter(|i| anomalies.record(Source::Steps, "a step".to_owned(), begin + *i * SECOND))
            .collect::<Vec<_>>();
        assert_eq!(logged, [0, 60, 120]);
        let last = begin + 179 * SECOND;
        assert_eq!(anomalies.advice(last + SHOWN_FOR - SECOND), ["skipped in the log: a step"]);
        assert!(anomalies.advice(last + SHOWN_FOR).is_empty());
    }

    /// Waiting batches are shown when none is counted for a while, but not when others take their places.
    #[test]
    fn uncounted_batches_are_shown() {
        let (anomalies, begin) = (Anomalies::default(), Instant::now());
        for i in 0..100 {
            anomalies.counted(u64::from(i), Some(u64::from(i) + 5), begin + i * SECOND);
        }
        let now = begin + 99 * SECOND;
        assert!(anomalies.advice(now).is_empty());
        anomalies.counted(99, Some(200), now + UNCOUNTED);
        let advice = anomalies.advice(now + UNCOUNTED);
        assert!(advice[0].starts_with("reports wait in the log for 30 s"), "{advice:?}");
        anomalies.counted(200, Some(200), now + UNCOUNTED);
        assert!(anomalies.advice(now + 2 * UNCOUNTED).is_empty());
        anomalies.counted(200, None, now + UNCOUNTED);
        assert!(anomalies.advice(now + 2 * UNCOUNTED).is_empty(), "of another log nothing is known");
        // Ends are a moment older than steps, so batches behind them are shown only when the difference stays.
        anomalies.counted(1 << 62, Some(201), now);
        assert!(anomalies.advice(now + UNCOUNTED / 2).is_empty());
        anomalies.counted(1 << 62, Some(900), now + UNCOUNTED);
        let advice = anomalies.advice(now + UNCOUNTED);
        assert!(advice[0].contains("up to place 4611686018427387904, behind the end"), "{advice:?}");
        anomalies.counted(900, Some(900), now + UNCOUNTED);
        assert!(anomalies.advice(now + 2 * UNCOUNTED).is_empty());
    }
}
