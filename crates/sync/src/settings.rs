// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration of other servers.

use bulkmark_counts::LocalCopy;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;
use std::time::Duration;

/// One `[[upstream]]` or `[[peer]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Upstream {
    /// `https://HOST:PORT`; on this machine `http://HOST:PORT` or `unix:/PATH`.
    pub url: String,
    /// The file with the token from the server's administrator.
    pub token_file: Option<PathBuf>,
    /// The authority that signed the server's certificate, if the system does not trust it.
    pub ca_file: Option<PathBuf>,
    /// Whether `http://` may lead to another machine, because something else encrypts the connection.
    #[serde(default)]
    pub plain_http_anywhere: bool,
}

/// Whether an address is on this machine.
fn is_here(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']');
            address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

impl Upstream {
    /// Checks the address.
    ///
    /// # Errors
    /// The address that was found and the expected form, without passwords.
    pub fn check(&self) -> Result<(), String> {
        const EXPECTED: &str =
            "expected \"https://HOST:PORT\", or on this machine \"http://HOST:PORT\" or \"unix:/PATH\"";
        if self.url.starts_with("unix:/") {
            return Ok(());
        }
        let url = reqwest::Url::parse(&self.url);
        let has_user = match &url {
            Ok(url) if url.has_host() => !url.username().is_empty() || url.password().is_some(),
            _ => self.url.contains('@'),
        };
        if has_user {
            let advice = "write the server's token into a file, and name that in token-file";
            return Err(format!("found an address with a user name or password; {advice}"));
        }
        match url {
            Ok(url) if url.query().is_some() || url.fragment().is_some() => {
                Err(format!("found an address with \"?\" or \"#\", {EXPECTED}"))
            }
            Ok(url)
                if url.scheme() == "http"
                    && url.has_host()
                    && !is_here(&url)
                    && !self.plain_http_anywhere =>
            {
                Err(format!(
                    "http:// sends the token and all counts so that anybody on the way to {} can read them; use https://, or write \
                     plain-http-anywhere = true where something else encrypts",
                    url.host_str().unwrap_or_default()
                ))
            }
            Ok(url) if url.has_host() && ["http", "https"].contains(&url.scheme()) => Ok(()),
            _ => Err(format!("found {:?}, {EXPECTED}", self.url)),
        }
    }
}

/// `[sync]` of a milter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The longest time that a report waits for others to share a batch with.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// The age of the upstream's counts from which the header shows it.
    #[serde(with = "humantime_serde")]
    pub max_staleness: Duration,
    /// Files in the form of white lists: mail that matches is counted locally only.
    pub private: Vec<PathBuf>,
    /// The parts of all other reports that no server receives.
    pub withhold: Withhold,
    /// The part of the federation's counts that is held locally.
    pub copy: LocalCopy,
}

/// A part of reports that no server receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Part {
    /// Signatures of exact content, by which the text of a message can be tested.
    Exact,
    /// Reports of users.
    UserReports,
}

/// The parts of reports that no server receives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Withhold {
    /// Signatures of exact content.
    pub exact: bool,
    /// Reports of users.
    pub user_reports: bool,
}

impl<'de> Deserialize<'de> for Withhold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = Vec::<Part>::deserialize(deserializer)?;
        let has = |part| parts.contains(&part);
        Ok(Self { exact: has(Part::Exact), user_reports: has(Part::UserReports) })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(500),
            max_staleness: Duration::from_secs(600),
            private: Vec::new(),
            withhold: Withhold::default(),
            copy: LocalCopy::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_passwords_not_repeated() {
        let new = |url: &str, plain_http_anywhere| {
            let url = url.to_owned();
            Upstream { url, token_file: None, ca_file: None, plain_http_anywhere }.check()
        };
        let check = |url: &str| new(url, false);
        for here in ["http://127.0.0.1:1", "http://127.3.2.1", "http://localhost:8721", "http://[::1]:8721"] {
            assert_eq!(check(here), Ok(()), "{here}");
        }
        for elsewhere in [
            "http://192.0.2.1:8721",
            "http://counts.example.org",
            "http://localhost.example.org",
            "http://[2001:db8::1]",
        ] {
            let error = check(elsewhere).unwrap_err();
            assert!(error.contains("plain-http-anywhere = true"), "{elsewhere}: {error}");
            assert_eq!(new(elsewhere, true), Ok(()), "{elsewhere}");
        }
        for good in
            ["https://counts.example.org:8721", "http://[::1]:8721/", "https://a/at@path", "unix:/run/s@1"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for secret in [
            "https://me:secret@a:1",
            "https://secret@a",
            "https://:secret@a",
            "me:secret@a:1",
            "http://a b:secret@c",
        ] {
            let error = check(secret).unwrap_err();
            assert!(error.contains("token-file") && !error.contains("secret"), "{secret}: {error}");
        }
        for bad in ["", "counts.example.org:8721", "ftp://a", "http://", "https://a/?token=b", "unix:run/s"] {
            assert!(check(bad).unwrap_err().contains("https://HOST:PORT"), "{bad}");
        }
    }
}
