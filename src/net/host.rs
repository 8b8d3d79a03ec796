// SPDX-License-Identifier: GPL-3.0-or-later
//! What this machine is called, and who a browser thinks it asks.
//!
//! A web site can give its name the address 127.0.0.1, so that its scripts read what this machine serves (DNS rebinding).
//! The browser then asks by that name. An address cannot be given to anybody else.

use axum::http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// Whether a request asks for a service of this machine: by all of its `Host` fields, and by its target where that names a host. `names` are
/// those of the configuration.
#[must_use]
pub fn asks_for_ours(fields: &HeaderMap, target: &Uri, names: &[String]) -> bool {
    let mut hosts = fields.get_all(header::HOST).iter().peekable();
    let is_named = hosts.peek().is_some();
    is_named
        && hosts.all(|host| host.to_str().is_ok_and(|host| is_ours(host, names)))
        && target.authority().is_none_or(|host| is_ours(host.as_str(), names))
}

/// Whether this names this machine.
fn is_ours(host: &str, names: &[String]) -> bool {
    // Behind the name there is a port or nothing: `[::1].evil.example` is a name of evil.example's.
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let Some((ip, port)) = rest.split_once(']') else { return false };
            (ip, port)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !(port.is_empty() || port.starts_with(':') && digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return false;
    }
    let name = name.trim_end_matches('.');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

/// The name of this machine, as the system has it. Not from /proc, which systemd's hardening hides.
#[must_use]
pub fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

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
            "[::1]",
        ] {
            assert!(is_ours(good, &names), "{good}");
        }
        for bad in [
            "evil.example:8722",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "x@127.0.0.1",
            "[::1].evil.example",
            "[::1]evil.example:8722",
            "[::1",
            "[evil.example]:8722",
            "127.0.0.1:8722.evil.example",
            "localhost:x.evil.example",
            "::1",
        ] {
            assert!(!is_ours(bad, &names), "{bad}");
        }
    }

    /// No field hides another one, nor the host in the target, by which proxies go.
    #[test]
    fn all_hosts_are_looked_at() {
        let asks = |hosts: &[&'static str], target: &'static str| {
            let mut fields = HeaderMap::new();
            for host in hosts {
                fields.append(header::HOST, HeaderValue::from_static(host));
            }
            asks_for_ours(&fields, &Uri::from_static(target), &[])
        };
        assert!(asks(&["localhost"], "/metrics") && asks(&["127.0.0.1"], "http://localhost:8722/metrics"));
        assert!(!asks(&[], "/metrics"));
        assert!(!asks(&["localhost", "evil.example"], "/metrics"));
        assert!(!asks(&["evil.example", "localhost"], "/metrics"));
        assert!(!asks(&["localhost"], "http://evil.example/metrics"));
    }
}
