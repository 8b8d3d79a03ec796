// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders of all sites of a federation, as servers keep and exchange them, and the rule by which they merge.
//!
//! Each server has a list with the orders of its clients, which it alone changes; of each list, everybody keeps the highest version. So the
//! result does not depend on the order in which lists arrive. A machine whose orders are on several lists, because it changed its server,
//! has those that a server took last.

use super::hex;
use super::order::{Allowance, MAX_TEXT, Pause};
use bulkmark_counts::history::fleet_mark::is_name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long an order holds at other sites after its site confirmed it last, in seconds.
pub const LONGEST: u64 = 90 * DAY;

/// How far times may be ahead of the local clock, and the age from which a confirmation is stored again, in seconds.
pub(super) const DAY: u64 = 86_400;

/// Maximum of orders of one site at a server, and of one machine in any list.
pub const MOST_OF_SITE: usize = 1000;

/// Maximum of all orders; partners can use half of it.
pub(super) const MOST: usize = 10_000;

/// Maximum of their bytes, about; partners can use half of it.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// Maximum of the bytes of one site's orders at a server, about: as great a share as that of their number.
const MOST_BYTES_OF_SITE: usize = MOST_BYTES / (MOST / MOST_OF_SITE);

/// Bytes of lists that a machine reads in a second, and a client of a server makes it send to all others, on average: so that nobody who changes
/// an order again and again keeps all sites busy.
pub const BYTES_A_SECOND: usize = 256 << 10;

/// Maximum of lists, which is one of servers.
const MOST_LISTS: usize = 32;

/// Maximum of signatures of an order; a message has fewer.
const MOST_SIGNATURES: usize = 100;

/// The kind of a site, which decides where its orders hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The operator, at a server: everywhere.
    Operator,
    /// A client without limits: everywhere.
    Own,
    /// A client with limits: at other sites only together with the order of another partner.
    Partner,
}

impl Standing {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Own => "own",
            Self::Partner => "partner",
        }
    }
}

/// The orders of one machine of a site.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SiteOrders {
    /// When its server received or confirmed them, in seconds since 1970.
    pub at: u64,
    /// The name of the client, or of the server whose operator gives them.
    pub site: String,
    /// The number of the machine, which it chose at random.
    #[serde(with = "hex")]
    pub machine: u64,
    /// The kind of the site.
    pub standing: Standing,
    /// A pause at all sites; only an operator's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Mailings that are never refused.
    #[serde(default)]
    pub allowed: Vec<Allowance>,
    /// Mailings whose orders by sites the operator revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<Allowance>,
}

impl SiteOrders {
    pub(super) fn key(&self) -> (&str, u64) {
        (&self.site, self.machine)
    }

    /// Returns the end of an order: its own end, or the longest time after the last confirmation.
    pub(super) fn end(&self, until: Option<u64>) -> u64 {
        let bound = self.at.saturating_add(LONGEST);
        until.map_or(bound, |until| until.min(bound))
    }

    fn is_empty(&self) -> bool {
        self.pause.is_none() && self.allowed.is_empty() && self.revoked.is_empty()
    }

    /// Returns the number of its orders; one if it has none, since it takes room.
    fn number(&self) -> usize {
        (self.allowed.len() + self.revoked.len()).max(1)
    }

    fn bytes(&self) -> usize {
        let order =
            |order: &Allowance| 100 + order.signatures.len() * 35 + order.by.len() + order.reason.len();
        200 + self.allowed.iter().chain(&self.revoked).map(order).sum::<usize>()
    }

    /// Whether its contents have the form that this program writes, within bounds.
    fn is_sound(&self) -> bool {
        let is_short = |text: &str| text.len() <= MAX_TEXT;
        let pause = self.pause.as_ref().is_none_or(|pause| is_short(&pause.by) && is_short(&pause.reason));
        pause
            && is_name(&self.site)
            && self.allowed.len().max(self.revoked.len()) <= MOST_OF_SITE
            && self.allowed.iter().chain(&self.revoked).all(is_sound)
    }
}

/// Whether an order from outside has valid signatures and short texts.
pub(super) fn is_sound(order: &Allowance) -> bool {
    let signatures = order.signatures.len();
    (1..=MOST_SIGNATURES).contains(&signatures)
        && order.parsed().count() == signatures
        && order.by.len().max(order.reason.len()) <= MAX_TEXT
}

/// Returns number and bytes of the orders of machines.
fn size<'a>(sites: impl Iterator<Item = &'a SiteOrders>) -> (usize, usize) {
    sites.fold((0, 0), |(number, bytes), site| (number + site.number(), bytes + site.bytes()))
}

/// The orders that one server took.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ServerList {
    /// Its version, which grows with each change and is about the time of the change in milliseconds since 1970.
    pub version: u64,
    /// The number of the server.
    #[serde(with = "hex")]
    pub server: u64,
    /// The machines, by site and number.
    pub sites: Vec<SiteOrders>,
}

/// The lists of all servers, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLists {
    servers: Vec<ServerList>,
}

/// Lists from outside are refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// They are not in this program's form.
    #[error("orders that cannot be read: {0}")]
    Form(String),
    /// There are too many.
    #[error("more than {MOST} orders, {MOST_BYTES} bytes of them, or {MOST_LISTS} servers")]
    Many,
    /// An order is damaged or too long.
    #[error("orders with wrong signatures, names or texts, or more than {MOST_OF_SITE} of one machine")]
    Order,
}

/// The orders of a client's machine are refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The site has too many.
    #[error(
        "a site can have {MOST_OF_SITE} orders, with {MOST_BYTES_OF_SITE} bytes; remove some (bulkmark allow --list, --remove)"
    )]
    Site,
    /// There are too many in all.
    #[error("the server has no room for more orders ({MOST} in all, half of them of partners)")]
    All,
}

impl ServerLists {
    /// Reads lists from outside.
    ///
    /// # Errors
    /// If they have another form, or exceed a bound.
    pub fn parse(json: &[u8]) -> Result<Self, Unsound> {
        let all: Self = serde_json::from_slice(json).map_err(|e| Unsound::Form(e.to_string()))?;
        let (number, bytes) = size(all.machines());
        if number > MOST || bytes > MOST_BYTES || all.servers.len() > MOST_LISTS {
            return Err(Unsound::Many);
        }
        if all.machines().all(SiteOrders::is_sound) { Ok(all) } else { Err(Unsound::Order) }
    }

    fn machines(&self) -> impl Iterator<Item = &SiteOrders> {
        self.servers.iter().flat_map(|list| &list.sites)
    }

    /// Returns the orders of each machine: those that a server took last.
    #[must_use]
    pub fn latest(&self) -> Vec<&SiteOrders> {
        let mut latest: BTreeMap<_, &SiteOrders> = BTreeMap::new();
        for site in self.machines() {
            latest.entry(site.key()).and_modify(|known| *known = (*known).max(site)).or_insert(site);
        }
        latest.into_values().collect()
    }

    /// Takes over each list of which it has no higher version, except those of server `own` and those from the future. Returns whether
    /// something changed, and the number of lists for which there was no room.
    pub fn merge(&mut self, theirs: Self, own: u64, now: u64) -> (bool, usize) {
        let (mut changed, mut left_out) = (false, 0);
        let latest = now.saturating_add(DAY);
        let is_past = |list: &ServerList| {
            list.version / 1000 <= latest && list.sites.iter().all(|site| site.at <= latest)
        };
        for list in theirs.servers.into_iter().filter(|list| list.server != own && is_past(list)) {
            let place = self.servers.binary_search_by_key(&list.server, |known| known.server);
            if place.is_ok_and(|i| self.servers[i] >= list) {
                continue;
            }
            let others = self.servers.iter().filter(|known| known.server != list.server);
            let (number, bytes) = size(others.flat_map(|known| &known.sites).chain(&list.sites));
            if number > MOST || bytes > MOST_BYTES || place.is_err() && self.servers.len() >= MOST_LISTS {
                left_out += 1;
                continue;
            }
            match place {
                Ok(i) => self.servers[i] = list,
                Err(i) => self.servers.insert(i, list),
            }
            changed = true;
        }
        (changed, left_out)
    }

    /// Puts the orders of a machine into the list of server `own`, under the present time. Returns whether something changed: the same orders
    /// are confirmed once a day.
    ///
    /// # Errors
    /// If there is no room.
    pub fn put(&mut self, own: u64, orders: SiteOrders) -> Result<bool, Full> {
        let (now, key) = (orders.at, (orders.site.clone(), orders.machine));
        let is_it = |site: &SiteOrders| site.key() == (&*key.0, key.1);
        let known = self.latest().into_iter().find(|site| is_it(site)).map(|site| site.at);
        // Above all others, though the clock of the server that took them is ahead.
        let at = known.map_or(now, |known| now.max(known.saturating_add(1)));
        let same = |site: &SiteOrders| SiteOrders { at: site.at, ..orders.clone() } == *site;
        let place = self.list_of(own).sites.iter().position(is_it);
        let is_there = place
            .map(|i| &self.list_of(own).sites[i])
            .is_some_and(|site| same(site) && Some(site.at) == known && now < site.at.saturating_add(DAY));
        let is_elsewhere = self.is_elsewhere(own, &key);
        if is_there || place.is_none() && orders.is_empty() && !is_elsewhere {
            return Ok(false);
        }
        self.has_room(&orders)?;
        let sites = &mut self.list_of_mut(own, now).sites;
        sites.retain(|site| !is_it(site));
        // Without orders it is needed only to end those on another list.
        if !orders.is_empty() || is_elsewhere {
            let i = sites.partition_point(|site| site.key() < (&*key.0, key.1));
            sites.insert(i, SiteOrders { at, ..orders });
        }
        Ok(true)
    }

    fn has_room(&self, orders: &SiteOrders) -> Result<(), Full> {
        let is_partner = orders.standing == Standing::Partner;
        let others = || self.machines().filter(|site| site.key() != orders.key()).chain([orders]);
        let of_site = size(others().filter(|site| site.site == orders.site));
        let is_over = of_site.0 > MOST_OF_SITE || of_site.1 > MOST_BYTES_OF_SITE;
        if orders.standing != Standing::Operator && is_over {
            return Err(Full::Site);
        }
        let (number, bytes) = size(others().filter(|site| !is_partner || site.standing == Standing::Partner));
        let share = if is_partner { 2 } else { 1 };
        if number > MOST / share || bytes > MOST_BYTES / share { Err(Full::All) } else { Ok(()) }
    }

    /// Whether another list has orders of this machine.
    fn is_elsewhere(&self, own: u64, (site, machine): &(String, u64)) -> bool {
        let others = self.servers.iter().filter(|list| list.server != own).flat_map(|list| &list.sites);
        others.filter(|other| !other.is_empty()).any(|other| other.key() == (&**site, *machine))
    }

    /// Removes orders that have ended, and from the list of server `own` those of former clients. `standing` returns a client's present kind,
    /// which the orders get. Returns whether something changed.
    pub fn tidy(&mut self, own: u64, standing: impl Fn(&SiteOrders) -> Option<Standing>, now: u64) -> bool {
        let is_over = |at: u64| at.saturating_add(LONGEST) <= now;
        let before = self.servers.len();
        self.servers.retain(|list| list.server == own || !is_over(list.version / 1000));
        let keeps = |site: &SiteOrders| {
            let is_needed = !site.is_empty() || self.is_elsewhere(own, &(site.site.clone(), site.machine));
            standing(site).filter(|_| is_needed && !is_over(site.at))
        };
        let kept = |site: &SiteOrders| Some(SiteOrders { standing: keeps(site)?, ..site.clone() });
        let sites: Vec<_> = self.list_of(own).sites.iter().filter_map(kept).collect();
        let is_changed = sites != self.list_of(own).sites;
        if is_changed {
            self.list_of_mut(own, now).sites = sites;
        }
        is_changed || before != self.servers.len()
    }

    fn list_of(&self, own: u64) -> &ServerList {
        static NONE: ServerList = ServerList { version: 0, server: 0, sites: Vec::new() };
        self.servers.iter().find(|list| list.server == own).unwrap_or(&NONE)
    }

    /// Returns the list of server `own`, in its next version.
    fn list_of_mut(&mut self, own: u64, now: u64) -> &mut ServerList {
        let place = self.servers.binary_search_by_key(&own, |known| known.server);
        let i = place.unwrap_or_else(|i| {
            self.servers.insert(i, ServerList { version: 0, server: own, sites: Vec::new() });
            i
        });
        let list = &mut self.servers[i];
        list.version = list.version.saturating_add(1).max(now.saturating_mul(1000));
        list
    }

    /// Returns the same without authors and reasons.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        for site in self.servers.iter_mut().flat_map(|list| &mut list.sites) {
            for order in site.allowed.iter_mut().chain(&mut site.revoked) {
                (order.by, order.reason) = (String::new(), String::new());
            }
            if let Some(pause) = &mut site.pause {
                (pause.by, pause.reason) = (String::new(), String::new());
            }
        }
        self
    }
}

#[cfg(test)]
#[path = "server_lists_tests.rs"]
mod tests;
