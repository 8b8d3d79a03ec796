// SPDX-License-Identifier: GPL-3.0-or-later
//! Restarts of a daemon's tasks that ended.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The number of restarts by task.
#[derive(Debug, Default)]
pub struct Tasks(Mutex<BTreeMap<&'static str, u64>>);

impl Tasks {
    /// Adds a task of this name.
    pub fn expect(&self, name: &'static str) {
        self.0.lock().entry(name).or_default();
    }

    /// Counts a restart of the task.
    pub fn restarted(&self, name: &'static str) {
        *self.0.lock().entry(name).or_default() += 1;
    }

    /// Returns all tasks by name with their numbers of restarts.
    #[must_use]
    pub fn restarts(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().iter().map(|(&name, &count)| (name, count)).collect()
    }
}
