// SPDX-License-Identifier: GPL-3.0-or-later
//! What the log says of a client that is refused: each reason once in a while, whatever the client does.

use std::time::{Duration, Instant};

/// How long a reason is not told again.
const EVERY: Duration = Duration::from_secs(600);

/// Reasons that are told within that time, and letters of each that are kept. A client may have its say in them.
const REASONS: usize = 8;
const LETTERS: usize = 300;

/// A reason that the log has.
#[derive(Debug)]
struct Told {
    why: String,
    at: Instant,
    /// How often it was left out since.
    left_out: u64,
}

/// The reasons that a client was refused for lately.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: Vec<Told>,
    /// Refusals for even more reasons.
    others: u64,
}

impl Refusals {
    /// Notes a refusal; returns what the log is to say of this client.
    pub(super) fn note(&mut self, why: &str, now: Instant) -> Vec<String> {
        let why: String = why.chars().take(LETTERS).collect();
        let mut lines = Vec::new();
        let minutes = EVERY.as_secs() / 60;
        self.told.retain(|Told { why, at, left_out }| {
            let over = now.duration_since(*at) >= EVERY;
            if over && *left_out > 0 {
                lines.push(format!(
                    "{why} ({left_out} more times in the {minutes} minutes after that was said)"
                ));
            }
            !over
        });
        if self.told.len() < REASONS && self.others > 0 {
            lines.push(format!("{} more times, for other reasons", std::mem::take(&mut self.others)));
        }
        let room = self.told.len() < REASONS;
        match self.told.iter_mut().find(|told| told.why == why) {
            Some(told) => told.left_out += 1,
            None if room => {
                lines.push(why.clone());
                self.told.push(Told { why, at: now, left_out: 0 });
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
    fn reasons_that_alternate_are_told_once() {
        let (mut refusals, began) = (Refusals::default(), Instant::now());
        let mut lines = Vec::new();
        for n in 0..9000 {
            lines.extend(refusals.note(["too fast", "another key"][n % 2], began));
        }
        assert_eq!(lines, ["too fast", "another key"]);
        let later = refusals.note("too fast", began + EVERY);
        let more = "(4499 more times in the 10 minutes after that was said)";
        assert_eq!(later, [format!("too fast {more}"), format!("another key {more}"), "too fast".to_owned()]);
    }

    #[test]
    fn reasons_that_a_client_makes_up_are_bounded() {
        let (mut refusals, began) = (Refusals::default(), Instant::now());
        let told: usize = (0..9000).map(|n| refusals.note(&format!("reason {n}"), began).len()).sum();
        assert_eq!((told, refusals.told.len()), (REASONS, REASONS));
        let later = refusals.note("reason", began + EVERY);
        assert_eq!(later, ["8992 more times, for other reasons", "reason"]);
    }
}
