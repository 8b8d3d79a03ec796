// SPDX-License-Identifier: GPL-3.0-or-later
//! Own batches on their way into the log, until a step counts them. The log's acknowledgement is only a place to look at: a batch is
//! appended again when all up to that place is covered and the batch is not counted, when the log no longer reaches that far, or when it is
//! another log.

use crate::log::{BatchId, Ends, LogError, Place};
use bulkmark_counts::FleetMark;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The pause before a batch is appended again, doubled after each time. A log has no leader for up to nine seconds when that dies, and
/// batches that are repeated long after it has a new one are shared late.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause if the log takes no more from this machine for now: each attempt sends all of the batches in vain.
const LAST_PAUSE_TOO_SOON: Duration = Duration::from_secs(15);

/// The longest pause if the log takes the batch each time and nobody counts it.
const LAST_PAUSE_UNCOUNTED: Duration = Duration::from_secs(60);

/// How long a batch may be in the log, uncovered, before the log is asked whether it still has it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A batch that is too far ahead of others is skipped once; if it happens more often, somebody has to look.
const OFTEN: u32 = 3;

/// The state of a batch.
#[derive(Debug, Clone, Copy)]
struct Sent {
    attempt: u32,
    /// How often in a row it failed or was not counted.
    failures: u32,
    /// How often the log had it, with all batches there covered, and it was not counted.
    passed: u32,
    /// The ledger's epoch when it was appended.
    epoch: u64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// It must be appended from then on.
    Waits(Instant),
    /// It is being appended.
    OnTheWay,
    /// The log acknowledged it at that time.
    Stored(Place, Instant),
}

/// A batch by its spool and its number there. A ledger has batches of two spools for a while after it was found to be an old copy.
pub(super) type Id = (u64, u64);

/// Own batches on their way.
#[derive(Debug, Default)]
pub(super) struct Outbox(BTreeMap<Id, Sent>);

impl Outbox {
    /// Sets the open batches, with all steps up to `mark` applied; others are no longer sent. Returns how many must be appended once more
    /// although the log had them.
    pub(super) fn open(&mut self, open: &[Id], mark: FleetMark, now: Instant) -> u64 {
        self.0.retain(|id, _| open.contains(id));
        for &id in open {
            let new =
                Sent { attempt: 0, failures: 0, passed: 0, epoch: mark.epoch, state: State::Waits(now) };
            self.0.entry(id).or_insert(new);
        }
        let mut again = 0;
        for sent in self.0.values_mut() {
            let State::Stored(place, _) = sent.state else { continue };
            if sent.epoch != mark.epoch {
                sent.repeat(now);
            } else if mark.covers >= place.0 {
                sent.failures = sent.failures.saturating_add(1);
                sent.passed = sent.passed.saturating_add(1);
                sent.repeat(now + pause(sent.failures, LAST_PAUSE_UNCOUNTED));
            } else {
                continue;
            }
            again += 1;
        }
        again
    }

    /// Returns the batches to append now.
    pub(super) fn due(&mut self, mark: FleetMark, now: Instant) -> Vec<BatchId> {
        let mut due = Vec::new();
        for (&(spool, number), sent) in &mut self.0 {
            if let State::Waits(from) = sent.state
                && from <= now
            {
                (sent.state, sent.epoch) = (State::OnTheWay, mark.epoch);
                due.push(BatchId { spool, number, attempt: sent.attempt });
            }
        }
        due
    }

    /// Records that the log acknowledged a batch at this place.
    pub(super) fn stored(&mut self, id: BatchId, place: Place, now: Instant) {
        if let Some(sent) = self.on_the_way(id) {
            sent.state = State::Stored(place, now);
        }
    }

    /// Records that appending a batch failed; it may be in the log all the same. If the log received it and did not store it in time, the
    /// next attempt has another number; if it stores both, the batch is counted once.
    pub(super) fn failed(&mut self, id: BatchId, error: &LogError, now: Instant) {
        let Some(sent) = self.on_the_way(id) else { return };
        sent.failures = sent.failures.saturating_add(1);
        let longest =
            if matches!(error, LogError::RateLimited(_)) { LAST_PAUSE_TOO_SOON } else { LAST_PAUSE };
        let from = now + pause(sent.failures, longest);
        match error {
            LogError::NotStored(_) => sent.repeat(from),
            _ => sent.state = State::Waits(from),
        }
    }

    fn on_the_way(&mut self, id: BatchId) -> Option<&mut Sent> {
        let sent = self.0.get_mut(&(id.spool, id.number))?;
        (sent.attempt == id.attempt && matches!(sent.state, State::OnTheWay)).then_some(sent)
    }

    /// Returns the number of batches that were repeatedly skipped.
    pub(super) fn passed_over(&self) -> u64 {
        self.0.values().filter(|sent| sent.passed >= OFTEN).count() as u64
    }

    /// Whether a batch is uncounted in the log for so long that the log must be asked for its ends.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.0.values().any(|sent| matches!(sent.state, State::Stored(_, since) if since + PATIENCE <= now))
    }

    /// Compares with the ends of the log. Batches behind them are lost, and their number is returned; all others wait for an aggregator.
    pub(super) fn compare(&mut self, ends: Ends, mark: FleetMark, now: Instant) -> u64 {
        let mut lost = 0;
        for sent in self.0.values_mut() {
            let State::Stored(place, since) = &mut sent.state else { continue };
            if *place > ends.batches || mark.version > 0 && mark.made != ends.made && mark.epoch == sent.epoch
            {
                sent.repeat(now);
                lost += 1;
            } else {
                *since = now;
            }
        }
        lost
    }
}

impl Sent {
    /// Schedules it under another name.
    fn repeat(&mut self, from: Instant) {
        self.attempt = self.attempt.saturating_add(1);
        self.state = State::Waits(from);
    }
}

fn pause(failures: u32, longest: Duration) -> Duration {
    (FIRST_PAUSE * 2u32.saturating_pow(failures.saturating_sub(1).min(16))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(epoch: u64, covers: u64) -> FleetMark {
        FleetMark { version: 1, epoch, made: epoch, covers, ..FleetMark::default() }
    }

    fn id(spool: u64, number: u64, attempt: u32) -> BatchId {
        BatchId { spool, number, attempt }
    }

    fn ends(made: u64, batches: u64) -> Ends {
        Ends { made, batches: Place(batches), steps: Place(1), first_step: Place(1) }
    }

    /// A batch that the log took is kept as long as it is open; if it was skipped, it is appended again, later each time.
    #[test]
    fn uncounted_batches_are_appended_again() {
        let (mut outbox, mut now) = (Outbox::default(), Instant::now());
        assert_eq!(outbox.open(&[(7, 1), (7, 2)], mark(1, 0), now), 0);
        assert_eq!(outbox.due(mark(1, 0), now), [id(7, 1, 0), id(7, 2, 0)]);
        assert_eq!(outbox.due(mark(1, 0), now), [], "they are on their way");
        outbox.stored(id(7, 1, 0), Place(5), now);
        outbox.stored(id(7, 2, 0), Place(6), now);
        assert_eq!(outbox.open(&[(7, 1), (7, 2)], mark(1, 4), now), 0);
        assert_eq!(outbox.open(&[(7, 2)], mark(1, 5), now), 0, "1 is counted");
        let mut pauses = Vec::new();
        for attempt in 1..12 {
            assert_eq!(outbox.open(&[(7, 2)], mark(1, 6), now), 1);
            let since = now;
            while outbox.due(mark(1, 6), now) != [id(7, 2, attempt)] {
                now += FIRST_PAUSE;
                assert!(now - since <= LAST_PAUSE_UNCOUNTED);
            }
            pauses.push(now - since);
            outbox.stored(id(7, 2, attempt - 1), Place(6), now);
            outbox.stored(id(7, 2, attempt), Place(6), now);
        }
        assert_eq!(outbox.passed_over(), 1);
        assert!(pauses.is_sorted() && pauses.last() == Some(&LAST_PAUSE_UNCOUNTED), "{pauses:?}");
    }

    /// After an error, the same attempt is repeated, so that the log can recognize it.
    #[test]
    fn after_an_error_it_is_the_same_attempt() {
        let (mut outbox, mut now) = (Outbox::default(), Instant::now());
        outbox.open(&[(7, 1)], mark(1, 0), now);
        for _ in 0..20 {
            assert_eq!(outbox.due(mark(1, 0), now), [id(7, 1, 0)]);
            outbox.failed(id(7, 1, 0), &LogError::Unavailable(String::new()), now);
            assert_eq!(outbox.due(mark(1, 0), now), []);
            now += LAST_PAUSE;
        }
        // Unless the log received it and does not store it.
        outbox.due(mark(1, 0), now);
        outbox.failed(id(7, 1, 0), &LogError::NotStored(String::new()), now);
        assert_eq!(outbox.due(mark(1, 0), now), []);
        assert_eq!(outbox.due(mark(1, 0), now + LAST_PAUSE), [id(7, 1, 1)]);
        // Another spool has its own numbers.
        assert_eq!(outbox.open(&[(8, 1)], mark(1, 0), now), 0);
        assert_eq!(outbox.due(mark(1, 0), now), [id(8, 1, 0)]);
        outbox.stored(id(7, 1, 0), Place(1), now);
        assert_eq!(outbox.open(&[(8, 1)], mark(1, 3), now), 0, "that was of the other");
    }

    /// If the log lost its end, or is another one, its batches are appended again. A batch that it still has is left alone even if nobody
    /// counts it, so that the log does not grow while there is no aggregator.
    #[test]
    fn batches_that_the_log_lost_are_appended_again() {
        let (mut outbox, now) = (Outbox::default(), Instant::now());
        outbox.open(&[(7, 1), (7, 2)], mark(1, 0), now);
        outbox.due(mark(1, 0), now);
        outbox.stored(id(7, 1, 0), Place(5), now);
        outbox.stored(id(7, 2, 0), Place(6), now);
        assert!(!outbox.is_late(now + PATIENCE - Duration::from_secs(1)));
        let later = now + PATIENCE;
        assert!(outbox.is_late(later));
        assert_eq!(outbox.compare(ends(1, 6), mark(1, 0), later), 0);
        assert!(!outbox.is_late(later));
        assert_eq!(outbox.compare(ends(1, 5), mark(1, 0), later), 1);
        assert_eq!(outbox.due(mark(1, 0), later), [id(7, 2, 1)]);
        outbox.stored(id(7, 2, 1), Place(6), later);
        assert_eq!(outbox.open(&[(7, 1), (7, 2)], mark(2, 0), later), 2, "an epoch later");
        assert_eq!(outbox.due(mark(2, 0), later), [id(7, 1, 1), id(7, 2, 2)]);
        outbox.stored(id(7, 1, 1), Place(1), later);
        assert_eq!(
            outbox.compare(ends(3, 9), mark(2, 0), later),
            1,
            "it was created again, and nobody noticed yet"
        );
    }
}
