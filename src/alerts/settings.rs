// SPDX-License-Identifier: GPL-3.0-or-later
//! The table `[alerts]`.

use reqwest::Url;
use serde::Deserialize;
use std::net::IpAddr;

/// The keys of `[alerts]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The address to which problems are posted; empty: none is posted.
    pub webhook: String,
}

/// Whether an address is on this machine.
fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Settings {
    /// Returns the address of the webhook, or none if nothing is posted.
    ///
    /// # Errors
    /// The expected form, if alerts may not go to this address. The address is not repeated, since it is often a secret.
    pub fn url(&self) -> Result<Option<Url>, String> {
        if self.webhook.is_empty() {
            return Ok(None);
        }
        match Url::parse(&self.webhook) {
            Ok(url) if url.scheme() == "https" && url.has_host() => Ok(Some(url)),
            Ok(url) if url.scheme() == "http" && is_here(&url) => Ok(Some(url)),
            _ => {
                Err("expected an address such as \"https://HOST/PATH\", or on this machine \"http://HOST:PORT/PATH\"".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_go_to_web_servers_and_unencrypted_ones_stay_here() {
        let is_valid = |url: &str| Settings { webhook: url.to_owned() }.url().map(|url| url.is_some());
        assert_eq!(is_valid(""), Ok(false));
        for good in
            ["https://hooks.example.org/a?b", "http://127.0.0.1:9/x", "http://[::1]:9", "http://localhost/x"]
        {
            assert_eq!(is_valid(good), Ok(true), "{good}");
        }
        for bad in ["hooks.example.org", "http://hooks.example.org/a", "ftp://a/b", "unix:/run/x", "https://"]
        {
            assert!(is_valid(bad).is_err(), "{bad}");
        }
    }
}
