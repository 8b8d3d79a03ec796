// SPDX-License-Identifier: GPL-3.0-or-later
//! Limits the lines of each place of the program, so that nobody outside can fill the disk with repeated lines: by refused requests, alerts of a
//! TLS library, broken connections.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The length of a window in which lines are counted.
pub(super) const SPAN: Duration = Duration::from_secs(60);

/// Lines that one place may write in a window. An administrator's own actions cause far fewer.
const MOST: u32 = 60;

/// Places that are distinguished: many times more than the program and its libraries have.
const PLACES: usize = 4096;

/// A line of the source: the module, and the line number.
type Place = (String, u32);

struct Window {
    since: Instant,
    written: u32,
    left_out: u64,
    /// The last omitted line.
    last: String,
}

/// The lines that each place wrote lately.
#[derive(Default)]
pub(super) struct Limits(HashMap<Place, Window>);

impl Limits {
    /// Whether this place may write this line. If not, [`over`](Self::over) reports it later.
    pub(super) fn admit(&mut self, place: (&str, u32), line: &str, now: Instant) -> bool {
        let key = (place.0.to_owned(), place.1);
        if self.0.len() >= PLACES && !self.0.contains_key(&key) {
            self.0.retain(|_, window| window.left_out > 0 || now.duration_since(window.since) < SPAN);
        }
        if self.0.len() >= PLACES && !self.0.contains_key(&key) {
            return false;
        }
        let new = || Window { since: now, written: 0, left_out: 0, last: String::new() };
        let window = self.0.entry(key).or_insert_with(new);
        if window.left_out == 0 && now.duration_since(window.since) >= SPAN {
            *window = new();
        }
        if window.written < MOST {
            window.written += 1;
            return true;
        }
        window.left_out += 1;
        line.clone_into(&mut window.last);
        false
    }

    /// Returns a message for each window with omitted lines, of windows that are over or of all.
    pub(super) fn over(&mut self, now: Instant, all: bool) -> Vec<String> {
        let mut messages = Vec::new();
        for window in self.0.values_mut() {
            let elapsed = now.duration_since(window.since);
            if window.left_out > 0 && (all || elapsed >= SPAN) {
                let (count, last) = (window.left_out, &window.last);
                messages.push(format!(
                    "{count} more lines like this one were left out in {} s: {last}",
                    elapsed.as_secs()
                ));
                *window = Window { since: now, written: 0, left_out: 0, last: String::new() };
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_floods_the_log_and_all_lines_are_counted() {
        let (mut limits, began) = (Limits::default(), Instant::now());
        let (mut written, mut messages) = (0, Vec::new());
        for n in 0..9000 {
            written += u32::from(limits.admit(("gate", 7), &format!("refused {n}"), began));
            // Another place is not held back by it.
            assert!(n >= MOST || limits.admit(("judge", 7), "clean", began));
        }
        assert_eq!((written, limits.over(began, false)), (MOST, Vec::<String>::new()));
        let later = began + SPAN;
        messages.extend(limits.over(later, false));
        let expected =
            format!("{} more lines like this one were left out in 60 s: refused 8999", 9000 - MOST);
        assert_eq!(messages, [expected]);
        assert!(limits.admit(("gate", 7), "refused again", later));
        assert_eq!(limits.over(later + SPAN, true), Vec::<String>::new());
    }

    #[test]
    fn places_are_bounded() {
        let (mut limits, began) = (Limits::default(), Instant::now());
        let names: Vec<String> = (0..2 * PLACES).map(|n| n.to_string()).collect();
        let admitted = names.iter().filter(|name| limits.admit((name, 1), "", began)).count();
        assert_eq!((admitted, limits.0.len()), (PLACES, PLACES));
        assert!(limits.admit(("new", 1), "", began + SPAN));
    }
}
