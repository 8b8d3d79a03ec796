// SPDX-License-Identifier: GPL-3.0-or-later
//! What a fleet's machine finds odd and goes on with all the same: who looks after it is told, with what to do.

use bulkmark_counts::FleetMark;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// How long what was met in the log is told of, and how often at most it is said once more in the own log: others may append such
/// things each second.
const TOLD: Duration = Duration::from_mins(10);
const AGAIN: Duration = Duration::from_mins(1);

/// How long batches may wait in the log before it is said that nobody counts them. An aggregator that died is replaced sooner.
const UNCOUNTED: Duration = Duration::from_secs(30);

/// What was met, and when it was met and said last.
#[derive(Debug, Clone)]
struct Met {
    what: String,
    at: Instant,
    said: Instant,
}

/// What was found odd.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Steps or batches that are not of this program's forms, and members that kept others waiting.
    met: [Option<Met>; 3],
    /// Batches in the log wait to be counted since then, behind this place.
    waits: Option<(Instant, u64)>,
    /// Steps cover batches behind the log's end since then, up to this place.
    beyond: Option<(Instant, u64)>,
    /// Own batches that were passed over again and again.
    passed_over: u64,
}

/// Where something odd was met.
#[derive(Debug, Clone, Copy)]
pub(super) enum Among {
    Steps,
    Batches,
    Stuck,
}

impl Notes {
    /// Something was met; true when that is to be said.
    pub(super) fn meets(&self, among: Among, what: String, now: Instant) -> bool {
        let met = &mut self.0.lock().met[among as usize];
        let known = met.as_ref().map(|met| met.said).filter(|said| *said + AGAIN > now);
        *met = Some(Met { what, at: now, said: known.unwrap_or(now) });
        known.is_none()
    }

    /// Batches up to the place `covers` are counted, and the log has them up to `last`, if it is known.
    pub(super) fn counted(&self, covers: u64, last: Option<u64>, now: Instant) {
        let Inner { waits, beyond, .. } = &mut *self.0.lock();
        let since = |before: &Option<(Instant, u64)>| {
            before.filter(|(_, before)| *before == covers).unwrap_or((now, covers))
        };
        *waits = last.filter(|last| *last > covers).map(|_| since(waits));
        *beyond = last.filter(|last| *last < covers).map(|_| since(beyond));
    }

    /// So many own batches were passed over again and again; true when there are more than before.
    pub(super) fn passes_over(&self, batches: u64) -> bool {
        let before = std::mem::replace(&mut self.0.lock().passed_over, batches);
        batches > before
    }

    /// All that is odd now, in sentences.
    pub(super) fn told(&self, now: Instant) -> Vec<String> {
        let Inner { met, waits, beyond, passed_over } = &*self.0.lock();
        let met = (met.iter().zip([
            "passed over in the log",
            "passed over in the log",
            "a member kept others waiting",
        ]))
        .filter_map(|(met, how)| Some((met.as_ref().filter(|met| met.at + TOLD > now)?, how)));
        let mut told: Vec<String> =
            met.map(|(met, how)| format!("{how}: {}", bulkmark_types::remote_text(&met.what))).collect();
        if let Some((since, _)) = waits.filter(|(since, _)| *since + UNCOUNTED <= now) {
            told.push(format!(
                "reports wait in the log for {} s, and no aggregator counts them: is one running, and what does bulkmark fleet status \
                 --server say there?",
                (now - since).as_secs()
            ));
        }
        if let Some((_, covers)) = beyond.filter(|(since, _)| *since + UNCOUNTED <= now) {
            told.push(format!(
                "the steps count batches up to place {covers}, behind the end of the log, so nothing new is counted: an aggregator begins \
                 another epoch within seconds; is one running, and what does bulkmark fleet status --server say there?"
            ));
        }
        if *passed_over > 0 {
            told.push(uncounted(*passed_over));
        }
        told
    }
}

/// What is said of a ledger whose chain stands where none can, if it does.
pub(super) fn impossible(mark: FleetMark) -> Option<String> {
    (!mark.is_possible())
        .then(|| format!("{}; docs/fleet.md#a-poisoned-chain says how to go back", no_more_epochs(mark)))
}

/// What is wrong with such a chain.
pub(super) fn no_more_epochs(mark: FleetMark) -> String {
    format!(
        "step {} of epoch {} is counted here, which no honest aggregator made: a false one did, and an older bulkmark took it",
        mark.version, mark.epoch
    )
}

/// What is said of own batches that aggregators pass over.
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

    /// What comes each second is said each minute, and is told of until it has not come for a while.
    #[test]
    fn what_is_met_is_said_now_and_then() {
        let (notes, begin) = (Notes::default(), Instant::now());
        let said = (0..180)
            .filter(|i| notes.meets(Among::Steps, "a step".to_owned(), begin + *i * SECOND))
            .collect::<Vec<_>>();
        assert_eq!(said, [0, 60, 120]);
        let last = begin + 179 * SECOND;
        assert_eq!(notes.told(last + TOLD - SECOND), ["passed over in the log: a step"]);
        assert!(notes.told(last + TOLD).is_empty());
    }

    /// That batches wait is told when none of them is counted for a while, and not when they are as many, and others.
    #[test]
    fn what_nobody_counts_is_told() {
        let (notes, begin) = (Notes::default(), Instant::now());
        for i in 0..100 {
            notes.counted(u64::from(i), Some(u64::from(i) + 5), begin + i * SECOND);
        }
        let now = begin + 99 * SECOND;
        assert!(notes.told(now).is_empty());
        notes.counted(99, Some(200), now + UNCOUNTED);
        let told = notes.told(now + UNCOUNTED);
        assert!(told[0].starts_with("reports wait in the log for 30 s"), "{told:?}");
        notes.counted(200, Some(200), now + UNCOUNTED);
        assert!(notes.told(now + 2 * UNCOUNTED).is_empty());
        notes.counted(200, None, now + UNCOUNTED);
        assert!(notes.told(now + 2 * UNCOUNTED).is_empty(), "of another log nothing is known");
        // Ends are a moment older than steps, so what is behind them is told only when it stays.
        notes.counted(1 << 62, Some(201), now);
        assert!(notes.told(now + UNCOUNTED / 2).is_empty());
        notes.counted(1 << 62, Some(900), now + UNCOUNTED);
        let told = notes.told(now + UNCOUNTED);
        assert!(told[0].contains("up to place 4611686018427387904, behind the end"), "{told:?}");
        notes.counted(900, Some(900), now + UNCOUNTED);
        assert!(notes.told(now + 2 * UNCOUNTED).is_empty());
    }
}
