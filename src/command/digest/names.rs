// SPDX-License-Identifier: GPL-3.0-or-later
//! Names from outside with their frequencies, in bounded memory.

use std::collections::HashMap;

/// Removes half of the entries, those with the lowest counts, and returns the sum of these. So what comes late, but often, finds room.
pub(super) fn drop_rare<V>(all: &mut HashMap<String, V>, count: impl Fn(&V) -> u64) -> u64 {
    let mut ranked: Vec<_> = all.iter().map(|(name, value)| (count(value), name.clone())).collect();
    let half = ranked.len().div_ceil(2);
    // By name among equals, so that the same lines have the same digest.
    ranked.select_nth_unstable(half.saturating_sub(1));
    ranked.truncate(half);
    ranked.iter().for_each(|(_, name)| _ = all.remove(name));
    ranked.iter().map(|(count, _)| count).sum()
}

/// Some names. Once there are more than `most`, the rare ones are counted together.
#[derive(Debug, Clone)]
pub(super) struct Names {
    counts: HashMap<String, u64>,
    most: usize,
    /// The sum of the names that were dropped.
    pub(super) others: u64,
}

impl Names {
    pub(super) fn new(most: usize) -> Self {
        Self { counts: HashMap::new(), most, others: 0 }
    }

    pub(super) fn add(&mut self, name: &str, more: u64) {
        if let Some(count) = self.counts.get_mut(name) {
            *count += more;
            return;
        }
        if self.counts.len() >= self.most {
            self.others += drop_rare(&mut self.counts, |&count| count);
        }
        self.counts.insert(name.to_owned(), more);
    }

    /// Returns all names, the most frequent first.
    pub(super) fn ranked(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<_> = self.counts.iter().map(|(name, &count)| (name.as_str(), count)).collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all
    }

    /// Returns the most frequent name, and the number of others: `a.example and 3 more`.
    pub(super) fn first(&self) -> String {
        let ranked = self.ranked();
        let Some((first, _)) = ranked.first() else { return String::new() };
        match (ranked.len() - 1, self.others) {
            (0, 0) => (*first).to_owned(),
            (more, 0) => format!("{first} and {more} more"),
            (more, _) => format!("{first} and more than {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut names = Names::new(3);
        for name in ["b", "a", "a", "c", "d", "e"] {
            names.add(name, 1);
        }
        assert_eq!((names.ranked(), names.others), (vec![("a", 2), ("d", 1), ("e", 1)], 2));
        assert_eq!(names.first(), "a and more than 2 more");
        (0..10).for_each(|_| names.add("late", 1));
        assert_eq!((names.ranked()[0], names.others), (("late", 10), 4));
        let sum: u64 = names.ranked().iter().map(|(_, count)| count).sum();
        assert_eq!(sum + names.others, 16);
    }
}
