// SPDX-License-Identifier: GPL-3.0-or-later
//! Sites that register by themselves: how many there may be, and for how long.
//!
//! Until the operator approves a site, its reports count together with those of all such sites, in one layer with the limits of one
//! partner. So any number of made-up sites weighs no more than one.

use super::acts::Registered;
use super::clients::{Client, Clients, ClientsError, Role};
use super::quota::{PARTNER_INFLUENCE, PARTNER_RATE};
use bulkmark_ledger::random_bytes;
use bulkmark_types::remote_text;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The client under which all unapproved sites report. No client has this name, since parentheses are not allowed in one.
pub const UNAPPROVED: &str = "(unapproved)";

/// Unapproved sites at a time.
pub(super) const MOST_UNAPPROVED: usize = 1000;

/// Unapproved sites of one network: leading bits of an IPv4 address, those of an IPv6 address, and sites.
const OF_A_NETWORK: [(u32, u32, usize); 2] = [(24, 48, 4), (16, 32, 32)];

const DAY: u64 = 86_400;

/// Bytes of a site's own name; the server adds a hyphen and four digits, and a client's name has at most 64.
const MOST_NAME: usize = 59;

/// Bytes of an address for questions.
const MOST_CONTACT: usize = 200;

/// `registration`: the sites that may register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// None.
    #[default]
    Closed,
    /// All; they read at once, and report once they are approved.
    Approve,
    /// All; they read and report at once, in the layer of all unapproved sites.
    Open,
}

/// The wish of a site, as its request has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Wish {
    pub(super) name: String,
    #[serde(default)]
    pub(super) contact: String,
}

/// A site is not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotRegistered {
    /// The name is invalid.
    #[error("found the name {0:?}, expected 1 to {MOST_NAME} letters, digits, dots, underscores or hyphens")]
    Name(String),
    /// The contact is too long.
    #[error("found a contact of {0} bytes, expected at most {MOST_CONTACT} printable characters")]
    Contact(usize),
    /// Enough of them wait.
    #[error(
        "{MOST_UNAPPROVED} sites wait for approval already; ask the server's operator for a token (bulkmark client add)"
    )]
    Full,
    /// Enough of this network wait.
    #[error(
        "{0} sites of this network wait for approval already; ask the server's operator to approve them, or for a token (bulkmark client \
         add)"
    )]
    Network(usize),
}

/// The first bits of an address.
fn network(ip: IpAddr, v4: u32, v6: u32) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4((ip.to_bits() & u32::MAX << (32 - v4)).into()),
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & u128::MAX << (128 - v6)).into()),
    }
}

impl Client {
    /// Whether the operator added or approved it.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.registered.as_ref().is_none_or(|registered| registered.approved.is_some())
    }

    /// The client under which its reports count.
    #[must_use]
    pub fn counts_as(&self) -> &str {
        if self.is_approved() { &self.name } else { UNAPPROVED }
    }
}

impl Clients {
    /// The sites that wait for approval.
    pub fn unapproved(&self) -> impl Iterator<Item = (&Client, &Registered)> {
        let waiting = self.clients.iter().filter(|client| !client.is_approved());
        waiting.filter_map(|client| Some((client, client.registered.as_ref()?)))
    }

    /// Whether one more site may register from this address. Looks at each client once.
    pub(super) fn may_register(
        &self,
        wish: &Wish,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<(), NotRegistered> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if wish.name.is_empty() || wish.name.len() > MOST_NAME || !wish.name.chars().all(allowed) {
            return Err(NotRegistered::Name(wish.name.chars().take(MOST_NAME).collect()));
        }
        if wish.contact.len() > MOST_CONTACT || remote_text(&wish.contact) != wish.contact {
            return Err(NotRegistered::Contact(wish.contact.len()));
        }
        let waiting = || self.unapproved().map(|(_, site)| site).filter(|site| !site.is_over(now));
        for (v4, v6, most) in OF_A_NETWORK {
            let of = |from: Option<IpAddr>| from.map(|ip| network(ip, v4, v6));
            if waiting().filter(|site| of(site.from) == of(from)).count() >= most {
                return Err(NotRegistered::Network(most));
            }
        }
        if waiting().count() >= MOST_UNAPPROVED { Err(NotRegistered::Full) } else { Ok(()) }
    }

    /// Registers a site, and forgets those whose time is over. Returns its name, to which random digits were added so that nobody can
    /// take the name of another site, and its token.
    pub(super) fn register(
        &mut self,
        wish: &Wish,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<Result<(String, String), NotRegistered>, ClientsError> {
        self.forget(now);
        if let Err(why) = self.may_register(wish, from, now) {
            return Ok(Err(why));
        }
        let random = |reason| ClientsError::Io { path: "the system's random numbers".into(), reason };
        let name = loop {
            let digits = u16::from_le_bytes(random_bytes().map_err(random)?);
            let name = format!("{}-{digits:04x}", wish.name);
            if !self.clients.iter().any(|client| client.name == name) {
                break name;
            }
        };
        let grant = super::clients::Grant {
            role: Role::Report,
            max_influence: Some(PARTNER_INFLUENCE),
            quota: None,
            rate: Some(PARTNER_RATE),
            expires: None,
        };
        let token = self.add(&name, grant)?;
        self.withdrawn.retain(|withdrawn| withdrawn != UNAPPROVED);
        let contact = wish.contact.clone();
        let registered = Registered { at: now, from, contact, used: None, approved: None, approved_by: None };
        self.change(&name, |client| client.registered = Some(registered))?;
        Ok(Ok((name, token)))
    }

    /// Approves a site.
    ///
    /// # Errors
    /// When there is no such client, or it needs no approval.
    pub fn approve(&mut self, name: &str, by: &str, now: u64) -> Result<(), ClientsError> {
        let client = self.find(name)?;
        match &mut client.registered {
            Some(registered) if registered.approved.is_none() => {
                (registered.approved, registered.approved_by) = (Some(now), Some(by.to_owned()));
                Ok(())
            }
            _ => Err(ClientsError::Approved(name.to_owned())),
        }
    }

    /// Removes all unapproved sites, and has their reports withdrawn. Returns their number.
    pub fn remove_unapproved(&mut self) -> usize {
        let before = self.clients.len();
        self.clients.retain(Client::is_approved);
        self.withdrawn.retain(|withdrawn| withdrawn != UNAPPROVED);
        self.withdrawn.push(UNAPPROVED.to_owned());
        before - self.clients.len()
    }

    /// Whether anything is to be written: a site is over, or one of these used its token on another day than it says.
    pub(super) fn is_due(&self, used: &[String], now: u64) -> bool {
        let another_day =
            |site: &Registered| site.used.is_none_or(|used| used / DAY < now / DAY || used > now);
        self.unapproved()
            .any(|(client, site)| site.is_over(now) || (another_day(site) && used.contains(&client.name)))
    }

    /// Notes that these sites used their tokens, and forgets those whose time is over.
    pub(super) fn note_used(&mut self, used: &[String], now: u64) {
        for client in self.clients.iter_mut().filter(|client| used.contains(&client.name)) {
            if let Some(registered) = &mut client.registered {
                registered.used = Some(now);
            }
        }
        self.forget(now);
    }

    fn forget(&mut self, now: u64) {
        self.clients.retain(|client| client.registered.as_ref().is_none_or(|site| !site.is_over(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 20_000 * DAY;
    const SILENT: u64 = 30 * DAY;

    fn wish(name: &str) -> Wish {
        Wish { name: name.to_owned(), contact: String::new() }
    }

    fn register(clients: &mut Clients, n: u32, now: u64) -> Result<(String, String), NotRegistered> {
        clients.register(&wish("mx.example.org"), Some(IpAddr::V4(n.into())), now).unwrap()
    }

    #[test]
    fn a_network_has_few_places_and_all_together_have_a_bound() {
        let mut clients = Clients::default();
        let add = |clients: &mut Clients, n| register(clients, n, NOW);
        for n in 0..4 {
            add(&mut clients, 0x0a00_0000 + n).unwrap();
        }
        assert_eq!(add(&mut clients, 0x0a00_00ff), Err(NotRegistered::Network(4)));
        for n in 0..2000 {
            let _ = add(&mut clients, 0x0a00_0100 + n * 64);
        }
        assert_eq!(clients.unapproved().count(), 64, "of two /16");
        for n in 0..20_000 {
            let _ = add(&mut clients, n << 12);
        }
        assert_eq!(clients.unapproved().count(), MOST_UNAPPROVED);
        assert_eq!(add(&mut clients, 0xf000_0000), Err(NotRegistered::Full));
        clients.add("mx.example.org", super::super::clients::Grant::default()).unwrap();
        assert_eq!(clients.remove_unapproved(), MOST_UNAPPROVED);
        assert_eq!((clients.list().len(), clients.withdrawn()), (1, &[UNAPPROVED.to_owned()][..]));
        add(&mut clients, 1).unwrap();
        assert!(clients.withdrawn().is_empty(), "or its reports would be withdrawn, too");
    }

    #[test]
    fn a_token_that_nobody_uses_ends_and_an_approved_one_does_not() {
        let mut clients = Clients::default();
        let names: Vec<_> = (0..3).map(|n| register(&mut clients, n << 16, NOW).unwrap().0).collect();
        let left = |clients: &Clients| clients.list().iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        assert!(!clients.is_due(&[], NOW + DAY - 1) && clients.is_due(&names[..1], NOW + 60));
        clients.note_used(&names[..1], NOW + 60);
        assert!(!clients.is_due(&names[..1], NOW + 120), "once a day is enough");
        clients.approve(&names[1], "anna", NOW + 90).unwrap();
        assert!(matches!(clients.approve(&names[1], "anna", NOW), Err(ClientsError::Approved(_))));
        assert!(clients.is_due(&[], NOW + DAY));
        clients.note_used(&[], NOW + DAY);
        assert_eq!(left(&clients), names[..2]);
        clients.note_used(&[], NOW + 60 + SILENT);
        assert_eq!(left(&clients), names[1..2]);
        assert_eq!((clients.list()[0].counts_as(), clients.list()[0].is_approved()), (&*names[1], true));
    }

    #[test]
    fn a_site_chooses_no_more_than_the_beginning_of_its_name() {
        let mut clients = Clients::default();
        let (name, token) = register(&mut clients, 1, NOW).unwrap();
        assert!(name.len() == "mx.example.org-".len() + 4 && token.starts_with("bulkmark_"), "{name}");
        assert_eq!(clients.list()[0].counts_as(), UNAPPROVED);
        for name in ["", "a b", UNAPPROVED, &"x".repeat(60)] {
            let refused = clients.may_register(&wish(name), None, NOW);
            assert!(matches!(refused, Err(NotRegistered::Name(_))), "{name}");
        }
        let contact = "a\u{1b}[31m".to_owned();
        let refused = clients.may_register(&Wish { name: "a".to_owned(), contact }, None, NOW);
        assert!(matches!(refused, Err(NotRegistered::Contact(_))));
    }
}
