// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders of a federation at one machine, and their file.

use super::failure::Failure;
use super::order::{All, Allowance, author};
use super::post::Post;
use super::server_lists::{ServerLists, SiteOrders, Standing};
use super::view::{SiteOrder, State, View};
use arc_swap::ArcSwap;
use bulkmark_ledger::directory::StateDirectory;
use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// The name of the file in the state directory.
const FILE: &str = "federation-orders.json";

/// The mode of the file; see the orders of this machine.
const MODE: u32 = 0o640;

/// Lists as they are sent, with their name.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// A hash of the content.
    pub name: String,
    /// The content.
    pub json: Bytes,
}

impl Document {
    fn new(lists: &ServerLists) -> Self {
        let json = serde_json::to_vec(lists).unwrap_or_default();
        Self { name: name_of(&json), json: json.into() }
    }
}

/// Returns the name of lists with this content.
#[must_use]
pub(super) fn name_of(json: &[u8]) -> String {
    Sha256::digest(json)[..8].iter().fold(String::new(), |mut name, byte| {
        // Writing to a String does not fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// All orders in the two forms in which a server sends them.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// For approved clients.
    pub whole: Document,
    /// Without authors and reasons.
    pub without_texts: Document,
}

impl Published {
    fn new(lists: &ServerLists) -> Self {
        let without_texts = Document::new(&lists.clone().without_texts());
        Self { whole: Document::new(lists), without_texts }
    }
}

/// The orders of all sites, as this machine knows them.
#[derive(Debug)]
pub struct Federation {
    state_dir: PathBuf,
    /// The number of this machine.
    machine: u64,
    known: Mutex<Known>,
    view: ArcSwap<View>,
    published: watch::Sender<Arc<Published>>,
    /// The reasons why orders are not exchanged, by server.
    troubles: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug, Default)]
struct Known {
    lists: ServerLists,
    /// The name of this machine's site at its server.
    site: Option<String>,
}

impl Federation {
    /// Reads the orders that the machine with this number stored. If they cannot be read there are none, and this is logged.
    pub(super) fn open(state_dir: &Path, machine: u64) -> Self {
        let lists = Self::stored(state_dir).unwrap_or_else(|e| {
            let path = state_dir.join(FILE);
            log::warn!(
                "{}: no orders of other sites are known until a server sends them: {e}",
                path.display()
            );
            ServerLists::default()
        });
        let view = View::new(&lists, machine, None);
        let published = watch::Sender::new(Arc::new(Published::new(&lists)));
        let known = Mutex::new(Known { lists, site: None });
        Self { state_dir: state_dir.to_owned(), machine, known, published, ..Self::of(view) }
    }

    fn stored(state_dir: &Path) -> io::Result<ServerLists> {
        match StateDirectory::open(state_dir).and_then(|directory| directory.read(FILE)) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(ServerLists::default()),
            Err(e) => Err(e),
            Ok(json) => ServerLists::parse(&json).map_err(io::Error::other),
        }
    }

    /// Wraps the orders of other sites that a command received from the daemon.
    pub(super) fn of(view: View) -> Self {
        Self {
            state_dir: PathBuf::new(),
            machine: 0,
            known: Mutex::default(),
            view: ArcSwap::from_pointee(view),
            published: watch::Sender::default(),
            troubles: Mutex::default(),
        }
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Returns the kind that this machine's site has at its server; none if no server has its orders.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        let known = self.known.lock();
        known.lists.latest().into_iter().find(|site| site.machine == self.machine).map(|site| site.standing)
    }

    /// Returns the orders of other sites that have not ended at `now`.
    #[must_use]
    pub fn list(&self, now: u64) -> Vec<SiteOrder> {
        self.view.load().list(now)
    }

    /// Returns the names of those of this machine's orders that an operator revoked: they hold here alone.
    #[must_use]
    pub fn revoked(&self, own: &[Allowance]) -> Vec<String> {
        if self.standing() == Some(Standing::Operator) {
            return Vec::new();
        }
        let view = self.view.load();
        own.iter().filter(|order| view.is_revoked(order)).map(|order| order.name().to_owned()).collect()
    }

    /// Returns the numbers of these orders by state.
    #[must_use]
    pub fn numbers(&self, now: u64) -> BTreeMap<State, usize> {
        self.view.load().numbers(now)
    }

    /// Subscribes to the orders in the forms in which a server sends them.
    #[must_use]
    pub fn published(&self) -> watch::Receiver<Arc<Published>> {
        self.published.subscribe()
    }

    /// Returns the reasons why orders are not exchanged, for people.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        self.troubles.lock().values().cloned().collect()
    }

    /// Records whether orders are exchanged with a server, and logs a new reason against it.
    pub(super) fn set_trouble(&self, server: &str, trouble: Option<String>) {
        let mut troubles = self.troubles.lock();
        match trouble {
            Some(why) if troubles.get(server) != Some(&why) => {
                log::warn!("{why}");
                troubles.insert(server.to_owned(), why);
            }
            Some(_) => (),
            None if troubles.remove(server).is_some() => log::info!("orders are exchanged again"),
            None => (),
        }
    }

    /// Records the name that this machine's site has at its server.
    pub(super) fn set_site(&self, site: String) {
        let mut known = self.known.lock();
        if known.site.as_ref() != Some(&site) {
            known.site = Some(site);
            self.show(&known);
        }
    }

    /// Replaces all orders by those of the server that a milter follows, without those from the future, which would not end.
    ///
    /// # Errors
    /// If they are in force, but not stored.
    pub(super) fn replace(&self, theirs: ServerLists, now: u64) -> Result<(), Failure> {
        let mut new = ServerLists::default();
        new.merge(theirs, self.machine, now);
        self.change(|known| {
            let changed = *known != new;
            *known = new;
            changed
        })
    }

    /// Adds the orders that a server's peer knows, and returns the number of its servers for which there was no room.
    ///
    /// # Errors
    /// If they are in force, but not stored.
    pub(super) fn merge(&self, theirs: ServerLists, now: u64) -> Result<usize, Failure> {
        let mut left_out = 0;
        self.change(|known| {
            let changed;
            (changed, left_out) = known.merge(theirs, self.machine, now);
            changed
        })?;
        Ok(left_out)
    }

    /// Takes the orders of a client's machine at its server.
    ///
    /// # Errors
    /// If there is no room for them, or they could not be stored.
    pub fn take(&self, site: &str, standing: Standing, post: Post, now: u64) -> Result<(), Failure> {
        let Post { machine, allowed } = post;
        let site = site.to_owned();
        self.put(SiteOrders { at: now, site, machine, standing, pause: None, allowed, revoked: Vec::new() })
    }

    /// Publishes the orders of a server's operator under the server's name.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn give(&self, site: &str, own: All, now: u64) -> Result<(), Failure> {
        let (standing, machine) = (Standing::Operator, self.machine);
        let All { pause, allowed, revoked, .. } = own;
        self.put(SiteOrders { at: now, site: site.to_owned(), machine, standing, pause, allowed, revoked })
    }

    fn put(&self, orders: SiteOrders) -> Result<(), Failure> {
        let mut done = Ok(());
        self.change(|known| {
            let put = known.put(self.machine, orders);
            let changed = *put.as_ref().unwrap_or(&false);
            done = put.map(drop);
            changed
        })?;
        Ok(done?)
    }

    /// Removes orders that have ended, and at a server those of former clients: `standing` returns the kind of a present one.
    ///
    /// # Errors
    /// If that was not stored.
    pub fn tidy(&self, standing: impl Fn(&str) -> Option<Standing>, now: u64) -> Result<(), Failure> {
        let standing = |site: &SiteOrders| match site.standing {
            Standing::Operator => Some(Standing::Operator),
            Standing::Own | Standing::Partner => standing(&site.site),
        };
        self.change(|known| known.tidy(self.machine, standing, now))
    }

    /// Changes the orders in memory and in their file; `change` returns whether there is a change. A file that could not be written is written
    /// at the next change.
    fn change(&self, change: impl FnOnce(&mut ServerLists) -> bool) -> Result<(), Failure> {
        let mut known = self.known.lock();
        if !change(&mut known.lists) {
            return Ok(());
        }
        self.show(&known);
        let published = Arc::new(Published::new(&known.lists));
        self.published.send_replace(Arc::clone(&published));
        let write = |json| StateDirectory::open(&self.state_dir)?.replace(FILE, json, MODE);
        let path = || self.state_dir.join(FILE).display().to_string();
        write(&published.whole.json).map_err(|error| Failure::NotKept { path: path(), error })
    }

    fn show(&self, known: &Known) {
        let view = Arc::new(View::new(&known.lists, self.machine, known.site.as_deref()));
        let (before, now) = (self.view.swap(Arc::clone(&view)), bulkmark_ledger::now());
        match (before.pause(now), view.pause(now)) {
            (None, Some(pause)) => log::warn!(
                "paused at all sites: nothing is refused, server={} {}",
                pause.site.as_deref().unwrap_or_default(),
                author(&pause.by, &pause.reason)
            ),
            (Some(_), None) => log::warn!("the pause at all sites has ended"),
            _ => (),
        }
    }
}
