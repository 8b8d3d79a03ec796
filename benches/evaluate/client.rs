// SPDX-License-Identifier: GPL-3.0-or-later
//! The network that a message came from: the client that a mail server at the border would have seen. docs/evaluation.md has the
//! rule.

use bulkmark_mail::Received;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};

/// The client that the MTA reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum From {
    /// The client in the message's header.
    #[default]
    Message,
    /// The network with this number, for a message without a client.
    Network(u32),
    /// This address.
    Address(IpAddr),
}

/// A provider that sends all mailings.
pub(crate) const PROVIDER: From = From::Network(1);
/// A sender with one server.
pub(crate) const STRANGER: From = From::Network(2);

impl From {
    /// The client's address for a message with these bytes.
    pub(crate) fn address(self, raw: &[u8]) -> IpAddr {
        match self {
            Self::Network(number) => invented(number),
            Self::Address(ip) => ip,
            Self::Message => border(raw).unwrap_or_else(|| of_domain(raw)),
        }
    }
}

/// An address in the network with this number, in an unassigned part of the address space.
fn invented(number: u32) -> IpAddr {
    Ipv4Addr::from(0xF000_0001 | (number & 0x000F_FFFF) << 8).into()
}

/// Header fields of this name, unfolded, from the top.
pub(crate) fn fields<'a>(raw: &'a [u8], name: &'static str) -> impl Iterator<Item = String> + 'a {
    let head = raw.windows(4).position(|four| four == b"\r\n\r\n").map_or(raw, |end| &raw[..end]);
    let text = String::from_utf8_lossy(head).replace("\r\n ", " ").replace("\r\n\t", " ");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let value = move |line: String| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    };
    lines.into_iter().filter_map(value)
}

/// The first client with a public address that handed the message to another organisation's server.
fn border(raw: &[u8]) -> Option<IpAddr> {
    let hop = |value: String| {
        let received = Received::of(&value);
        let from = value.split_whitespace().nth(1).unwrap_or_default().to_lowercase();
        // A Received field of a user who fetches mail names the provider, not a client.
        let is_fetched = ["with imap", "with pop3"].iter().any(|by| value.to_lowercase().contains(by));
        let is_inside = !received.by.is_empty() && domain(&from) == domain(&received.by);
        received.client.filter(|&ip| is_public(ip) && !is_fetched && !is_inside)
    };
    fields(raw, "Received").find_map(hop)
}

/// The last two labels of a name.
pub(crate) fn domain(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    host.rmatch_indices('.').nth(1).map_or(host, |(dot, _)| &host[dot + 1..])
}

/// Whether the address is public on the Internet, not reserved.
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64;
            !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified() || shared)
                && ip.octets()[0] < 224
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified())
        }
    }
}

/// A network of the author's domain. Numbers below a thousand are for those that are named here.
fn of_domain(raw: &[u8]) -> IpAddr {
    let from = fields(raw, "From").next().unwrap_or_default().to_lowercase();
    let domain = from.rsplit_once('@').map_or("", |(_, domain)| domain);
    let end = domain.find(|c: char| !c.is_alphanumeric() && !".-".contains(c)).unwrap_or(domain.len());
    let mut hasher = DefaultHasher::new();
    domain[..end].hash(&mut hasher);
    invented(1000 + (hasher.finish() % 1_000_000) as u32)
}
