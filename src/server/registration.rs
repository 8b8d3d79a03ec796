// SPDX-License-Identifier: GPL-3.0-or-later
//! Sites that register by themselves: how many there may be, and for how long.
//!
//! Until the operator approves a site, its reports count together with those of all unapproved sites, in one layer with the limits of one
//! partner. So any number of fake sites weighs no more than one.

use super::acts::Registered;
use super::clients::{Client, Clients, ClientsError, Role};
use super::quota::{PARTNER_INFLUENCE, PARTNER_RATE};
use bulkmark_ledger::random_bytes;
use bulkmark_types::remote_text;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The client under which all unapproved sites report. No client has this name, since parentheses are not allowed in one.
pub const UNAPPROVED: &str = "(unapproved)";

/// Maximum of unapproved sites.
pub(super) const MOST_UNAPPROVED: usize = 1000;

/// Maximum of unapproved sites of one network: leading bits of an IPv4 address, those of an IPv6 address, and sites.
const OF_A_NETWORK: [(u32, u32, usize); 2] = [(24, 48, 4), (16, 32, 32)];

const DAY: u64 = 86_400;

/// Maximum length of a site's own name; the server adds a hyphen and four digits, and a client's name has at most 64 bytes.
const MOST_NAME: usize = 59;

/// Maximum length of an address for questions.
const MOST_CONTACT: usize = 200;

/// `registration`: the sites that may register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// None.
    #[default]
    Closed,
    /// All; they read at once, and report after approval.
    Approve,
    /// All; they read and report at once, in the layer of all unapproved sites.
    Open,
}

/// The request of a site.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct RegistrationRequest {
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
    /// The maximum of sites waits for approval.
    #[error(
        "{MOST_UNAPPROVED} sites wait for approval already; ask the server's operator for a token (bulkmark client add)"
    )]
    Full,
    /// The maximum of sites of this network waits for approval.
    #[error(
        "{0} sites of this network wait for approval already; ask the server's operator to approve them, or for a token (bulkmark client \
         add)"
    )]
    Network(usize),
    /// The reports of unapproved sites are being withdrawn; those of a new site would be, too.
    #[error(
        "the server's operator has just removed all sites that wait for approval; try again in a few minutes"
    )]
    Withdrawn,
}

/// Returns the first bits of an address.
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

    /// Returns the client under which its reports count.
    #[must_use]
    pub fn counts_as(&self) -> &str {
        if self.is_approved() { &self.name } else { UNAPPROVED }
    }
}

impl Clients {
    /// Returns the sites that wait for approval.
    pub fn unapproved(&self) -> impl Iterator<Item = (&Client, &Registered)> {
        let waiting = self.clients.iter().filter(|client| !client.is_approved());
        waiting.filter_map(|client| Some((client, client.registered.as_ref()?)))
    }

    /// Checks whether one more site may register from this address. Costs one pass over the clients.
    pub(super) fn may_register(
        &self,
        request: &RegistrationRequest,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<(), NotRegistered> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if request.name.is_empty() || request.name.len() > MOST_NAME || !request.name.chars().all(allowed) {
            return Err(NotRegistered::Name(request.name.chars().take(MOST_NAME).collect()));
        }
        if request.contact.len() > MOST_CONTACT || remote_text(&request.contact) != request.contact {
            return Err(NotRegistered::Contact(request.contact.len()));
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

    /// Registers a site, and removes lapsed ones. Returns its name, with random digits so that nobody can take another site's name, and its
    /// token.
    pub(super) fn register(
        &mut self,
        request: &RegistrationRequest,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<Result<(String, String), NotRegistered>, ClientsError> {
        self.forget(now);
        if let Err(why) = self.may_register(request, from, now) {
            return Ok(Err(why));
        }
        let random = |reason| ClientsError::Io { path: "the system's random numbers".into(), reason };
        let name = loop {
            let digits = u16::from_le_bytes(random_bytes().map_err(random)?);
            let name = format!("{}-{digits:04x}", request.name);
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
        // It is done by now; see `Gate::register`.
        self.end_withdrawal();
        let contact = request.contact.clone();
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

    /// Removes all unapproved sites, and withdraws their reports. Returns their number.
    pub fn remove_unapproved(&mut self) -> usize {
        let before = self.clients.len();
        self.clients.retain(Client::is_approved);
        self.end_withdrawal();
        self.withdrawn.push(UNAPPROVED.to_owned());
        before - self.clients.len()
    }

    /// Ends the withdrawal of the reports of unapproved sites.
    pub(super) fn end_withdrawal(&mut self) {
        self.withdrawn.retain(|withdrawn| withdrawn != UNAPPROVED);
    }

    /// Whether the file must be written: a site has lapsed, or one of these used its token on another day than the stored one.
    pub(super) fn is_due(&self, used: &[String], now: u64) -> bool {
        let another_day =
            |site: &Registered| site.used.is_none_or(|used| used / DAY < now / DAY || used > now);
        self.unapproved()
            .any(|(client, site)| site.is_over(now) || (another_day(site) && used.contains(&client.name)))
    }

    /// Stores that these sites used their tokens, and removes lapsed ones.
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

    fn request(name: &str) -> RegistrationRequest {
        RegistrationRequest { name: name.to_owned(), contact: String::new() }
    }

    fn register(clients: &mut Clients, n: u32, now: u64) -> Result<(String, String), NotRegistered> {
        clients.register(&request("mx.example.org"), Some(IpAddr::V4(n.into())), now).unwrap()
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
    fn unused_tokens_lapse_and_approved_ones_do_not() {
        let mut clients = Clients::default();
        let names: Vec<_> = (0..3).map(|n| register(&mut clients, n << 16, NOW).unwrap().0).collect();
        let left = |clients: &Clients| clients.list().iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        assert!(!clients.is_due(&[], NOW + DAY - 1) && clients.is_due(&names[..1], NOW + 60));
        clients.note_used(&names[..1], NOW + 60);
        assert!(!clients.is_due(&names[..1], NOW + 120), "once a day is enough");
        let set = |clients: &mut Clients| clients.change(&names[1], |client| client.max_influence = None);
        assert!(
            matches!(set(&mut clients), Err(ClientsError::Unapproved(_))),
            "all sites would have no limit"
        );
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
            let refused = clients.may_register(&request(name), None, NOW);
            assert!(matches!(refused, Err(NotRegistered::Name(_))), "{name}");
        }
        let contact = "a\u{1b}[31m".to_owned();
        let refused = clients.may_register(&RegistrationRequest { name: "a".to_owned(), contact }, None, NOW);
        assert!(matches!(refused, Err(NotRegistered::Contact(_))));
    }
}
