// SPDX-License-Identifier: GPL-3.0-or-later
//! What traps made of mail, and which of them get mail that a white list wants: these are no traps, or the list is wrong.

use bulkmark_policy::TrapResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Traps that are kept with white-listed mail.
const MOST: usize = 100;

/// Seconds for which that is told.
const AGE: u64 = 30 * 86_400;

/// A trap that got mail which a white list wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WantedByTrap {
    /// Messages, since the first.
    pub messages: u64,
    /// The entry that wanted the last of them.
    pub entry: String,
    /// When that came, in seconds since 1970.
    pub last: u64,
}

/// What traps made of mail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrapStatus {
    /// Messages since the start, by what was made of them.
    pub messages: BTreeMap<String, u64>,
    /// By trap.
    pub wanted: BTreeMap<String, WantedByTrap>,
}

impl TrapStatus {
    /// A trap got a message.
    pub(super) fn sprung(&mut self, result: TrapResult) {
        *self.messages.entry(result.to_string()).or_default() += 1;
    }

    /// A trap got a message that this entry wants.
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

    /// Takes up what was stored before a restart.
    pub(super) fn take_up(&mut self, wanted: BTreeMap<String, WantedByTrap>) {
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
