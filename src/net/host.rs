// SPDX-License-Identifier: GPL-3.0-or-later
//! Who a browser thinks it asks.
//!
//! A web site can give its name the address 127.0.0.1, so that its scripts read what this machine serves (DNS rebinding).
//! The browser then asks by that name. An address cannot be given to anybody else.

use std::net::IpAddr;

/// Whether a service of this machine may be asked for by this `Host` field. `names` are those of the configuration.
#[must_use]
pub fn is_ours(host: Option<&str>, names: &[String]) -> bool {
    let Some(host) = host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(ip, _)| ip),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_pass() {
        let names = ["mx1.example.org".to_owned()];
        for good in [
            "127.0.0.1:8722",
            "127.0.0.1",
            "[::1]:8722",
            "localhost:1234",
            "LOCALHOST.",
            "MX1.example.org:443",
            "192.0.2.1:8722",
        ] {
            assert!(is_ours(Some(good), &names), "{good}");
        }
        for bad in
            ["evil.example:8722", "127.0.0.1.evil.example", "localhost.evil.example", "", "x@127.0.0.1"]
        {
            assert!(!is_ours(Some(bad), &names), "{bad}");
        }
        assert!(!is_ours(None, &names));
    }
}
