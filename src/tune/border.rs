// SPDX-License-Identifier: GPL-3.0-or-later
//! The client of a stored message at the border between your own mail servers and the rest of the world.

use bulkmark_mail::Received;
use bulkmark_policy::Network;
use std::net::IpAddr;

/// The border between your own mail servers and the rest of the world.
#[derive(Debug, Clone, Default)]
pub struct Border {
    /// The name of the mail server that takes mail from outside, as it writes it into Received fields. Without a name, the border is the first
    /// line with a client outside your own networks.
    pub server: Option<String>,
}

impl Border {
    /// Returns the client of a message with these fields, the last mail server's first.
    pub(super) fn client(&self, received: &[Received], own: &[Network]) -> Option<IpAddr> {
        let mut clients = received.iter().filter_map(|received| Some((received, received.client?)));
        let found = match &self.server {
            Some(server) => clients.find(|(received, _)| received.by.eq_ignore_ascii_case(server)),
            None => clients.find(|&(_, ip)| !is_private(ip) && !own.iter().any(|own| own.contains(ip))),
        };
        found.map(|(_, ip)| ip)
    }
}

/// Whether the address is never a client from the Internet.
const fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_is_where_the_world_begins_or_where_one_says() {
        let received = [
            Received::of("by store.test (LMTP)"),
            Received::of("from filter (localhost [127.0.0.1]) by store.test"),
            Received::of("from mx (mx.test [10.1.2.3]) by store.test"),
            Received::of("from backup (backup.test [192.0.2.1]) by mx.test"),
            Received::of("from me (client.example [198.51.100.7]) by backup.test"),
            Received::of("from forged (forged.example [203.0.113.9]) by nowhere.example"),
        ];
        let client = |server: Option<&str>, own: &[Network]| {
            Border { server: server.map(str::to_owned) }.client(&received, own).map(|ip| ip.to_string())
        };
        assert_eq!(client(None, &[]).as_deref(), Some("192.0.2.1"));
        let own = ["192.0.2.0/24".parse().unwrap()];
        assert_eq!(client(None, &own).as_deref(), Some("198.51.100.7"));
        assert_eq!(client(Some("Backup.test"), &[]).as_deref(), Some("198.51.100.7"));
        assert_eq!(client(Some("elsewhere.test"), &[]), None);
    }
}
