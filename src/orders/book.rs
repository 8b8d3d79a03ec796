// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders in force, and their file.

use super::failure::{Failure, MOST};
use super::federation::Federation;
use super::mailings::Mailings;
use super::order::{All, Allowance, Forgotten, Pause};
use super::post::Post;
use super::view::{SiteOrder, View};
use arc_swap::ArcSwap;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::random_bytes;
use bulkmark_policy::{Allowed, Counts};
use bulkmark_signature::Signatures;
use bulkmark_signature::near::Seen;
use bulkmark_verdict::Inquiry;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The name of the file in the state directory.
const FILE: &str = "orders.json";

/// The name for a file that cannot be read.
const DAMAGED: &str = "orders.json.damaged";

/// Readable by the daemon and its group, whose commands read it when no daemon runs.
const MODE: u32 = 0o640;

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

/// The file: the orders, and the number of this machine, which is chosen once.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    #[serde(flatten)]
    all: All,
}

impl Stored {
    fn machine(&self) -> Option<u64> {
        self.machine.as_ref().and_then(|number| u64::from_str_radix(number, 16).ok())
    }
}

/// All orders of a daemon: its own, and those of a federation.
#[derive(Debug)]
pub struct Orders {
    state_dir: PathBuf,
    /// The number by which other machines know this one.
    machine: u64,
    /// Whether that number is in the file, as it is since the first order.
    is_numbered: AtomicBool,
    in_force: ArcSwap<InForce>,
    /// The orders of other sites.
    pub federation: Federation,
    /// The name under which a server sends its operator's orders to all sites; none for a milter.
    server: Option<String>,
    /// Held while the orders are changed and written.
    changing: Mutex<()>,
    /// Notified when they changed.
    changed: watch::Sender<()>,
}

impl Orders {
    /// Reads the orders in this state directory. If they cannot be read there are none, and this is logged.
    #[must_use]
    pub fn open(state_dir: &Path) -> Self {
        let stored = Self::read(state_dir).unwrap_or_else(|e| {
            let path = state_dir.join(FILE);
            log::warn!(
                "{}: no pause and no allowed mailing is known (kept as {DAMAGED}): {e}",
                path.display()
            );
            let _ = StateDirectory::open(state_dir).and_then(|directory| directory.rename(FILE, DAMAGED));
            Stored::default()
        });
        let machine = stored.machine();
        let number = machine.unwrap_or_else(|| random_bytes().map_or(0, u64::from_le_bytes));
        let federation = Federation::open(state_dir, number);
        let is_new = machine.is_none() && stored.all != All::default();
        let orders =
            Self { state_dir: state_dir.to_owned(), machine: number, ..Self::with(stored.all, federation) };
        orders.is_numbered.store(machine.is_some(), Ordering::Relaxed);
        // Other machines must know it by the same number after each start.
        if is_new && let Err(e) = orders.change(0, |_| Ok(())) {
            log::warn!("{e}");
        }
        orders
    }

    /// The same for a server, which sends its operator's orders to all sites under this name.
    #[must_use]
    pub fn of_server(state_dir: &Path, name: String) -> Self {
        let orders = Self { server: Some(name), ..Self::open(state_dir) };
        if let Err(e) = orders.change(bulkmark_ledger::now(), |_| Ok(())) {
            log::warn!("{e}");
        }
        orders
    }

    fn read(state_dir: &Path) -> io::Result<Stored> {
        match StateDirectory::open(state_dir).and_then(|directory| directory.read(FILE)) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Stored::default()),
            Err(e) => Err(e),
            Ok(json) => serde_json::from_slice(&json).map_err(io::Error::from),
        }
    }

    /// Returns the orders stored in this state directory, which are not changed.
    ///
    /// # Errors
    /// If this machine's cannot be read.
    pub fn stored(state_dir: &Path) -> io::Result<Self> {
        let stored = Self::read(state_dir)?;
        let federation = Federation::open(state_dir, stored.machine().unwrap_or_default());
        Ok(Self::with(stored.all, federation))
    }

    /// Wraps orders that a command received from the daemon.
    #[must_use]
    pub fn of(all: All, others: Vec<SiteOrder>) -> Self {
        Self::with(all, Federation::of(View::of(others)))
    }

    fn with(all: All, federation: Federation) -> Self {
        let (state_dir, in_force) = (PathBuf::new(), ArcSwap::from_pointee(InForce::new(all)));
        let (changing, changed) = (Mutex::new(()), watch::Sender::new(()));
        let is_numbered = AtomicBool::new(false);
        Self { state_dir, machine: 0, is_numbered, in_force, federation, server: None, changing, changed }
    }

    /// Returns this machine's orders in force at this time, in seconds since 1970, and the pause of a federation.
    #[must_use]
    pub fn all(&self, now: u64) -> All {
        let own = self.own(now);
        let pause = own.pause.or_else(|| self.federation.view().pause(now).cloned());
        All { pause, ..own }
    }

    /// Returns this machine's orders in force at this time.
    fn own(&self, now: u64) -> All {
        self.in_force.load().all.clone().at(now)
    }

    /// Returns the orders for a milter's server; none if nobody ever gave one here.
    pub(super) fn post(&self, now: u64) -> Option<Post> {
        let is_known = self.is_numbered.load(Ordering::Relaxed);
        is_known.then(|| Post { machine: self.machine, allowed: self.for_others(now).allowed })
    }

    /// Returns this machine's orders that servers may receive.
    fn for_others(&self, now: u64) -> All {
        let mut own = self.own(now);
        own.allowed.retain(|order| !order.here);
        own
    }

    /// Subscribes to changes of this machine's orders.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Confirms a server's orders to all sites.
    ///
    /// # Errors
    /// As [`Federation::take`].
    pub fn confirm(&self, now: u64) -> Result<(), Failure> {
        match &self.server {
            None => Ok(()),
            Some(name) => self.federation.give(name, self.for_others(now), now),
        }
    }

    /// Whether there is a pause at this time.
    #[must_use]
    pub fn is_paused(&self, now: u64) -> bool {
        let in_force = self.in_force.load();
        let is_own =
            in_force.all.pause.as_ref().is_some_and(|pause| pause.until.is_none_or(|until| until > now));
        is_own || self.federation.view().pause(now).is_some()
    }

    /// Returns by whose order a message with these signatures and counts is never refused at this time, if so. Costs one lookup for each
    /// signature, and more only for mailings with one of them.
    #[must_use]
    pub fn allows(&self, signatures: &Signatures, counted: Option<&Seen>, now: u64) -> Option<Allowed> {
        let in_force = self.in_force.load();
        let holds = |i: usize| in_force.all.allowed[i].until.is_none_or(|until| until > now);
        if !in_force.allowed.find(signatures, counted, holds).is_empty() {
            return Some(Allowed::Here);
        }
        let site = self.federation.view().allows(signatures, counted, now)?;
        Some(Allowed::By(site.into()))
    }

    /// Returns the counts of a message with these signatures, minus the counts that its mailing had when it was forgotten. Those were of
    /// incoming mail, so nothing is taken off from outbound mail.
    #[must_use]
    pub fn without_forgotten(
        &self,
        signatures: &Signatures,
        inquiry: &Inquiry<'_>,
        counts: Counts,
        now: u64,
    ) -> Counts {
        if inquiry.is_outbound() {
            return counts;
        }
        let in_force = self.in_force.load();
        let mut left = counts;
        for i in in_force.forgotten.find(signatures, inquiry.seen(), |_| true) {
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
        self.change(allowance.since, |all| {
            all.revoked.retain(|revoked| revoked.name() != allowance.name());
            put(&mut all.allowed, allowance)
        })
    }

    /// Ends the permission of the mailing whose name has this prefix, and returns it. At a server, an order of sites that the operator did not
    /// give is revoked by `revocation`, which gets its name.
    ///
    /// # Errors
    /// [`Failure::Unknown`] and [`Failure::Unclear`]; [`Failure::NotKept`] if it is removed but not from the file.
    pub fn remove(&self, prefix: &str, revocation: Allowance) -> Result<Allowance, Failure> {
        let now = revocation.since;
        self.change(now, |all| match take(&mut all.allowed, prefix) {
            Err(Failure::Unknown(_)) if self.server.is_some() => {
                let name = self.name_at_sites(prefix, now)?;
                let revoked = Allowance { signatures: vec![name], ..revocation };
                put(&mut all.revoked, revoked.clone())?;
                Ok(revoked)
            }
            other => other,
        })
    }

    /// Returns the name of the one mailing of other sites that begins with this prefix.
    fn name_at_sites(&self, prefix: &str, now: u64) -> Result<String, Failure> {
        let others = self.federation.list(now);
        let names: BTreeSet<_> = others.iter().map(|order| order.mailing.name()).collect();
        let mut found = names.into_iter().filter(|name| name.starts_with(prefix));
        match (found.next(), found.next()) {
            (Some(name), None) => Ok(name.to_owned()),
            (Some(_), Some(_)) => Err(Failure::Unclear(prefix.to_owned())),
            (None, _) => Err(Failure::Unknown(prefix.to_owned())),
        }
    }

    /// Changes the orders in memory and in their file; an error of `change` leaves them unchanged.
    fn change<T>(&self, now: u64, change: impl FnOnce(&mut All) -> Result<T, Failure>) -> Result<T, Failure> {
        let _turn = self.changing.lock();
        let mut all = self.own(now);
        let changed = change(&mut all)?;
        let stored = Stored { machine: Some(format!("{:016x}", self.machine)), all };
        let json = serde_json::to_vec(&stored).map_err(io::Error::from);
        self.in_force.store(Arc::new(InForce::new(stored.all)));
        self.is_numbered.store(true, Ordering::Relaxed);
        self.changed.send_replace(());
        let write = |json: Vec<u8>| StateDirectory::open(&self.state_dir)?.replace(FILE, &json, MODE);
        let path = || self.state_dir.join(FILE).display().to_string();
        json.and_then(write).map_err(|error| Failure::NotKept { path: path(), error })?;
        self.confirm(now)?;
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
        Allowance { signatures, since: 100, until, by: "root".to_owned(), ..Allowance::default() }
    }

    #[test]
    fn orders_end_in_time_and_outlive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let orders = Orders::open(directory.path());
        let pause =
            |until| Pause { since: 100, until, by: "root".to_owned(), reason: "why".to_owned(), site: None };
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
        let remove = |prefix| orders.remove(prefix, allowance("", None));
        assert!(matches!(remove(""), Err(Failure::Unclear(_))));
        assert!(matches!(remove("c"), Err(Failure::Unknown(_))));
        assert_eq!(remove("aa").unwrap(), allowance("a", Some(900)));
        assert!(matches!(orders.allow(allowance("?", None)), Err(Failure::NoSignature)));
        let many = |n: usize| Allowance { signatures: vec![format!("{n:032x}")], ..allowance("a", None) };
        let orders = Orders::of(All { allowed: (0..MOST).map(many).collect(), ..All::default() }, Vec::new());
        assert!(matches!(orders.allow(allowance("c", None)), Err(Failure::Full)));
    }

    #[test]
    fn an_order_that_cannot_be_written_is_in_force() {
        let directory = tempfile::tempdir().unwrap();
        let orders = Orders::open(&directory.path().join("gone"));
        let failed = orders.pause(Pause { since: 1, ..Pause::default() });
        assert!(matches!(failed, Err(Failure::NotKept { .. })) && orders.is_paused(2));
    }
}
