// SPDX-License-Identifier: GPL-3.0-or-later
//! For how many words there is room, and whose: so that nobody who says much keeps others from being heard.

use crate::state::words::VoiceKey;
use bulkmark_types::{ReporterId, ReporterKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Rows of users that are kept at most. A message has up to nine, so this is what a thousand users say in a month who say something twice a
/// day. docs/user-reports.md has the memory.
pub const MAX_ROWS: usize = 1 << 19;

/// Rows that each user has room for, whatever others say; while less than a half of all is taken, for more.
const MAX_OF_ONE: u32 = 1 << 15;

/// Rows of traps, which have a room of their own: whoever knows one can write to it, so it is their own oldest words that make place.
pub const MAX_OF_TRAPS: usize = 1 << 17;

/// Rows of clients of other protocols, which have a separate room: names that somebody makes up there take none from users. Each client has
/// room for a sixteenth; while less than a half is taken, for more.
pub const MAX_OF_INTERFACES: usize = 1 << 17;
const MAX_OF_ONE_AT_INTERFACES: u32 = 1 << 13;

/// How much there is of one reporter.
#[derive(Debug, Clone, Copy, Default)]
struct Of {
    rows: u32,
    is_trap: bool,
}

/// What is taken.
#[derive(Default)]
pub struct Room {
    of: HashMap<ReporterId, Of>,
    users: usize,
    traps: usize,
    interfaces: usize,
    /// The rows of traps, and some that are gone, by their first window.
    oldest: BTreeSet<(u64, VoiceKey)>,
}

/// How many rows there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Of users.
    pub users: usize,
    /// Of traps.
    pub traps: usize,
    /// Of clients of other protocols.
    #[serde(default)]
    pub interfaces: usize,
}

impl Rows {
    /// As many of users as find room.
    pub const MOST_OF_USERS: usize = MAX_ROWS;

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.users == 0 && self.traps == 0 && self.interfaces == 0
    }

    /// Whether there soon is no more room for users: four fifths of it are taken. Of traps their own oldest make place.
    #[must_use]
    pub const fn are_many(&self) -> bool {
        self.users >= MAX_ROWS / 5 * 4
    }
}

impl Room {
    pub(crate) const fn rows(&self) -> Rows {
        Rows { users: self.users, traps: self.traps, interfaces: self.interfaces }
    }

    /// Whether a row of this reporter was one of a trap.
    pub fn is_trap(&self, reporter: ReporterId) -> bool {
        self.of.get(&reporter).is_some_and(|of| of.is_trap)
    }

    /// Whether there is room for one more row. For traps there always is.
    pub fn admits(&self, reporter: ReporterId, is_trap: bool) -> bool {
        let rows = self.of.get(&reporter).map_or(0, |of| of.rows);
        let (all, most, most_of_one) = match reporter.kind() {
            ReporterKind::Interface => (self.interfaces, MAX_OF_INTERFACES, MAX_OF_ONE_AT_INTERFACES),
            _ => (self.users, MAX_ROWS, MAX_OF_ONE),
        };
        is_trap || all < most / 2 || all < most && rows < most_of_one
    }

    /// A row begins in this window.
    pub fn take(&mut self, key: VoiceKey, is_trap: bool, window: u64) {
        let of = self.of.entry(key.0).or_default();
        of.rows += 1;
        of.is_trap = is_trap;
        if is_trap {
            self.traps += 1;
            self.oldest.insert((window, key));
        } else {
            *self.all_like(key.0, false) += 1;
        }
    }

    /// A row is gone.
    pub fn leave(&mut self, reporter: ReporterId) {
        let Some(of) = self.of.get_mut(&reporter) else { return };
        of.rows = of.rows.saturating_sub(1);
        let (is_trap, is_last) = (of.is_trap, of.rows == 0);
        if is_last {
            self.of.remove(&reporter);
        }
        let all = self.all_like(reporter, is_trap);
        *all = all.saturating_sub(1);
    }

    /// All rows in the room of this reporter.
    fn all_like(&mut self, reporter: ReporterId, is_trap: bool) -> &mut usize {
        match reporter.kind() {
            _ if is_trap => &mut self.traps,
            ReporterKind::Interface => &mut self.interfaces,
            _ => &mut self.users,
        }
    }

    /// A row that may be one of those that are to make place, if traps have more than their room: the oldest first.
    pub fn too_many(&mut self) -> Option<VoiceKey> {
        if self.traps <= MAX_OF_TRAPS {
            return None;
        }
        self.oldest.pop_first().map(|(_, key)| key)
    }

    /// Forgets what is gone.
    pub fn sweep(&mut self, is_there: impl Fn(&VoiceKey) -> bool) {
        self.oldest.retain(|(_, key)| is_there(key));
    }
}
