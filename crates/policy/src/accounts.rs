// SPDX-License-Identifier: GPL-3.0-or-later
//! The recent mail of each account, so that an account that was taken over is noticed. Pure: the caller passes the time.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The most accounts that are kept, at about 300 bytes each. Beyond that, the accounts that have been silent for longest are removed.
const MAX_ACCOUNTS: usize = 20_000;

/// The most bytes of a name that are kept.
const MAX_NAME: usize = 320;

/// The number of slots of the sliding window: it slides by one of them.
const SLOTS: usize = 12;

/// The limits of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The length of the window in which its mail is summed, in seconds.
    pub window: u64,
    /// The copies of bulk from which on it is over its limit; zero: no limit.
    pub bulk: u32,
    /// The same for the recipients of all its mail.
    pub recipients: u32,
}

/// An amount of mail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Copies of bulk.
    pub bulk: u32,
    /// Recipients of all mail.
    pub recipients: u32,
}

impl Sent {
    const fn and(self, more: Self) -> Self {
        Self {
            bulk: self.bulk.saturating_add(more.bulk),
            recipients: self.recipients.saturating_add(more.recipients),
        }
    }

    const fn is_over(self, limits: Limits) -> bool {
        (limits.bulk > 0 && self.bulk >= limits.bulk)
            || (limits.recipients > 0 && self.recipients >= limits.recipients)
    }
}

/// The state of an account after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// All its mail in the window, this message included.
    pub sent: Sent,
    /// Whether that is over its limit.
    pub is_over: bool,
    /// Whether to notify the postmaster: the account has just reached the limit, or has been over it for a whole window since the last
    /// notification.
    pub must_notify: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Account {
    slots: [Sent; SLOTS],
    /// The number of the slot of the last message.
    newest: u64,
    /// The time of the last notification, in seconds since 1970.
    #[serde(rename = "told")]
    notified_at: Option<u64>,
}

impl Account {
    /// Slides the window to this slot.
    fn slide(&mut self, slot: u64) {
        let passed = usize::try_from(slot.saturating_sub(self.newest)).unwrap_or(SLOTS).min(SLOTS);
        self.slots.rotate_right(passed);
        self.slots[..passed].fill(Sent::default());
        // If the clock was set back, no time passes.
        self.newest = self.newest.max(slot);
    }

    fn sum(&self) -> Sent {
        self.slots.iter().fold(Sent::default(), |sum, &slot| sum.and(slot))
    }
}

/// The recent mail of all accounts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Accounts {
    /// The length of the window, in seconds.
    window: u64,
    accounts: HashMap<String, Account>,
}

/// One account, as commands and pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AccountStatus {
    /// Its login, or the client's address in brackets.
    pub account: String,
    /// Copies of bulk.
    pub bulk: u32,
    /// Recipients of all mail.
    pub recipients: u32,
    /// Whether it was over its limit when it sent last.
    pub over: bool,
}

impl Accounts {
    /// Adds mail to an account and returns its new state. `now` is in seconds since 1970.
    pub fn sent(&mut self, name: &str, what: Sent, limits: Limits, now: u64) -> Standing {
        if self.window != limits.window {
            // Sums over slots of another length cannot be converted.
            *self = Self { window: limits.window, accounts: HashMap::new() };
        }
        let slot = self.slot(now);
        let name = &name[..name.floor_char_boundary(MAX_NAME)];
        if !self.accounts.contains_key(name) && self.accounts.len() >= MAX_ACCOUNTS {
            self.forget(slot);
        }
        let account = self
            .accounts
            .entry(name.to_owned())
            .or_insert_with(|| Account { newest: slot, ..Account::default() });
        account.slide(slot);
        account.slots[0] = account.slots[0].and(what);
        let sent = account.sum();
        let is_over = sent.is_over(limits);
        let must_notify =
            is_over && account.notified_at.is_none_or(|at| now.saturating_sub(at) >= limits.window);
        match (is_over, must_notify) {
            (_, true) => account.notified_at = Some(now),
            (false, _) => account.notified_at = None,
            (true, false) => (),
        }
        Standing { sent, is_over, must_notify }
    }

    /// Whether no account sent anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    fn slot(&self, now: u64) -> u64 {
        now / (self.window / SLOTS as u64).max(1)
    }

    /// Makes room: removes accounts without mail in the window, and if that is not enough, the quarter that has been silent for longest,
    /// accounts over their limit last.
    fn forget(&mut self, slot: u64) {
        let accounts = &mut self.accounts;
        accounts.retain(|_, account| slot.saturating_sub(account.newest) < SLOTS as u64);
        if accounts.len() < MAX_ACCOUNTS {
            return;
        }
        let mut ages: Vec<_> =
            accounts.values().map(|account| (account.notified_at.is_some(), account.newest)).collect();
        ages.sort_unstable();
        let oldest = ages[ages.len() / 4];
        let mut left = ages.len() / 4 + 1;
        accounts.retain(|_, account| {
            let leaves = left > 0 && (account.notified_at.is_some(), account.newest) <= oldest;
            left -= usize::from(leaves);
            !leaves
        });
    }

    /// The number of accounts with mail in the window, and of those over their limit.
    #[must_use]
    pub fn numbers(&self, now: u64) -> (usize, usize) {
        let slot = self.slot(now);
        let live =
            self.accounts.values().filter(|account| slot.saturating_sub(account.newest) < SLOTS as u64);
        live.fold((0, 0), |(all, over), account| (all + 1, over + usize::from(account.notified_at.is_some())))
    }

    /// At most `most` accounts that sent bulk or are over their limit: first those over the limit, then by bulk.
    #[must_use]
    pub fn list(&self, most: usize, now: u64) -> Vec<AccountStatus> {
        let slot = self.slot(now);
        let status = |(name, account): (&String, &Account)| {
            let mut account = account.clone();
            account.slide(slot);
            let Sent { bulk, recipients } = account.sum();
            let over = account.notified_at.is_some() && recipients > 0;
            (bulk > 0 || over).then(|| AccountStatus { account: name.clone(), bulk, recipients, over })
        };
        let mut list: Vec<_> = self.accounts.iter().filter_map(status).collect();
        let rank =
            |account: &AccountStatus| (!account.over, u32::MAX - account.bulk, account.account.clone());
        list.sort_by_cached_key(rank);
        list.truncate(most);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { window: 3600, bulk: 100, recipients: 0 };
    const NOW: u64 = 1_800_000_000;

    fn bulk(copies: u32) -> Sent {
        Sent { bulk: copies, recipients: copies }
    }

    #[test]
    fn an_account_is_over_its_limit_at_the_limit_and_that_is_notified_once() {
        let mut accounts = Accounts::default();
        let mut sent = |name: &str, copies, now| {
            let Standing { sent, is_over, must_notify } = accounts.sent(name, bulk(copies), LIMITS, now);
            (sent.bulk, is_over, must_notify)
        };
        assert_eq!(sent("anna", 99, NOW), (99, false, false));
        assert_eq!(sent("ben", 99, NOW), (99, false, false), "another account");
        assert_eq!(sent("anna", 1, NOW + 1), (100, true, true));
        assert_eq!(sent("anna", 1, NOW + 2), (101, true, false));
        assert_eq!(
            sent("anna", 100, NOW + 3700),
            (100, true, true),
            "it went on, so there is another notification"
        );
        assert_eq!(sent("anna", 1, NOW + 9000), (1, false, false));
        let status = |account: &str, bulk, over| AccountStatus {
            account: account.to_owned(),
            bulk,
            recipients: bulk,
            over,
        };
        assert_eq!(accounts.list(9, NOW + 9000), [status("anna", 1, false)]);
        accounts.sent("zoe", bulk(200), LIMITS, NOW + 9000);
        accounts.sent("ben", bulk(3), LIMITS, NOW + 9000);
        let expected = [status("zoe", 200, true), status("ben", 3, false)];
        assert_eq!(accounts.list(2, NOW + 9000), expected);
        assert_eq!(accounts.numbers(NOW + 9000), (3, 1));
        assert_eq!(accounts.numbers(NOW + 90_000), (0, 0));
    }

    #[test]
    fn the_time_slides_and_a_clock_that_is_set_back_harms_nobody() {
        let mut accounts = Accounts::default();
        let mut sum = |copies, now| accounts.sent("anna", bulk(copies), LIMITS, now).sent.bulk;
        for n in 1..=12u32 {
            assert_eq!(sum(10, NOW + u64::from(n) * 300), n * 10);
        }
        assert_eq!(sum(10, NOW + 13 * 300), 120, "the first has left");
        assert_eq!(sum(1, NOW), 121);
        assert_eq!(sum(1, NOW + 30 * 300), 1);
    }

    #[test]
    fn recipients_have_their_own_limit() {
        let limits = Limits { recipients: 50, bulk: 0, ..LIMITS };
        let mut accounts = Accounts::default();
        let sent = |recipients| Sent { bulk: 0, recipients };
        assert!(!accounts.sent("anna", sent(49), limits, NOW).is_over);
        assert!(accounts.sent("anna", sent(1), limits, NOW).is_over);
    }

    #[test]
    fn made_up_names_take_bounded_memory_and_hide_nobody() {
        let mut accounts = Accounts::default();
        assert!(accounts.sent("taken over", bulk(100), LIMITS, NOW).is_over);
        for n in 0..3 * MAX_ACCOUNTS {
            accounts.sent(&format!("{n}{}", "x".repeat(1000)), bulk(1), LIMITS, NOW + 600);
        }
        assert!(accounts.accounts.len() <= MAX_ACCOUNTS);
        assert!(accounts.accounts.keys().all(|name| name.len() <= MAX_NAME));
        assert_eq!(accounts.list(1, NOW + 600)[0].account, "taken over");
    }

    #[test]
    fn accounts_survive_restarts() {
        let mut accounts = Accounts::default();
        accounts.sent("anna", bulk(99), LIMITS, NOW);
        let text = serde_json::to_string(&accounts).unwrap();
        let mut accounts: Accounts = serde_json::from_str(&text).unwrap();
        assert!(accounts.sent("anna", bulk(1), LIMITS, NOW + 1).is_over);
    }
}
