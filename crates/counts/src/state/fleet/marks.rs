// SPDX-License-Identifier: GPL-3.0-or-later
//! Which batches of all spools are counted. Every holder remembers the same, since the steps tell it and nothing else does.

use crate::history::spool_mark::SpoolMark;
use crate::history::step::SpoolMarks;
use crate::state::receipts::MAX_SPOOLS;
use std::collections::{BTreeMap, BTreeSet};

/// A spool, and the step that changed its mark last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMark {
    /// The version of the step that set it last.
    pub at: u64,
    /// The batches of the spool that are counted.
    pub mark: SpoolMark,
}

/// By client, which the log proves, and then by spool. So nobody can speak for another one's spool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    clients: BTreeMap<String, BTreeMap<u64, KnownMark>>,
    /// Those that are not on disk as they are.
    dirty: BTreeSet<(String, u64)>,
}

impl Marks {
    pub(crate) fn get(&self, client: &str, spool: u64) -> Option<&SpoolMark> {
        Some(&self.known(client, spool)?.mark)
    }

    pub(crate) fn known(&self, client: &str, spool: u64) -> Option<&KnownMark> {
        self.clients.get(client)?.get(&spool)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64, &KnownMark)> {
        self.clients
            .iter()
            .flat_map(|(client, spools)| spools.iter().map(move |(&spool, known)| (&**client, spool, known)))
    }

    /// Puts one back that was read.
    pub fn restore(&mut self, client: String, spool: u64, known: KnownMark) {
        self.clients.entry(client).or_default().insert(spool, known);
    }

    /// Whether these say of no batch that it is open again.
    pub fn are_followed_by(&self, marks: &SpoolMarks) -> bool {
        let mut all = marks
            .iter()
            .flat_map(|(client, spools)| spools.iter().map(move |(&spool, mark)| (client, spool, mark)));
        all.all(|(client, spool, mark)| self.get(client, spool).is_none_or(|before| mark.follows(before)))
    }

    /// Takes the marks of the step that makes this version. A client's spools beyond a thousand are forgotten, those first that were
    /// silent for longest.
    pub fn set_all(&mut self, marks: &SpoolMarks, version: u64) {
        for (client, new) in marks {
            let spools = self.clients.entry(client.clone()).or_default();
            for (&spool, mark) in new {
                spools.insert(spool, KnownMark { at: version, mark: mark.clone() });
                self.dirty.insert((client.clone(), spool));
            }
            let mut oldest: Vec<_> = spools.iter().map(|(&spool, known)| (known.at, spool)).collect();
            oldest.sort_unstable();
            oldest.truncate(oldest.len().saturating_sub(MAX_SPOOLS));
            for (_, spool) in oldest {
                spools.remove(&spool);
                self.dirty.insert((client.clone(), spool));
            }
        }
    }

    /// Those that are to be written, or taken out.
    pub fn dirty(&self) -> impl Iterator<Item = (&str, u64, Option<&KnownMark>)> {
        self.dirty.iter().map(|(client, spool)| (&**client, *spool, self.known(client, *spool)))
    }

    /// All of it is on disk.
    pub fn mark_clean(&mut self) {
        self.dirty.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::spool_mark::Taken;

    fn marks(client: &str, spools: std::ops::Range<u64>) -> SpoolMarks {
        let mut mark = SpoolMark::default();
        mark.take(1, 1);
        [(client.to_owned(), spools.map(|spool| (spool, mark.clone())).collect())].into()
    }

    /// A client that begins a new spool for each batch makes no holder larger than others do, and harms only itself.
    #[test]
    fn spools_of_a_client_are_bounded() {
        let (mut all, most) = (Marks::default(), MAX_SPOOLS as u64);
        all.set_all(&marks("good", 7..8), 1);
        all.set_all(&marks("bad", 0..10), 2);
        all.set_all(&marks("bad", 10..most), 3);
        all.set_all(&marks("bad", most..3 * most), 4);
        assert_eq!(all.iter().count(), 1 + MAX_SPOOLS);
        assert!(all.get("good", 7).is_some_and(|mark| mark.has(1)));
        assert_eq!((all.get("bad", 3), all.get("bad", 2 * most - 1)), (None, None));
        assert!(all.get("bad", 2 * most).is_some());
        all.set_all(&marks("bad", 5..6), 5);
        assert_eq!(all.get("bad", 2 * most), None, "the one that is silent for longest");
        let gone = all.dirty().filter(|(_, _, known)| known.is_none()).count();
        assert_eq!(gone, 2 * MAX_SPOOLS);
    }

    #[test]
    fn nothing_is_open_again() {
        let mut all = Marks::default();
        let mut mark = SpoolMark::default();
        [1, 2, 5].into_iter().for_each(|number| assert_eq!(mark.take(number, 1), Taken::New));
        all.set_all(&[("a".to_owned(), [(1, mark.clone())].into())].into(), 1);
        assert!(!all.are_followed_by(&marks("a", 1..2)));
        assert!(all.are_followed_by(&marks("b", 1..2)) && all.are_followed_by(&marks("a", 2..3)));
        mark.take(4, 3);
        assert!(all.are_followed_by(&[("a".to_owned(), [(1, mark)].into())].into()));
    }
}
