// SPDX-License-Identifier: GPL-3.0-or-later
//! The counted batches of all spools. All holders have the same marks, since these come only from steps.

use crate::history::spool_mark::SpoolMark;
use crate::history::step::SpoolMarks;
use crate::state::receipts::MAX_SPOOLS;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A spool, and the step that changed its mark last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMark {
    /// The version of the step that last set it.
    pub at: u64,
    /// The counted batches of the spool.
    pub mark: SpoolMark,
}

/// The most memory of all marks: those of 32,768 spools, in about 20 MB. A fleet has a spool for each of its milters, and one for each time
/// that one started over; so only made-up steps have more.
const MOST: usize = 1 << 19;

/// The memory of a spool's mark: its place, and a number for each batch that overtook others.
fn weight(known: &KnownMark) -> usize {
    16 + known.mark.len_above()
}

/// The marks by client, as proven by the log, and by spool. So no client can affect another one's spool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    clients: BTreeMap<String, BTreeMap<u64, KnownMark>>,
    /// The sum of all [`weight`]s.
    weight: usize,
    /// The marks that differ from those on disk.
    dirty: BTreeSet<(String, u64)>,
}

impl Marks {
    pub(crate) fn get(&self, client: &str, spool: u64) -> Option<&SpoolMark> {
        Some(&self.known(client, spool)?.mark)
    }

    pub(crate) fn known(&self, client: &str, spool: u64) -> Option<&KnownMark> {
        self.clients.get(client)?.get(&spool)
    }

    /// All marks, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64, &KnownMark)> {
        self.clients
            .iter()
            .flat_map(|(client, spools)| spools.iter().map(move |(&spool, known)| (&**client, spool, known)))
    }

    /// Restores a mark that was read from disk.
    pub fn restore(&mut self, client: &str, spool: u64, known: KnownMark) {
        self.insert(client, spool, known);
    }

    fn insert(&mut self, client: &str, spool: u64, known: KnownMark) {
        self.weight += weight(&known);
        let before = match self.clients.get_mut(client) {
            Some(spools) => spools.insert(spool, known),
            None => self.clients.entry(client.to_owned()).or_default().insert(spool, known),
        };
        self.weight -= before.as_ref().map_or(0, weight);
    }

    /// Removes a spool, and a client without further spools.
    fn remove(&mut self, client: &str, spool: u64) {
        let Some(spools) = self.clients.get_mut(client) else { return };
        self.weight -= spools.remove(&spool).as_ref().map_or(0, weight);
        if spools.is_empty() {
            self.clients.remove(client);
        }
        self.dirty.insert((client.to_owned(), spool));
    }

    /// Whether they are more than any ledger keeps.
    pub(crate) const fn is_too_much(&self) -> bool {
        self.weight > 2 * MOST
    }

    /// Whether no counted batch is open again in these marks.
    pub fn are_followed_by(&self, marks: &SpoolMarks) -> bool {
        let mut all = marks
            .iter()
            .flat_map(|(client, spools)| spools.iter().map(move |(&spool, mark)| (client, spool, mark)));
        all.all(|(client, spool, mark)| self.get(client, spool).is_none_or(|before| mark.follows(before)))
    }

    /// Sets the marks of the step with this version. Of a client's spools beyond a thousand, the ones that are silent for longest are
    /// forgotten; beyond `MOST`, those of the client with the most.
    pub fn set_all(&mut self, marks: &SpoolMarks, version: u64) {
        for (client, new) in marks {
            for (&spool, mark) in new {
                self.insert(client, spool, KnownMark { at: version, mark: mark.clone() });
                self.dirty.insert((client.clone(), spool));
            }
            let spools = self.clients.get(client).into_iter().flatten();
            let mut oldest: Vec<_> = spools.map(|(&spool, known)| (known.at, spool)).collect();
            if oldest.len() > MAX_SPOOLS {
                oldest.sort_unstable();
                oldest.truncate(oldest.len() - MAX_SPOOLS);
                oldest.into_iter().for_each(|(_, spool)| self.remove(client, spool));
            }
        }
        if self.weight > MOST {
            self.forget_excess();
        }
    }

    /// Forgets the excess, and an eighth more, so that it is not necessary again at once: always the oldest spool of the client whose
    /// marks take the most. So no client can make others' marks be forgotten, after which a batch of theirs that comes again would count
    /// twice.
    fn forget_excess(&mut self) {
        let of_client = |(client, spools): (&String, &BTreeMap<u64, KnownMark>)| {
            let mut newest: Vec<_> =
                spools.iter().map(|(&spool, known)| Reverse((known.at, spool))).collect();
            newest.sort_unstable();
            (spools.values().map(weight).sum::<usize>(), newest.pop(), client.clone(), newest)
        };
        let mut heaviest: BinaryHeap<_> = self.clients.iter().map(of_client).collect();
        while self.weight > MOST / 8 * 7
            && let Some((of_client, Some(Reverse((_, oldest))), client, mut newer)) = heaviest.pop()
        {
            let before = self.weight;
            self.remove(&client, oldest);
            heaviest.push((of_client.saturating_sub(before - self.weight), newer.pop(), client, newer));
        }
    }

    /// The marks to write, or to delete if `None`.
    pub fn dirty(&self) -> impl Iterator<Item = (&str, u64, Option<&KnownMark>)> {
        self.dirty.iter().map(|(client, spool)| (&**client, *spool, self.known(client, *spool)))
    }

    /// Marks everything as written.
    pub fn mark_clean(&mut self) {
        self.dirty.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::spool_mark::BatchStatus;

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

    /// Neither do made-up names, nor batches that overtook many others.
    #[test]
    fn spools_of_all_are_bounded() {
        let mut all = Marks::default();
        for version in 1..100_000 {
            all.set_all(&marks(&format!("made-up-{version}"), 0..1), version);
        }
        let kept = all.iter().count();
        assert!((MOST / 16 / 8 * 7..=MOST / 16).contains(&kept), "{kept}");
        assert!(all.get("made-up-99999", 0).is_some() && all.get("made-up-1", 0).is_none());
        assert_eq!(all.weight, all.iter().map(|(_, _, known)| weight(known)).sum::<usize>());
        assert_eq!(all.clients.len(), kept, "nothing is left of those that are forgotten");
        // Every second number.
        let mut sparse = SpoolMark::default();
        (1..2000).for_each(|n| assert_eq!(sparse.take(2 * n, 1), BatchStatus::New));
        for spool in 0..1000 {
            let mark: SpoolMarks = [("sparse".to_owned(), [(spool, sparse.clone())].into())].into();
            all.set_all(&mark, 100_000 + spool);
            assert!(all.weight <= MOST);
        }
        assert_eq!(all.weight, all.iter().map(|(_, _, known)| weight(known)).sum::<usize>());
        let mut read = Marks::default();
        for spool in 0..1000 {
            read.restore("sparse", spool, KnownMark { at: 1, mark: sparse.clone() });
        }
        assert!(read.is_too_much() && !all.is_too_much());
    }

    /// Many spools, each with many batches that overtook others, crowd out only other spools of their client, however old those of
    /// others are.
    #[test]
    fn no_client_crowds_out_another() {
        let mut all = Marks::default();
        let honest: Vec<String> = (0..20).map(|n| format!("mx{n}")).collect();
        honest.iter().zip(1..).for_each(|(client, version)| all.set_all(&marks(client, 0..3), version));
        let mut sparse = SpoolMark::default();
        (1..2000).for_each(|n| assert_eq!(sparse.take(2 * n, 1), BatchStatus::New));
        for spool in 0..1000 {
            let mark = [("false".to_owned(), [(spool, sparse.clone())].into())].into();
            all.set_all(&mark, 100 + spool);
        }
        let kept = |client: &String| (0..3).all(|spool| all.get(client, spool).is_some());
        assert!(honest.iter().all(kept));
        assert!(all.get("false", 999).is_some() && all.get("false", 0).is_none());
        assert_eq!(all.weight, all.iter().map(|(_, _, known)| weight(known)).sum::<usize>());
    }

    #[test]
    fn nothing_is_open_again() {
        let mut all = Marks::default();
        let mut mark = SpoolMark::default();
        [1, 2, 5].into_iter().for_each(|number| assert_eq!(mark.take(number, 1), BatchStatus::New));
        all.set_all(&[("a".to_owned(), [(1, mark.clone())].into())].into(), 1);
        assert!(!all.are_followed_by(&marks("a", 1..2)));
        assert!(all.are_followed_by(&marks("b", 1..2)) && all.are_followed_by(&marks("a", 2..3)));
        mark.take(4, 3);
        assert!(all.are_followed_by(&[("a".to_owned(), [(1, mark)].into())].into()));
    }
}
