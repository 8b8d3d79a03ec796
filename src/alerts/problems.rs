// SPDX-License-Identifier: GPL-3.0-or-later
//! The problems from one check to the next. A problem that comes and goes begins once and ends once.

use std::collections::{BTreeMap, VecDeque};

/// Successive checks that find a problem before it begins, and that do not find it before it ends.
const BEGINS: u32 = 2;
const ENDS: u32 = 6;

/// Problems at a time.
const MOST: usize = 64;

/// Length limit of a text, in characters.
const TEXT: usize = 500;

/// The kind of a problem and its subject: an address, an account.
type Key = (&'static str, String);

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) kind: &'static str,
    /// Its subject; empty if the kind has no subject.
    pub(super) about: String,
    pub(super) text: String,
}

/// The beginning or end of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) begins: bool,
    pub(super) problem: Problem,
    /// When it was first found, in seconds since 1970, and the time of this event.
    pub(super) since: u64,
    pub(super) at: u64,
}

#[derive(Debug)]
struct State {
    text: String,
    since: u64,
    /// Successive checks that found it, before it begins; that did not find it, afterwards.
    checks: u32,
    has_begun: bool,
}

/// All problems.
#[derive(Debug, Default)]
pub(super) struct Problems(BTreeMap<Key, State>);

impl Problems {
    /// Takes the problems found by a check; returns which of them begin and end.
    pub(super) fn check(&mut self, found: Vec<Problem>, now: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut found: BTreeMap<Key, String> = found
            .into_iter()
            .map(|Problem { kind, about, text }| ((kind, about), text.chars().take(TEXT).collect()))
            .collect();
        self.0.retain(|key, state| {
            let is_there = found.remove(key).map(|text| state.text = text).is_some();
            match (is_there, state.has_begun) {
                (true, true) => state.checks = 0,
                (true, false) => {
                    state.checks += 1;
                    state.has_begun = state.checks >= BEGINS;
                    if state.has_begun {
                        state.checks = 0;
                        events.push(event(key, state, true, now));
                    }
                }
                (false, false) => return false,
                (false, true) => {
                    state.checks += 1;
                    if state.checks >= ENDS {
                        events.push(event(key, state, false, now));
                        return false;
                    }
                }
            }
            true
        });
        for (key, text) in found {
            if self.0.len() < MOST {
                self.0.insert(key, State { text, since: now, checks: 1, has_begun: false });
            }
        }
        events
    }
}

fn event((kind, about): &Key, state: &State, begins: bool, at: u64) -> Event {
    let problem = Problem { kind, about: about.clone(), text: state.text.clone() };
    Event { begins, problem, since: state.since, at }
}

/// The time over which refusals are compared, and that for which they are remembered, in seconds.
const HOUR: u64 = 3600;
const REMEMBERED: u64 = 25 * HOUR;

/// Fewer refusals in an hour are never many.
const FEW: u64 = 50;

/// So many times as usual are many.
const JUMP: u64 = 5;

/// The messages refused in the last day, computed from a growing total.
#[derive(Debug, Default)]
pub(super) struct Refusals(VecDeque<(u64, u64)>);

/// More refusals than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    /// Messages refused in the last hour.
    pub(super) hour: u64,
    /// Messages refused in an hour of the day before, on average.
    pub(super) usual: u64,
}

impl Refusals {
    /// Adds the total at this time; returns whether the last hour had many more than usual. In the first two hours nothing is usual. Keeps one
    /// number a minute.
    pub(super) fn note(&mut self, total: u64, now: u64) -> Option<Jump> {
        let is_old = |at: u64, age: u64| at.saturating_add(age) <= now;
        while self.0.get(1).is_some_and(|&(at, _)| is_old(at, REMEMBERED)) {
            self.0.pop_front();
        }
        // A clock that was set back starts over.
        if self.0.back().is_some_and(|&(at, _)| at > now) {
            self.0.clear();
        }
        if self.0.back().is_none_or(|&(at, _)| is_old(at, 60)) {
            self.0.push_back((now, total));
        }
        let &(first, at_first) = self.0.front().filter(|&&(at, _)| is_old(at, 2 * HOUR))?;
        let old = self.0.partition_point(|&(at, _)| is_old(at, HOUR));
        let &(base, at_base) = self.0.get(old.saturating_sub(1))?;
        let hour = total.saturating_sub(at_base);
        let usual = at_base.saturating_sub(at_first).saturating_mul(HOUR) / (base - first).max(HOUR);
        (hour > FEW && hour > usual.saturating_mul(JUMP)).then_some(Jump { hour, usual })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(about: &str) -> Problem {
        Problem { kind: "upstream", about: about.to_owned(), text: format!("{about} is down") }
    }

    #[test]
    fn a_problem_begins_once_and_ends_once() {
        let mut problems = Problems::default();
        let mut check = |found: &[&str], now| {
            let events = problems.check(found.iter().map(|about| problem(about)).collect(), now);
            events.into_iter().map(|e| (e.problem.about, e.begins, e.since)).collect::<Vec<_>>()
        };
        assert_eq!(check(&["a"], 1), []);
        assert_eq!(check(&[], 2), [], "one check is not enough");
        assert_eq!(check(&["a", "b"], 3), []);
        assert_eq!(check(&["a", "b"], 4), [("a".to_owned(), true, 3), ("b".to_owned(), true, 3)]);
        for now in 5..40 {
            let found: &[&str] = if now % 5 == 0 { &["a", "b"] } else { &["b"] };
            assert_eq!(check(found, now), [], "it comes and goes");
        }
        let ends: Vec<_> = (40..60).flat_map(|now| check(&["b"], now)).collect();
        assert_eq!(ends, [("a".to_owned(), false, 3)]);
    }

    #[test]
    fn problems_are_bounded() {
        let mut problems = Problems::default();
        let many = || (0..10_000).map(|n| problem(&n.to_string())).collect::<Vec<_>>();
        problems.check(many(), 1);
        assert_eq!((problems.check(many(), 2).len(), problems.0.len()), (MOST, MOST));
        let long = Problem { text: "x".repeat(1 << 20), ..problem("0") };
        problems.check(vec![long], 3);
        assert!(problems.0.values().all(|state| state.text.len() <= TEXT));
    }

    #[test]
    fn many_refusals_are_more_than_usual() {
        let mut refusals = Refusals::default();
        // Sixty an hour from the start.
        for now in 0..86_400 {
            assert_eq!(refusals.note(now / 60, now), None, "{now}");
        }
        assert_eq!(refusals.note(1440 + 240, 86_400 + 3600), None, "four times as many");
        assert_eq!(refusals.note(1440 + 310, 86_400 + 3600), Some(Jump { hour: 311, usual: 60 }));
        for now in 0..100_000 {
            refusals.note(2000, 100_000 + now);
        }
        assert!(refusals.0.len() <= 25 * 60 + 2, "{}", refusals.0.len());
        assert_eq!(refusals.note(2050, 200_000), None, "few");
        assert_eq!(refusals.note(2051, 200_000), Some(Jump { hour: 51, usual: 0 }));
        assert_eq!(refusals.note(9000, 1000), None, "after the clock was set back");
        assert_eq!(refusals.note(9090, 1000 + 7199), None);
        assert_eq!(refusals.note(9090, 1000 + 7200), Some(Jump { hour: 90, usual: 0 }));
    }
}
