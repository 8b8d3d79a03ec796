// SPDX-License-Identifier: GPL-3.0-or-later
//! Names from outside with their frequencies, in bounded memory.

use std::collections::HashMap;

/// Some names. Once there are `most`, further names are counted together.
#[derive(Debug, Clone)]
pub(super) struct Names {
    counts: HashMap<String, u64>,
    most: usize,
    /// The sum of all further names.
    pub(super) others: u64,
}

impl Names {
    pub(super) fn new(most: usize) -> Self {
        Self { counts: HashMap::new(), most, others: 0 }
    }

    pub(super) fn add(&mut self, name: &str, more: u64) {
        if let Some(count) = self.counts.get_mut(name) {
            *count += more;
        } else if self.counts.len() < self.most {
            self.counts.insert(name.to_owned(), more);
        } else {
            self.others += more;
        }
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
        assert_eq!((names.ranked(), names.others), (vec![("a", 2), ("b", 1), ("c", 1)], 2));
        assert_eq!(names.first(), "a and more than 2 more");
    }
}
