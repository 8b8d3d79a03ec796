// SPDX-License-Identifier: GPL-3.0-or-later
//! Pairs of correspondents, in memory and in a file of the state directory, `correspondents.redb`: the table `pairs` has the day of each.

use super::pairs::{PairHashes, Pairs};
use crate::directory::StateDirectory;
use bulkmark_types::{FederationKey, correspondence};
use parking_lot::Mutex;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The file's name in the state directory.
const FILE: &str = "correspondents.redb";

/// The name of a file that could not be read.
const DAMAGED: &str = "correspondents.redb.damaged";

/// The file's permissions: only for the daemon's user.
const MODE: u32 = 0o600;

/// The size of the page cache in bytes; the file is read only once.
const CACHE: usize = 1 << 20;

/// The day on which a user last wrote, by pair.
const PAIRS: TableDefinition<'_, u64, u32> = TableDefinition::new("pairs");

/// Pairs under the previous key, for a return to that key.
const PREVIOUS: TableDefinition<'_, u64, u32> = TableDefinition::new("pairs-before");

/// The name of a table while the two are swapped.
const SWAP: TableDefinition<'_, u64, u32> = TableDefinition::new("pairs-away");

/// The id of the key under which the pairs are hashed, by a name.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The correspondents of one's own users.
#[derive(Debug)]
pub struct Correspondents {
    key: FederationKey,
    pairs: Mutex<Pairs>,
    /// `None` while the file cannot be used.
    file: Mutex<Option<Database>>,
    state_dir: PathBuf,
}

impl Correspondents {
    /// Reads those in this directory, at this time in seconds since 1970, hashed under `key`. A file that cannot be read is replaced by
    /// an empty one, and logged.
    #[must_use]
    pub fn open(state_dir: &Path, key: &FederationKey, now: u64) -> Self {
        let (mut pairs, mut file) = (Pairs::default(), None);
        match read(state_dir, key, &mut pairs) {
            Ok(found) => file = Some(found),
            Err(e) => {
                let path = state_dir.join(FILE);
                log::warn!("{}: the correspondents of users are not known: {e}", path.display());
                pairs = Pairs::default();
                let aside = StateDirectory::open(state_dir).and_then(|state| state.rename(FILE, DAMAGED));
                if aside.is_ok() {
                    file = read(state_dir, key, &mut pairs).ok();
                }
            }
        }
        pairs.sweep(now);
        Self {
            key: key.clone(),
            pairs: Mutex::new(pairs),
            file: Mutex::new(file),
            state_dir: state_dir.to_owned(),
        }
    }

    /// Records that the user of one mailbox wrote to these addresses, at a time in seconds since 1970. Returns whether anything must be
    /// [written to disk](Self::flush).
    pub fn record<'a>(&self, user: &str, others: impl Iterator<Item = &'a str>, now: u64) -> bool {
        let user_alone = correspondence(&self.key, user, "");
        let mut pairs = self.pairs.lock();
        let mut is_new = false;
        for other in others {
            let hashes = PairHashes { user: user_alone, pair: correspondence(&self.key, user, other) };
            is_new |= pairs.record(hashes, now);
        }
        is_new
    }

    /// Forgets these pairs, by their [numbers](correspondence). Returns whether anything must be [written to disk](Self::flush).
    pub fn forget(&self, pairs: &[u64]) -> bool {
        let mut known = self.pairs.lock();
        pairs.iter().filter(|&&pair| known.forget(pair)).count() > 0
    }

    /// Forgets all pairs of a user, by the number of any of them. Returns how many there were; [`flush`](Self::flush) deletes them on
    /// disk. Examines each pair.
    pub fn forget_user(&self, number: u64) -> usize {
        self.pairs.lock().forget_user(number)
    }

    /// Writes earlier changes to disk; returns when they are there. It may wait for the disk. A failure is logged, and the changes are
    /// written with the next ones.
    pub fn flush(&self) {
        // A thread that waited here for another one mostly finds nothing left to write.
        let mut file = self.file.lock();
        let changed = self.pairs.lock().take_changed();
        if changed.is_empty() {
            return;
        }
        if let Err(e) = self.store(&mut file, &changed) {
            self.pairs.lock().put_back(&changed);
            // After a failure the file must be opened again.
            *file = None;
            let path = self.state_dir.join(FILE);
            log::warn!("{}: the correspondents of users are not on disk: {e}", path.display());
        }
    }

    fn store(&self, file: &mut Option<Database>, changed: &[(u64, Option<u32>)]) -> Result<(), Failed> {
        let database = match file {
            Some(database) => database,
            // Its pairs are in memory already.
            None => file.insert(read(&self.state_dir, &self.key, &mut Pairs::default())?),
        };
        let txn = database.begin_write()?;
        {
            let mut table = txn.open_table(PAIRS)?;
            for (pair, day) in changed {
                match day {
                    Some(day) => drop(table.insert(pair, day)?),
                    None => drop(table.remove(pair)?),
                }
            }
        }
        Ok(txn.commit()?)
    }

    /// Returns which of these pairs exist, by their [numbers](correspondence).
    #[must_use]
    pub fn contains(&self, pairs: &[u64], now: u64) -> Vec<bool> {
        let known = self.pairs.lock();
        pairs.iter().map(|&pair| known.has(pair, now)).collect()
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.lock().len()
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Opens or creates the file, and reads it. Pairs under the previous key are kept, but not used, until a third key comes. During a change of
/// keys the file holds pairs under both, and stays in use after the change.
fn read(state_dir: &Path, key: &FederationKey, pairs: &mut Pairs) -> Result<Database, Failed> {
    let key_id = key.id();
    let directory = StateDirectory::open(state_dir)?;
    let file = match directory.file(FILE, true) {
        Err(e) if e.kind() == ErrorKind::NotFound => directory.create(FILE, MODE)?,
        file => file?,
    };
    // redb may panic on a damaged file.
    let read = || -> Result<Database, Failed> {
        let mut database = Database::builder().set_cache_size(CACHE).create_file(file)?;
        if !database.check_integrity()? {
            return Err("pages failed their checksums".into());
        }
        let txn = database.begin_write()?;
        {
            let mut meta = txn.open_table(META)?;
            let known = meta.get("key-id")?.map(|row| row.value());
            let before = meta.get("key-id-before")?.map(|row| row.value());
            let next = meta.get("key-id-next")?.map(|row| row.value());
            let is_changed = next == Some(key_id) || known.is_some() && key.next_id() == known;
            if is_changed {
                meta.insert("key-id", key_id)?;
            }
            match key.next_id() {
                Some(next) => meta.insert("key-id-next", next)?,
                None => meta.remove("key-id-next")?,
            };
            if known != Some(key_id) && !is_changed {
                let is_back = before == Some(key_id);
                if let Some(known) = known {
                    log::warn!(
                        "{FILE}: another federation key: correspondents {}",
                        if is_back {
                            "under it are known again"
                        } else {
                            "of the previous key are kept, and not known under this one"
                        }
                    );
                    txn.rename_table(PAIRS, SWAP)?;
                    meta.insert("key-id-before", known)?;
                }
                if is_back {
                    txn.rename_table(PREVIOUS, PAIRS)?;
                } else {
                    txn.delete_table(PREVIOUS)?;
                }
                if known.is_some() {
                    txn.rename_table(SWAP, PREVIOUS)?;
                }
                meta.insert("key-id", key_id)?;
            }
            drop(txn.open_table(PAIRS)?);
        }
        txn.commit()?;
        for row in database.begin_read()?.open_table(PAIRS)?.iter()? {
            let (pair, day) = row?;
            pairs.restore(pair.value(), day.value());
        }
        Ok(database)
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("its structure is not valid".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn open(path: &Path) -> Correspondents {
        Correspondents::open(path, &FederationKey::public(), NOW)
    }

    fn knows(store: &Correspondents, user: &str, other: &str) -> bool {
        store.contains(&[correspondence(&store.key, user, other)], NOW) == [true]
    }

    #[test]
    fn flushed_pairs_are_known_after_a_crash_and_under_no_other_key() {
        let state = tempfile::tempdir().unwrap();
        let store = open(state.path());
        assert!(store.record("anna@box.test", ["ben@else.test", "carl@else.test"].into_iter(), NOW));
        store.flush();
        assert!(!store.record("anna@box.test", ["ben@else.test"].into_iter(), NOW), "it is on disk");
        // The file as after a kill.
        std::fs::copy(state.path().join(FILE), state.path().join("copy")).unwrap();
        drop(store);
        std::fs::rename(state.path().join("copy"), state.path().join(FILE)).unwrap();
        let store = open(state.path());
        assert!(
            knows(&store, "anna@box.test", "ben@else.test")
                && knows(&store, "anna@box.test", "carl@else.test")
        );
        assert!(
            !knows(&store, "ben@else.test", "anna@box.test")
                && !knows(&store, "dora@box.test", "ben@else.test")
        );
        let ben = correspondence(&store.key, "anna@box.test", "ben@else.test");
        assert!(store.forget(&[ben]) && !store.forget(&[ben]));
        store.flush();
        drop(store);
        let store = open(state.path());
        assert!(
            !knows(&store, "anna@box.test", "ben@else.test")
                && knows(&store, "anna@box.test", "carl@else.test")
        );
        drop(store);
        let other = FederationKey::from_bytes(b"0123456789abcdef").unwrap();
        assert!(Correspondents::open(state.path(), &other, NOW).is_empty());
        // Under the previous key they are known again.
        assert!(knows(&open(state.path()), "anna@box.test", "carl@else.test"));
        assert!(Correspondents::open(state.path(), &other, NOW).is_empty());
        let third = FederationKey::from_bytes(b"another 16 bytes").unwrap();
        assert!(Correspondents::open(state.path(), &third, NOW).is_empty());
        assert!(open(state.path()).is_empty(), "two keys are kept");
    }

    /// During a change of keys the file has pairs under both keys; afterwards it stays in use under the new key.
    #[test]
    fn a_change_of_keys_goes_on_with_one_file() {
        let state = tempfile::tempdir().unwrap();
        let keys =
            [b"0123456789abcdef", b"fedcba9876543210"].map(|key| FederationKey::from_bytes(key).unwrap());
        let [old, new] = &keys;
        let at = |key: &FederationKey| Correspondents::open(state.path(), key, NOW);
        let known = |of: &Correspondents| {
            let numbers = keys.each_ref().map(|key| correspondence(key, "anna@box.test", "ben@else.test"));
            of.contains(&numbers, NOW)
        };
        let write = |of: &Correspondents| {
            of.record("anna@box.test", ["ben@else.test"].into_iter(), NOW);
            of.flush();
        };
        write(&at(old));
        let of = at(&new.clone().after(old.clone()));
        assert_eq!(known(&of), [true, false]);
        write(&of);
        drop(of);
        assert_eq!(known(&at(new)), [true, true]);
        assert_eq!(known(&at(&new.clone().after(old.clone()))), [true, true], "the old key is back");
        assert_eq!(known(&at(new)), [true, true]);
        let third = FederationKey::from_bytes(b"another 16 bytes").unwrap();
        assert!(at(&third).is_empty());
    }

    #[test]
    fn a_file_that_is_none_is_put_aside() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(FILE), vec![7; 10_000]).unwrap();
        let store = open(state.path());
        store.record("anna@box.test", ["ben@else.test"].into_iter(), NOW);
        store.flush();
        drop(store);
        assert!(knows(&open(state.path()), "anna@box.test", "ben@else.test"));
        assert_eq!(std::fs::read(state.path().join(DAMAGED)).unwrap(), vec![7; 10_000]);
    }

    #[test]
    fn a_disk_that_takes_nothing_costs_nothing_but_the_next_start() {
        let state = tempfile::tempdir().unwrap();
        let store = open(state.path());
        *store.file.lock() = None;
        std::fs::rename(state.path().join(FILE), state.path().join("away")).unwrap();
        std::fs::create_dir(state.path().join(FILE)).unwrap();
        store.record("anna@box.test", ["ben@else.test"].into_iter(), NOW);
        store.flush();
        assert!(knows(&store, "anna@box.test", "ben@else.test"));
        std::fs::remove_dir(state.path().join(FILE)).unwrap();
        std::fs::rename(state.path().join("away"), state.path().join(FILE)).unwrap();
        store.record("anna@box.test", ["carl@else.test"].into_iter(), NOW);
        store.flush();
        drop(store);
        let store = open(state.path());
        assert!(
            knows(&store, "anna@box.test", "ben@else.test")
                && knows(&store, "anna@box.test", "carl@else.test")
        );
    }
}
