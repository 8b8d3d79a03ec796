// SPDX-License-Identifier: GPL-3.0-or-later
//! Log lines about a client's refusals: each reason once in a while, whatever the client does.

use std::time::{Duration, Instant};

/// How long a reason is not logged again.
const EVERY: Duration = Duration::from_secs(600);

/// Maximum of reasons logged within that time, and of characters of each. A client may influence their text.
const REASONS: usize = 8;
const LETTERS: usize = 300;

/// A logged reason.
#[derive(Debug)]
struct LoggedReason {
    why: String,
    at: Instant,
    /// How often it was omitted since.
    left_out: u64,
}

/// The recent reasons for refusals of a client.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    logged: Vec<LoggedReason>,
    /// The number of refusals for further reasons.
    others: u64,
}

impl Refusals {
    /// Records a refusal; returns the lines to log about this client.
    pub(super) fn note(&mut self, why: &str, now: Instant) -> Vec<String> {
        let why: String = why.chars().take(LETTERS).collect();
        let mut lines = Vec::new();
        let minutes = EVERY.as_secs() / 60;
        self.logged.retain(|LoggedReason { why, at, left_out }| {
            let over = now.duration_since(*at) >= EVERY;
            if over && *left_out > 0 {
                lines.push(format!("{why} ({left_out} more times in the {minutes} minutes after that)"));
            }
            !over
        });
        if self.logged.len() < REASONS && self.others > 0 {
            lines.push(format!("{} more times, for other reasons", std::mem::take(&mut self.others)));
        }
        let room = self.logged.len() < REASONS;
        match self.logged.iter_mut().find(|reason| reason.why == why) {
            Some(reason) => reason.left_out += 1,
            None if room => {
                lines.push(why.clone());
                self.logged.push(LoggedReason { why, at: now, left_out: 0 });
            }
            None => self.others += 1,
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_alternate_are_logged_once() {
        let (mut refusals, began) = (Refusals::default(), Instant::now());
        let mut lines = Vec::new();
        for n in 0..9000 {
            lines.extend(refusals.note(["too fast", "another key"][n % 2], began));
        }
        assert_eq!(lines, ["too fast", "another key"]);
        let later = refusals.note("too fast", began + EVERY);
        let more = "(4499 more times in the 10 minutes after that)";
        assert_eq!(later, [format!("too fast {more}"), format!("another key {more}"), "too fast".to_owned()]);
    }

    #[test]
    fn reasons_that_a_client_makes_up_are_bounded() {
        let (mut refusals, began) = (Refusals::default(), Instant::now());
        let logged: usize = (0..9000).map(|n| refusals.note(&format!("reason {n}"), began).len()).sum();
        assert_eq!((logged, refusals.logged.len()), (REASONS, REASONS));
        let later = refusals.note("reason", began + EVERY);
        assert_eq!(later, ["8992 more times, for other reasons", "reason"]);
    }
}
