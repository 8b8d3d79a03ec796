// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of outbound mail: which it is, and how much an account may send.

use super::accounts::Limits;
use super::matching::MessageMatch;
use super::reply::Text;
use super::settings::Action;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest and the longest time over which an account's mail is added up.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// `[outbound]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OutboundSettings {
    /// Which mail is outbound; none is where it says nothing.
    #[serde(rename = "match")]
    pub matches: MessageMatch,
    /// The time over which an account's mail is added up.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// The copies of bulk in that time at which an account is over its limit; zero: there is no such limit.
    pub bulk: u32,
    /// The same for the recipients of all its mail.
    pub recipients: u32,
    /// Accounts with limits of their own, by their names.
    pub accounts: BTreeMap<String, AccountLimits>,
    /// What is done with the mail of an account that is over its limit, beside telling it.
    pub action: Action,
    /// The text by which `reject` and `tempfail` say so.
    pub text: Text,
    /// Whether outbound mail gets the header.
    pub header: bool,
}

/// The limits of one account; a limit that is left out is that of all accounts, and zero is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AccountLimits {
    /// Copies of bulk.
    pub bulk: Option<u32>,
    /// Recipients of all mail.
    pub recipients: Option<u32>,
}

impl Default for OutboundSettings {
    fn default() -> Self {
        Self {
            matches: MessageMatch::default(),
            window: Duration::from_secs(3600),
            bulk: 100,
            recipients: 0,
            accounts: BTreeMap::new(),
            action: Action::Mark,
            text: Text::of_outbound(),
            header: false,
        }
    }
}

impl OutboundSettings {
    /// The limits of the account of this name.
    #[must_use]
    pub fn limits(&self, account: &str) -> Limits {
        let own = self.accounts.get(account).copied().unwrap_or_default();
        Limits {
            window: self.window.as_secs(),
            bulk: own.bulk.unwrap_or(self.bulk),
            recipients: own.recipients.unwrap_or(self.recipients),
        }
    }

    /// Whether the values can be used; otherwise the key, and what is wrong with it.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.window < SHORTEST || self.window > LONGEST {
            let found = humantime_serde::re::humantime::format_duration(self.window);
            return Err(("window", format!("found {found}, expected 1m to 7d, for example \"1h\"")));
        }
        if self.action == Action::Discard {
            let expected = "expected mark, quarantine, tempfail or reject: your own user should learn of it";
            return Err(("action", format!("found \"discard\", {expected}")));
        }
        Ok(())
    }
}
