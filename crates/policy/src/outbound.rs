// SPDX-License-Identifier: GPL-3.0-or-later
//! The settings of outbound mail: its match, and the limits of accounts.

use super::accounts::Limits;
use super::matching::MessageMatch;
use super::settings::Action;
use serde::Deserialize;
use std::collections::HashSet;
use std::time::Duration;

/// The bounds of `window`.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// `[outbound]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OutboundSettings {
    /// The match of outbound mail; if empty, no mail is outbound.
    #[serde(rename = "match")]
    pub matches: MessageMatch,
    /// The window in which an account's mail is summed.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// The copies of bulk in that window from which on an account is over its limit; zero: no limit.
    pub bulk: u32,
    /// The same for the recipients of all its mail.
    pub recipients: u32,
    /// Accounts with their own limits.
    pub accounts: Vec<AccountLimits>,
    /// The action for mail of an account over its limit, besides the notification.
    pub action: Action,
}

/// The limits of one account; a missing limit is that of all accounts, and zero is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AccountLimits {
    /// The account.
    pub name: String,
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
            accounts: Vec::new(),
            action: Action::Mark,
        }
    }
}

impl OutboundSettings {
    /// The limits of the account of this name.
    #[must_use]
    pub fn limits(&self, account: &str) -> Limits {
        let own = self.accounts.iter().find(|of| of.name == account);
        Limits {
            window: self.window.as_secs(),
            bulk: own.and_then(|own| own.bulk).unwrap_or(self.bulk),
            recipients: own.and_then(|own| own.recipients).unwrap_or(self.recipients),
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first key with a wrong value, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.window < SHORTEST || self.window > LONGEST {
            let found = humantime_serde::re::humantime::format_duration(self.window);
            return Err(("window", format!("found {found}, expected 1m to 7d, for example \"1h\"")));
        }
        let mut names = HashSet::new();
        if let Some(twice) = self.accounts.iter().find(|of| !names.insert(&of.name)) {
            return Err(("accounts", format!("found two entries of {:?}, expected one", twice.name)));
        }
        if self.action == Action::Discard {
            let expected = "expected mark, quarantine, tempfail or reject: your own user should learn of it";
            return Err(("action", format!("found \"discard\", {expected}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_its_own_limits_and_else_those_of_all() {
        let own = AccountLimits { name: "shop".to_owned(), bulk: Some(5000), recipients: None };
        let mut settings =
            OutboundSettings { recipients: 2000, accounts: vec![own], ..OutboundSettings::default() };
        let limits = |settings: &OutboundSettings, name| {
            let Limits { bulk, recipients, .. } = settings.limits(name);
            (bulk, recipients)
        };
        assert_eq!(["shop", "anna"].map(|name| limits(&settings, name)), [(5000, 2000), (100, 2000)]);
        settings.accounts.extend(settings.accounts.clone());
        assert_eq!(settings.check().map_err(|(key, _)| key), Err("accounts"));
    }
}
