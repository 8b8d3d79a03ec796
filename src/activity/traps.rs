// SPDX-License-Identifier: GPL-3.0-or-later
//! Results of messages to traps, and the traps that get whitelisted mail: such an address is no trap, or the list is wrong.

use bulkmark_policy::Sprung;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Traps with whitelisted mail that are kept.
const MOST: usize = 100;

/// Seconds for which such mail is reported.
const AGE: u64 = 30 * 86_400;

/// A trap that got whitelisted mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WantedByTrap {
    /// Messages, since the first.
    pub messages: u64,
    /// The entry that matched the last of them.
    pub entry: String,
    /// The time of the last of them, in seconds since 1970.
    pub last: u64,
}

/// Results of messages to traps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrapStatus {
    /// Messages since the start, by result.
    pub messages: BTreeMap<String, u64>,
    /// Whitelisted mail by trap.
    pub wanted: BTreeMap<String, WantedByTrap>,
}

impl TrapStatus {
    /// Counts a message to a trap.
    pub(super) fn sprung(&mut self, result: Sprung) {
        *self.messages.entry(result.to_string()).or_default() += 1;
    }

    /// Counts a message to a trap that this entry of a white list matches.
    pub(super) fn wanted(&mut self, trap: &str, entry: String, now: u64) {
        self.wanted.retain(|_, wanted| now.saturating_sub(wanted.last) < AGE);
        if self.wanted.len() >= MOST && !self.wanted.contains_key(trap) {
            return;
        }
        let new = || WantedByTrap { messages: 0, entry: String::new(), last: now };
        let wanted = self.wanted.entry(trap.to_owned()).or_insert_with(new);
        wanted.messages += 1;
        (wanted.entry, wanted.last) = (entry, now);
    }

    /// Restores the traps stored before a restart.
    pub(super) fn restore(&mut self, wanted: BTreeMap<String, WantedByTrap>) {
        self.wanted = wanted.into_iter().take(MOST).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_for_a_month_and_are_bounded() {
        let mut status = TrapStatus::default();
        for n in 0..2 * MOST {
            status.wanted(&format!("{n}@box.test"), "list:1".to_owned(), 1000);
        }
        assert_eq!(status.wanted.len(), MOST);
        status.wanted("0@box.test", "list:2".to_owned(), 1000 + AGE - 1);
        assert_eq!(status.wanted["0@box.test"].messages, 2);
        status.wanted("new@box.test", "list:3".to_owned(), 1000 + AGE);
        assert_eq!(status.wanted.keys().collect::<Vec<_>>(), ["0@box.test", "new@box.test"]);
    }
}
