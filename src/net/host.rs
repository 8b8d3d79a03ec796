// SPDX-License-Identifier: GPL-3.0-or-later
//! The names of this machine, and the host that a browser's request names.
//!
//! A web site can map its name to the address 127.0.0.1, so that its scripts read this machine's services (DNS rebinding). The browser then
//! sends that name. An address cannot be mapped to another machine.

use axum::http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// Whether a request is for this machine: by all of its `Host` fields, and by its target if that names a host. `names` are the configured
/// ones.
#[must_use]
pub fn asks_for_ours(fields: &HeaderMap, target: &Uri, names: &[String]) -> bool {
    let mut hosts = fields.get_all(header::HOST).iter().peekable();
    let is_named = hosts.peek().is_some();
    is_named
        && hosts.all(|host| host.to_str().is_ok_and(|host| is_ours(host, names)))
        && target.authority().is_none_or(|host| is_ours(host.as_str(), names))
}

/// Whether this host is this machine.
fn is_ours(host: &str, names: &[String]) -> bool {
    // After the name comes a port or nothing: `[::1].evil.example` is a name of evil.example.
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

/// Returns the name of this machine: the configured one or, if that is empty, the system's; not from /proc, which systemd's hardening hides.
#[must_use]
pub fn own_name(configured: &str) -> String {
    match configured.trim() {
        "" => rustix::system::uname().nodename().to_string_lossy().trim().to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_own_names_pass() {
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

    /// No field hides another one, or the host in the target, which proxies use.
    #[test]
    fn all_hosts_are_checked() {
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
