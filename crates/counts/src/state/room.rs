// SPDX-License-Identifier: GPL-3.0-or-later
//! The number of rows of user reports, by kind of reporter: one busy reporter must not keep out others.

use crate::state::user_report::ReportKey;
use bulkmark_types::{ReporterId, ReporterKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// The most rows of users. A message has up to nine, so it is enough for a month of a thousand users who report twice a day.
/// docs/user-reports.md has the memory.
pub const MAX_ROWS: usize = 1 << 19;

/// Rows that each user has room for, whatever others report; as long as less than half of all are taken, for more.
const MAX_OF_ONE: u32 = 1 << 15;

/// The most rows of traps, which have a separate room: anyone who knows a trap can write to it, so only the oldest rows of traps are
/// evicted.
pub const MAX_OF_TRAPS: usize = 1 << 17;

/// The most rows of clients of other protocols, which have a separate room: names that are made up there take no room from users. Each
/// client has room for a sixteenth; as long as less than half are taken, for more.
pub const MAX_OF_INTERFACES: usize = 1 << 17;
const MAX_OF_ONE_AT_INTERFACES: u32 = 1 << 13;

/// The rows of one reporter.
#[derive(Debug, Clone, Copy, Default)]
struct Of {
    rows: u32,
    is_trap: bool,
}

/// The used room.
#[derive(Default)]
pub struct Room {
    of: HashMap<ReporterId, Of>,
    users: usize,
    traps: usize,
    interfaces: usize,
    /// The rows of traps, including some that are gone, by their first window.
    oldest: BTreeSet<(u64, ReportKey)>,
}

/// The number of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Rows of users.
    pub users: usize,
    /// Rows of traps.
    pub traps: usize,
    /// Rows of clients of other protocols.
    #[serde(default)]
    pub interfaces: usize,
}

impl Rows {
    /// The most rows of users.
    pub const MOST_OF_USERS: usize = MAX_ROWS;

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.users == 0 && self.traps == 0 && self.interfaces == 0
    }

    /// Whether there is soon no room for users: four fifths are taken. Traps evict their own oldest rows.
    #[must_use]
    pub const fn are_many(&self) -> bool {
        self.users >= MAX_ROWS / 5 * 4
    }
}

impl Room {
    pub(crate) const fn rows(&self) -> Rows {
        Rows { users: self.users, traps: self.traps, interfaces: self.interfaces }
    }

    /// Whether the rows of this reporter are those of a trap.
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

    /// Adds a row that begins in this window.
    pub fn take(&mut self, key: ReportKey, is_trap: bool, window: u64) {
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

    /// Removes a row.
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

    /// Returns a candidate for eviction if traps have too many rows: the oldest first, perhaps one that is gone.
    pub fn too_many(&mut self) -> Option<ReportKey> {
        if self.traps <= MAX_OF_TRAPS {
            return None;
        }
        self.oldest.pop_first().map(|(_, key)| key)
    }

    /// Forgets rows that are gone.
    pub fn sweep(&mut self, is_there: impl Fn(&ReportKey) -> bool) {
        self.oldest.retain(|(_, key)| is_there(key));
    }
}
