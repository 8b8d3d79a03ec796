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

/// Messages refused in the last hour, computed from a growing total.
#[derive(Debug, Default)]
pub(super) struct LastHour(VecDeque<(u64, u64)>);

impl LastHour {
    /// Adds the total at this time; returns its growth within an hour. Keeps one number a minute.
    pub(super) fn note(&mut self, total: u64, now: u64) -> u64 {
        while self.0.get(1).is_some_and(|(at, _)| at.saturating_add(3600) <= now) {
            self.0.pop_front();
        }
        // A clock that was set back starts over.
        if self.0.back().is_some_and(|&(at, _)| at > now) {
            self.0.clear();
        }
        if self.0.back().is_none_or(|&(at, _)| at.saturating_add(60) <= now) {
            self.0.push_back((now, total));
        }
        total.saturating_sub(self.0.front().map_or(total, |&(_, first)| first))
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
    fn an_hour_is_remembered() {
        let mut hour = LastHour::default();
        assert_eq!(
            [(100, 0), (130, 5), (160, 60), (160, 3000)].map(|(total, now)| hour.note(total, now)),
            [0, 30, 60, 60]
        );
        assert_eq!(hour.note(170, 3670), 10, "what was before the hour is left out");
        for now in 0..100_000 {
            hour.note(now, 4000 + now);
        }
        assert!(hour.0.len() <= 62, "{}", hour.0.len());
    }
}
