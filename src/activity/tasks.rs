// SPDX-License-Identifier: GPL-3.0-or-later
//! Tasks of a daemon that ended and were started again.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// How often each was.
#[derive(Debug, Default)]
pub struct Tasks(Mutex<BTreeMap<&'static str, u64>>);

impl Tasks {
    /// There is a task of this name.
    pub fn expect(&self, name: &'static str) {
        self.0.lock().entry(name).or_default();
    }

    /// Counts that it was started again.
    pub fn restarted(&self, name: &'static str) {
        *self.0.lock().entry(name).or_default() += 1;
    }

    /// All tasks by name, and how often each was started again.
    #[must_use]
    pub fn restarts(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().iter().map(|(&name, &count)| (name, count)).collect()
    }
}
