// SPDX-License-Identifier: GPL-3.0-or-later
//! The messages and recipients that a policy applies to.

use super::network::Network;
use super::one_or_many::OneOrMany;
use super::recipients::RecipientPattern;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The name of a listener or a policy: letters, digits, and `.`, `-`, `_`, at most 64, so that it is a token in header and log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_name = |c: u8| c.is_ascii_alphanumeric() || b".-_".contains(&c);
        if (1..=64).contains(&name.len()) && name.bytes().all(is_name) {
            Ok(Self(name.to_owned()))
        } else {
            Err(format!("found \"{name}\", expected a name of letters, digits, \".\", \"-\" and \"_\""))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

/// The login of an account; any text. `*`: any client that authenticated, even with an unknown login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login(String);

impl FromStr for Login {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let name = name.trim();
        if name.is_empty() {
            return Err("found \"\", expected the name of an account".to_owned());
        }
        Ok(Self(name.to_lowercase()))
    }
}

/// `match` of a policy: all keys must hold; of a list, one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MatchSettings {
    /// Recipients and their domains.
    pub recipient: OneOrMany<RecipientPattern>,
    /// Files of recipients, one a line.
    pub recipient_files: Vec<PathBuf>,
    /// Names of listeners.
    pub listener: OneOrMany<Name>,
    /// Networks of clients.
    pub client: OneOrMany<Network>,
    /// Names of accounts.
    pub login: OneOrMany<Login>,
}

impl MatchSettings {
    /// The keys about the whole message.
    pub(super) fn message(&self) -> MessageMatch {
        let Self { listener, client, login, .. } = self.clone();
        MessageMatch { listener, client, login }
    }
}

/// The keys of `match` about the whole message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MessageMatch {
    /// Names of listeners.
    pub listener: OneOrMany<Name>,
    /// Networks of clients.
    pub client: OneOrMany<Network>,
    /// Names of accounts.
    pub login: OneOrMany<Login>,
}

impl MessageMatch {
    /// Whether no key is set, so that it fits everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it fits a message of this origin.
    #[must_use]
    pub fn fits(&self, origin: &Origin<'_>) -> bool {
        let Self { listener, client, login } = self;
        let at = |name: &Name| origin.listener == Some(name.as_str());
        let from = |network: &Network| origin.client.is_some_and(|ip| network.contains(ip));
        let account = origin.login.map(str::to_lowercase);
        let by = |Login(name): &Login| match name.as_str() {
            "*" => origin.authenticated,
            name => account.as_ref().is_some_and(|account| name == account),
        };
        (listener.0.is_empty() || listener.0.iter().any(at))
            && (client.0.is_empty() || client.0.iter().any(from))
            && (login.0.is_empty() || login.0.iter().any(by))
    }
}

/// The origin of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// The name of the listener that the MTA uses, if it has one.
    pub listener: Option<&'a str>,
    /// The client's address; none for local submission.
    pub client: Option<IpAddr>,
    /// Its login.
    pub login: Option<&'a str>,
    /// Whether it authenticated, even with an unknown login.
    pub authenticated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_must_hold_and_of_a_list_one() {
        let settings: MatchSettings = toml::from_str(
            "listener = \"outbound\"\nclient = [\"192.0.2.0/24\", \"2001:db8::/32\"]\nlogin = [\"Anna\", \"ben@box.example\"]",
        )
        .unwrap();
        let origin = |listener, client: &str, login| Origin {
            listener,
            client: client.parse().ok(),
            login,
            authenticated: login.is_some(),
        };
        let fits = |settings: &MatchSettings, origin| settings.message().fits(&origin);
        assert!(fits(&settings, origin(Some("outbound"), "192.0.2.7", Some("anna"))));
        assert!(fits(&settings, origin(Some("outbound"), "2001:db8::7", Some("BEN@box.example"))));
        for (listener, client, login) in [
            (None, "192.0.2.7", Some("anna")),
            (Some("other"), "192.0.2.7", Some("anna")),
            (Some("outbound"), "198.51.100.7", Some("anna")),
            (Some("outbound"), "", Some("anna")),
            (Some("outbound"), "192.0.2.7", Some("carl")),
            (Some("outbound"), "192.0.2.7", None),
        ] {
            assert!(!fits(&settings, origin(listener, client, login)), "{listener:?} {client} {login:?}");
        }
        let (all, any): (MatchSettings, MatchSettings) =
            (toml::from_str("").unwrap(), toml::from_str("login = \"*\"").unwrap());
        assert!(fits(&all, Origin::default()) && !fits(&any, Origin::default()));
        assert!(fits(&any, origin(None, "", Some("whoever"))));
        let unnamed = Origin { authenticated: true, ..Origin::default() };
        assert!(fits(&any, unnamed) && !fits(&settings, unnamed));
    }
}
