// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders in force, and their file.

use super::order::{All, Allowance, Forgotten, Pause};
use arc_swap::ArcSwap;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_policy::Counts;
use bulkmark_signature::Signatures;
use bulkmark_signature::near::Seen;
use bulkmark_types::Signature;
use bulkmark_verdict::is_of;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file in the state directory.
const FILE: &str = "orders.json";

/// The name for a file that cannot be read.
const DAMAGED: &str = "orders.json.damaged";

/// Readable by the daemon and its group, whose commands read it when no daemon runs.
const MODE: u32 = 0o640;

/// Mailings at most, in each list.
const MOST: usize = 1000;

/// Why an order is not in force, or ends with the next restart.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There are too many orders.
    #[error(
        "{MOST} mailings are allowed or forgotten already, which is the most; remove one (bulkmark allow or bulkmark ledger forget: --list, --remove)"
    )]
    Full,
    /// The order has no signature by which to recognise a message.
    #[error("it has no signature by which its mailing is known")]
    NoSignature,
    /// No mailing has this name.
    #[error("no such mailing begins with {0}; --list shows all")]
    Unknown(String),
    /// Several mailings have it.
    #[error("several such mailings begin with {0}; give more of it")]
    Unclear(String),
    /// The order is in force, but could not be written to its file.
    #[error("it is in force, but ends with the next restart: cannot write {path}: {error}")]
    NotKept {
        /// The file.
        path: String,
        /// The reason.
        error: io::Error,
    },
}

/// Orders in the form in which messages are compared with them.
#[derive(Debug, Default)]
struct InForce {
    all: All,
    allowed: Mailings,
    forgotten: Mailings,
}

impl InForce {
    fn new(all: All) -> Self {
        let allowed = Mailings::new(all.allowed.iter());
        let forgotten = Mailings::new(all.forgotten.iter().map(|forgotten| &forgotten.mailing));
        Self { all, allowed, forgotten }
    }
}

/// Mailings, indexed by their signatures.
#[derive(Debug, Default)]
struct Mailings {
    /// The signatures of each mailing, in the order of the list.
    all: Vec<HashSet<Signature>>,
    /// The indexes of the mailings with a signature.
    by_signature: HashMap<Signature, Vec<usize>>,
}

impl Mailings {
    fn new<'a>(orders: impl Iterator<Item = &'a Allowance>) -> Self {
        let all: Vec<HashSet<_>> = orders.map(|order| order.parsed().collect()).collect();
        let mut by_signature: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, signatures) in all.iter().enumerate() {
            signatures.iter().for_each(|&signature| by_signature.entry(signature).or_default().push(i));
        }
        Self { all, by_signature }
    }

    /// Returns the indexes of the mailings of a message with these signatures and counts. Costs one lookup for each signature, and more only for
    /// mailings with one of them.
    fn find(&self, signatures: &Signatures, counted: Option<&Seen>) -> Vec<usize> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let near = signatures.near.reported().chain(signatures.near.looked_up());
        let all = signatures.body.ok().into_iter().chain(near);
        let candidates: HashSet<usize> =
            all.filter_map(|signature| self.by_signature.get(&signature)).flatten().copied().collect();
        candidates.into_iter().filter(|&i| is_of(&self.all[i], signatures, counted)).collect()
    }
}

/// All orders of a daemon.
#[derive(Debug)]
pub struct Orders {
    state_dir: PathBuf,
    in_force: ArcSwap<InForce>,
    /// Held while the orders are changed and written.
    changing: Mutex<()>,
}

impl Orders {
    /// Reads the orders in this state directory. If they cannot be read there are none, and this is logged.
    #[must_use]
    pub fn open(state_dir: &Path) -> Self {
        let all = Self::stored(state_dir).unwrap_or_else(|e| {
            let path = state_dir.join(FILE);
            log::warn!(
                "{}: no pause and no allowed mailing is known (kept as {DAMAGED}): {e}",
                path.display()
            );
            let _ = StateDirectory::open(state_dir).and_then(|directory| directory.rename(FILE, DAMAGED));
            All::default()
        });
        Self {
            state_dir: state_dir.to_owned(),
            in_force: ArcSwap::from_pointee(InForce::new(all)),
            changing: Mutex::new(()),
        }
    }

    /// Returns the orders stored in this state directory.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn stored(state_dir: &Path) -> io::Result<All> {
        match StateDirectory::open(state_dir).and_then(|directory| directory.read(FILE)) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(All::default()),
            Err(e) => Err(e),
            Ok(json) => serde_json::from_slice(&json).map_err(io::Error::from),
        }
    }

    /// Wraps orders that a command received from the daemon.
    #[must_use]
    pub fn of(all: All) -> Self {
        let in_force = ArcSwap::from_pointee(InForce::new(all));
        Self { state_dir: PathBuf::new(), in_force, changing: Mutex::new(()) }
    }

    /// Returns the orders in force at this time, in seconds since 1970.
    #[must_use]
    pub fn all(&self, now: u64) -> All {
        self.in_force.load().all.clone().at(now)
    }

    /// Whether there is a pause at this time.
    #[must_use]
    pub fn is_paused(&self, now: u64) -> bool {
        let in_force = self.in_force.load();
        in_force.all.pause.as_ref().is_some_and(|pause| pause.until.is_none_or(|until| until > now))
    }

    /// Whether a message with these signatures and counts is never refused at this time. Costs one lookup for each signature, and more only for
    /// mailings with one of them.
    #[must_use]
    pub fn allow_message(&self, signatures: &Signatures, counted: Option<&Seen>, now: u64) -> bool {
        let in_force = self.in_force.load();
        let holds = |i: usize| in_force.all.allowed[i].until.is_none_or(|until| until > now);
        in_force.allowed.find(signatures, counted).into_iter().any(holds)
    }

    /// Returns the counts of a message with these signatures, minus the counts that its mailing had when it was forgotten.
    #[must_use]
    pub fn without_forgotten(
        &self,
        signatures: &Signatures,
        counted: Option<&Seen>,
        counts: Counts,
        now: u64,
    ) -> Counts {
        let in_force = self.in_force.load();
        let mut left = counts;
        for i in in_force.forgotten.find(signatures, counted) {
            let Forgotten { mailing, body, near } = &in_force.all.forgotten[i];
            if mailing.until.is_none_or(|until| until > now) {
                left.body = left.body.map(|count| count.saturating_sub(*body));
                // A message with such signatures counts itself at least.
                left.near = left.near.map(|count| count.saturating_sub(*near).max(1.min(count)));
            }
        }
        left
    }

    /// Starts the counts of a mailing over, and replaces an earlier such order.
    ///
    /// # Errors
    /// [`Failure::NoSignature`] and [`Failure::Full`]; [`Failure::NotKept`] if the order is in force but not stored.
    pub fn forget(&self, forgotten: Forgotten) -> Result<(), Failure> {
        self.change(forgotten.mailing.since, |all| put(&mut all.forgotten, forgotten))
    }

    /// Ends the order to forget for the mailing whose name has this prefix: its earlier counts are included again.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn remember(&self, prefix: &str, now: u64) -> Result<Allowance, Failure> {
        self.change(now, |all| take(&mut all.forgotten, prefix)).map(|forgotten| forgotten.mailing)
    }

    /// Begins a pause, and replaces an earlier one.
    ///
    /// # Errors
    /// [`Failure::NotKept`] if the pause is in force but not stored.
    pub fn pause(&self, pause: Pause) -> Result<(), Failure> {
        let now = pause.since;
        self.change(now, |all| {
            all.pause = Some(pause);
            Ok(())
        })
    }

    /// Ends the pause, and returns it if there was one.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub fn resume(&self, now: u64) -> Result<Option<Pause>, Failure> {
        self.change(now, |all| Ok(all.pause.take()))
    }

    /// Allows a mailing, and replaces an order for one of the same name.
    ///
    /// # Errors
    /// [`Failure::Full`] and [`Failure::NoSignature`]; [`Failure::NotKept`] if the order is in force but not stored.
    pub fn allow(&self, allowance: Allowance) -> Result<(), Failure> {
        self.change(allowance.since, |all| put(&mut all.allowed, allowance))
    }

    /// Ends the permission of the mailing whose name has this prefix, and returns it.
    ///
    /// # Errors
    /// [`Failure::Unknown`] and [`Failure::Unclear`]; [`Failure::NotKept`] if it is removed but not from the file.
    pub fn remove(&self, prefix: &str, now: u64) -> Result<Allowance, Failure> {
        self.change(now, |all| take(&mut all.allowed, prefix))
    }

    /// Changes the orders in memory and in their file; an error of `change` leaves them unchanged.
    fn change<T>(&self, now: u64, change: impl FnOnce(&mut All) -> Result<T, Failure>) -> Result<T, Failure> {
        let _turn = self.changing.lock();
        let mut all = self.all(now);
        let changed = change(&mut all)?;
        let json = serde_json::to_vec(&all).map_err(io::Error::from);
        self.in_force.store(Arc::new(InForce::new(all)));
        let write = |json: Vec<u8>| StateDirectory::open(&self.state_dir)?.replace(FILE, &json, MODE);
        let path = || self.state_dir.join(FILE).display().to_string();
        json.and_then(write).map_err(|error| Failure::NotKept { path: path(), error })?;
        Ok(changed)
    }
}

/// Puts an order for a mailing into its list, and replaces one for the same mailing.
fn put<T: AsRef<Allowance>>(list: &mut Vec<T>, order: T) -> Result<(), Failure> {
    let mailing = order.as_ref();
    if mailing.parsed().next().is_none() {
        return Err(Failure::NoSignature);
    }
    list.retain(|other| other.as_ref().name() != mailing.name());
    if list.len() >= MOST {
        return Err(Failure::Full);
    }
    list.push(order);
    Ok(())
}

/// Removes the order for the one mailing whose name has this prefix.
fn take<T: AsRef<Allowance>>(list: &mut Vec<T>, prefix: &str) -> Result<T, Failure> {
    let mut found = (0..list.len()).filter(|&i| list[i].as_ref().name().starts_with(prefix));
    match (found.next(), found.next()) {
        (Some(i), None) => Ok(list.remove(i)),
        (Some(_), Some(_)) => Err(Failure::Unclear(prefix.to_owned())),
        (None, _) => Err(Failure::Unknown(prefix.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(name: &str, until: Option<u64>) -> Allowance {
        let signatures = vec![name.repeat(32)];
        Allowance { signatures, since: 100, until, by: "root".to_owned(), reason: String::new() }
    }

    #[test]
    fn orders_end_in_time_and_outlive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let orders = Orders::open(directory.path());
        let pause = |until| Pause { since: 100, until, by: "root".to_owned(), reason: "why".to_owned() };
        orders.pause(pause(Some(200))).unwrap();
        orders.allow(allowance("a", Some(300))).unwrap();
        orders.allow(allowance("b", None)).unwrap();
        for orders in [&orders, &Orders::open(directory.path())] {
            assert_eq!((orders.is_paused(199), orders.is_paused(200)), (true, false));
            let at = |now| orders.all(now).allowed.len();
            assert_eq!((at(299), at(300)), (2, 1));
        }
        assert_eq!(orders.resume(150).unwrap(), Some(pause(Some(200))));
        assert!(!Orders::open(directory.path()).is_paused(150));
        std::fs::write(directory.path().join(FILE), "{").unwrap();
        assert_eq!(Orders::open(directory.path()).all(0), All::default());
        assert!(directory.path().join(DAMAGED).exists());
    }

    #[test]
    fn one_is_removed_by_the_beginning_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let orders = Orders::open(directory.path());
        orders.allow(allowance("a", None)).unwrap();
        orders.allow(allowance("a", Some(900))).unwrap();
        orders.allow(allowance("b", None)).unwrap();
        assert_eq!(orders.all(100).allowed.len(), 2, "the same mailing once");
        assert!(matches!(orders.remove("", 100), Err(Failure::Unclear(_))));
        assert!(matches!(orders.remove("c", 100), Err(Failure::Unknown(_))));
        assert_eq!(orders.remove("aa", 100).unwrap(), allowance("a", Some(900)));
        assert!(matches!(orders.allow(allowance("?", None)), Err(Failure::NoSignature)));
        let many = |n: usize| Allowance { signatures: vec![format!("{n:032x}")], ..allowance("a", None) };
        let orders =
            Orders::of(All { pause: None, allowed: (0..MOST).map(many).collect(), ..All::default() });
        assert!(matches!(orders.allow(allowance("c", None)), Err(Failure::Full)));
    }

    #[test]
    fn an_order_that_cannot_be_written_is_in_force() {
        let directory = tempfile::tempdir().unwrap();
        let orders = Orders::open(&directory.path().join("gone"));
        let failed = orders.pause(Pause { since: 1, until: None, by: String::new(), reason: String::new() });
        assert!(matches!(failed, Err(Failure::NotKept { .. })) && orders.is_paused(2));
    }
}
