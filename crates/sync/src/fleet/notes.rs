// SPDX-License-Identifier: GPL-3.0-or-later
//! What a fleet's machine finds odd and goes on with all the same: who looks after it is told, with what to do.

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
    /// Steps or batches that are not of this program's forms.
    met: [Option<Met>; 2],
    /// Batches in the log wait to be counted since then, behind this place.
    waits: Option<(Instant, u64)>,
    /// Own batches that were passed over again and again.
    passed_over: u64,
}

/// Where something odd was met.
#[derive(Debug, Clone, Copy)]
pub(super) enum Among {
    Steps,
    Batches,
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
        let waits = &mut self.0.lock().waits;
        let goes_on = waits.filter(|(_, before)| *before == covers);
        *waits = last.filter(|last| *last > covers).map(|_| goes_on.unwrap_or((now, covers)));
    }

    /// So many own batches were passed over again and again; true when there are more than before.
    pub(super) fn passes_over(&self, batches: u64) -> bool {
        let before = std::mem::replace(&mut self.0.lock().passed_over, batches);
        batches > before
    }

    /// All that is odd now, in sentences.
    pub(super) fn told(&self, now: Instant) -> Vec<String> {
        let Inner { met, waits, passed_over } = &*self.0.lock();
        let met = met.iter().flatten().filter(|met| met.at + TOLD > now);
        let mut told: Vec<String> =
            met.map(|met| format!("passed over in the log: {}", bulkmark_types::told(&met.what))).collect();
        if let Some((since, _)) = waits.filter(|(since, _)| *since + UNCOUNTED <= now) {
            told.push(format!(
                "reports wait in the log for {} s, and no aggregator counts them: is one running, and what does bulkmark fleet status \
                 --server say there?",
                (now - since).as_secs()
            ));
        }
        if *passed_over > 0 {
            told.push(uncounted(*passed_over));
        }
        told
    }
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
    }
}
