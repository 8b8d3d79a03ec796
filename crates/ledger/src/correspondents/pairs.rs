// SPDX-License-Identifier: GPL-3.0-or-later
//! Pairs of a user and a correspondent, with the time of the user's last message. Pure: the time is an argument.

use std::collections::{BTreeSet, HashMap};

/// The largest number of pairs, at 17 to 35 bytes each. Beyond it the oldest are dropped.
pub const MAX_PAIRS: usize = 1 << 20;

/// The largest number of new correspondents of one user in a day. A person has fewer; of a stolen account's, no more count.
pub const MAX_NEW_A_DAY: u32 = 500;

/// Days after which a pair is forgotten.
const AGE: u32 = 365;

/// Days after which a pair is written again if the user still writes: one write to disk in a week is enough.
const REFRESH: u32 = 7;

/// The number of users whose new correspondents of a day are counted; other users get no new ones before the next day.
const MAX_USERS: usize = 1 << 16;

const DAY: u64 = 86_400;

/// One message of a user to a correspondent, as keyed hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairHashes {
    /// The user.
    pub user: u64,
    /// The user and the correspondent together.
    pub pair: u64,
}

/// All pairs.
#[derive(Debug, Default)]
pub struct Pairs {
    /// The day, since 1970, of the user's last message.
    days: HashMap<u64, u32>,
    /// Pairs that are not on disk yet, or are still there although dropped here.
    changed: BTreeSet<u64>,
    today: u32,
    /// The number of each user's new pairs today.
    new: HashMap<u64, u32>,
}

impl Pairs {
    /// Adds a pair that was read from disk.
    pub fn restore(&mut self, pair: u64, day: u32) {
        self.days.insert(pair, day);
    }

    /// Records that a user wrote to somebody, at a time in seconds since 1970. Returns whether the disk needs it.
    pub fn record(&mut self, hashes: PairHashes, now: u64) -> bool {
        let today = day(now);
        let PairHashes { user, pair } = hashes;
        match self.days.get(&pair).copied() {
            // A clock that was set back deletes nothing.
            Some(day) if today < day.saturating_add(REFRESH) => return false,
            Some(_) => (),
            None if !self.admits(user, today) => return false,
            None => {
                if self.days.len() >= MAX_PAIRS {
                    self.make_room(today);
                }
            }
        }
        self.days.insert(pair, today);
        self.changed.insert(pair);
        true
    }

    /// Forgets a pair. Returns whether there was one.
    pub fn forget(&mut self, pair: u64) -> bool {
        let was_known = self.days.remove(&pair).is_some();
        if was_known {
            self.changed.insert(pair);
        }
        was_known
    }

    /// Forgets all pairs of one user: those with the same upper half as this number. Returns how many there were.
    pub fn forget_user(&mut self, number: u64) -> usize {
        let of_user: Vec<u64> = self.days.keys().copied().filter(|pair| pair >> 32 == number >> 32).collect();
        of_user.iter().filter(|&&pair| self.forget(pair)).count()
    }

    /// Counts a new correspondent of this user. Returns false if the user had too many today.
    fn admits(&mut self, user: u64, today: u32) -> bool {
        if self.today != today {
            (self.today, self.new) = (today, HashMap::new());
        }
        if self.new.len() >= MAX_USERS && !self.new.contains_key(&user) {
            return false;
        }
        let new = self.new.entry(user).or_default();
        *new += 1;
        *new <= MAX_NEW_A_DAY
    }

    /// Drops pairs that are too old, and if that is not enough, the oldest sixteenth.
    fn make_room(&mut self, today: u32) {
        self.drop_old(today);
        if self.days.len() < MAX_PAIRS {
            return;
        }
        let mut days: Vec<u32> = self.days.values().copied().collect();
        let place = days.len() / 16;
        let (_, &mut oldest, _) = days.select_nth_unstable(place);
        let mut left = place + 1;
        self.retain(|day| {
            let leaves = left > 0 && day <= oldest;
            left -= usize::from(leaves);
            !leaves
        });
    }

    fn drop_old(&mut self, today: u32) {
        self.retain(|day| !is_old(day, today));
    }

    /// Drops pairs that are too old at this time.
    pub fn sweep(&mut self, now: u64) {
        self.drop_old(day(now));
    }

    fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let changed = &mut self.changed;
        self.days.retain(|&pair, day| {
            let stays = keep(*day);
            if !stays {
                changed.insert(pair);
            }
            stays
        });
    }

    /// Whether the user of this pair wrote to the correspondent within the year.
    #[must_use]
    pub fn has(&self, pair: u64, now: u64) -> bool {
        self.days.get(&pair).is_some_and(|&then| !is_old(then, day(now)))
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.days.len()
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    /// Takes the changes for the disk: pairs with their days; `None` if the pair was dropped.
    pub fn take_changed(&mut self) -> Vec<(u64, Option<u32>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|pair| (pair, self.days.get(&pair).copied())).collect()
    }

    /// Returns changes that the disk did not accept, to be written later.
    pub fn put_back(&mut self, changed: &[(u64, Option<u32>)]) {
        self.changed.extend(changed.iter().map(|(pair, _)| pair));
    }
}

const fn is_old(then: u32, today: u32) -> bool {
    today.saturating_sub(then) > AGE
}

fn day(now: u64) -> u32 {
    u32::try_from(now / DAY).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 20_000 * DAY;

    fn written(user: u64, pair: u64) -> PairHashes {
        PairHashes { user, pair }
    }

    #[test]
    fn a_pair_is_kept_for_a_year_and_noted_once_a_week() {
        let mut pairs = Pairs::default();
        assert!(!pairs.has(7, NOW));
        assert!(pairs.record(written(1, 7), NOW));
        assert!(!pairs.record(written(1, 7), NOW + 6 * DAY), "it is on disk already");
        assert!(!pairs.record(written(1, 7), NOW - DAY), "the clock was set back");
        assert_eq!(pairs.take_changed(), [(7, Some(20_000))]);
        assert!(pairs.has(7, NOW + 365 * DAY) && !pairs.has(7, NOW + 366 * DAY));
        assert!(pairs.record(written(1, 7), NOW + 7 * DAY));
        assert!(pairs.has(7, NOW + 366 * DAY));
        pairs.take_changed();
        pairs.sweep(NOW + 400 * DAY);
        assert_eq!((pairs.len(), pairs.take_changed()), (0, vec![(7, None)]), "it leaves the disk, too");
    }

    #[test]
    fn the_oldest_leave_when_there_is_no_room() {
        let mut pairs = Pairs::default();
        for pair in 0..MAX_PAIRS as u64 {
            pairs.restore(pair, if pair < 100_000 { 19_990 } else { 19_999 });
        }
        assert!(pairs.record(written(1, u64::MAX), NOW));
        assert!(pairs.len() <= MAX_PAIRS && pairs.len() > MAX_PAIRS - MAX_PAIRS / 15);
        assert!(pairs.has(u64::MAX, NOW));
        let gone = pairs.take_changed().into_iter().filter(|(_, day)| day.is_none()).collect::<Vec<_>>();
        assert!(gone.len() >= MAX_PAIRS / 16 && gone.iter().all(|(pair, _)| *pair < 100_000));
    }

    #[test]
    fn a_stolen_account_makes_few_correspondents() {
        let mut pairs = Pairs::default();
        let made = (0..10_000).filter(|&pair| pairs.record(written(1, pair), NOW)).count();
        assert_eq!(made, MAX_NEW_A_DAY as usize);
        assert!(pairs.record(written(2, 20_000), NOW), "another account does not pay for that");
        assert!(pairs.record(written(1, 9_999), NOW + DAY));
    }

    #[test]
    fn changes_that_the_disk_did_not_accept_are_written_later() {
        let mut pairs = Pairs::default();
        pairs.record(written(1, 7), NOW);
        let changed = pairs.take_changed();
        pairs.put_back(&changed);
        assert_eq!(pairs.take_changed(), changed);
    }
}
