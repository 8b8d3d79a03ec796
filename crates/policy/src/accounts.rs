// SPDX-License-Identifier: GPL-3.0-or-later
//! What each account sent lately, so that one that was taken over is noticed. Pure: the time is told.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Accounts that are kept, at about 300 bytes each. Beyond that those leave that sent nothing for longest.
const MAX_ACCOUNTS: usize = 20_000;

/// Bytes of a name that are kept.
const MAX_NAME: usize = 320;

/// Pieces of the time over which mail is added up: it slides by one of them.
const SLOTS: usize = 12;

/// How much an account may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Seconds over which its mail is added up.
    pub window: u64,
    /// Copies of bulk at which it is over its limit; zero: there is none.
    pub bulk: u32,
    /// The same for the recipients of all its mail.
    pub recipients: u32,
}

/// What was sent.
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

/// How an account stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// All that it sent in the time, the last message with it.
    pub sent: Sent,
    /// Whether that is over its limit.
    pub is_over: bool,
    /// Whether somebody is to be told: it has just got there, or was there for the whole time since it was told last.
    pub is_news: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Account {
    slots: [Sent; SLOTS],
    /// The number of the slot of the last message.
    newest: u64,
    /// When it was told, in seconds since 1970.
    told: Option<u64>,
}

impl Account {
    /// Has time go on to this slot.
    fn slide(&mut self, slot: u64) {
        let passed = usize::try_from(slot.saturating_sub(self.newest)).unwrap_or(SLOTS).min(SLOTS);
        self.slots.rotate_right(passed);
        self.slots[..passed].fill(Sent::default());
        // A clock that was set back has no time pass.
        self.newest = self.newest.max(slot);
    }

    fn sum(&self) -> Sent {
        self.slots.iter().fold(Sent::default(), |sum, &slot| sum.and(slot))
    }
}

/// What all accounts sent lately.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Accounts {
    /// Seconds over which mail is added up.
    window: u64,
    accounts: HashMap<String, Account>,
}

/// One account, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AccountStatus {
    /// The name by which it logs in, or the client's address in brackets.
    pub account: String,
    /// Copies of bulk.
    pub bulk: u32,
    /// Recipients of all mail.
    pub recipients: u32,
    /// Whether it was over its limit when it sent last.
    pub over: bool,
}

impl Accounts {
    /// An account sent something; how it stands now. `now` is in seconds since 1970.
    pub fn sent(&mut self, name: &str, what: Sent, limits: Limits, now: u64) -> Standing {
        if self.window != limits.window {
            // What was added up by other slots cannot be told apart.
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
        let is_news = is_over && account.told.is_none_or(|told| now.saturating_sub(told) >= limits.window);
        match (is_over, is_news) {
            (_, true) => account.told = Some(now),
            (false, _) => account.told = None,
            (true, false) => (),
        }
        Standing { sent, is_over, is_news }
    }

    /// Whether none sent anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    fn slot(&self, now: u64) -> u64 {
        now / (self.window / SLOTS as u64).max(1)
    }

    /// Makes room: those leave that sent nothing in the time, and if that is not enough, the quarter that sent nothing for
    /// longest; of two the one that is not over its limit.
    fn forget(&mut self, slot: u64) {
        let accounts = &mut self.accounts;
        accounts.retain(|_, account| slot.saturating_sub(account.newest) < SLOTS as u64);
        if accounts.len() < MAX_ACCOUNTS {
            return;
        }
        let mut ages: Vec<_> =
            accounts.values().map(|account| (account.told.is_some(), account.newest)).collect();
        ages.sort_unstable();
        let oldest = ages[ages.len() / 4];
        let mut left = ages.len() / 4 + 1;
        accounts.retain(|_, account| {
            let leaves = left > 0 && (account.told.is_some(), account.newest) <= oldest;
            left -= usize::from(leaves);
            !leaves
        });
    }

    /// How many sent anything in the time, and how many of them are over their limit.
    #[must_use]
    pub fn numbers(&self, now: u64) -> (usize, usize) {
        let slot = self.slot(now);
        let live =
            self.accounts.values().filter(|account| slot.saturating_sub(account.newest) < SLOTS as u64);
        live.fold((0, 0), |(all, over), account| (all + 1, over + usize::from(account.told.is_some())))
    }

    /// So many accounts that sent bulk, or are over their limit: these first, then those with the most bulk.
    #[must_use]
    pub fn list(&self, most: usize, now: u64) -> Vec<AccountStatus> {
        let slot = self.slot(now);
        let status = |(name, account): (&String, &Account)| {
            let mut account = account.clone();
            account.slide(slot);
            let Sent { bulk, recipients } = account.sum();
            let over = account.told.is_some() && recipients > 0;
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
    fn an_account_is_over_its_limit_at_the_limit_and_that_is_told_once() {
        let mut accounts = Accounts::default();
        let mut sent = |name: &str, copies, now| {
            let Standing { sent, is_over, is_news } = accounts.sent(name, bulk(copies), LIMITS, now);
            (sent.bulk, is_over, is_news)
        };
        assert_eq!(sent("anna", 99, NOW), (99, false, false));
        assert_eq!(sent("ben", 99, NOW), (99, false, false), "another account");
        assert_eq!(sent("anna", 1, NOW + 1), (100, true, true));
        assert_eq!(sent("anna", 1, NOW + 2), (101, true, false));
        assert_eq!(sent("anna", 100, NOW + 3700), (100, true, true), "it went on, and is told again");
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
    fn recipients_have_a_limit_of_their_own() {
        let limits = Limits { recipients: 50, bulk: 0, ..LIMITS };
        let mut accounts = Accounts::default();
        let sent = |recipients| Sent { bulk: 0, recipients };
        assert!(!accounts.sent("anna", sent(49), limits, NOW).is_over);
        assert!(accounts.sent("anna", sent(1), limits, NOW).is_over);
    }

    #[test]
    fn whoever_makes_up_names_takes_bounded_memory_and_hides_nobody() {
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
    fn they_are_kept_over_restarts() {
        let mut accounts = Accounts::default();
        accounts.sent("anna", bulk(99), LIMITS, NOW);
        let text = serde_json::to_string(&accounts).unwrap();
        let mut accounts: Accounts = serde_json::from_str(&text).unwrap();
        assert!(accounts.sent("anna", bulk(1), LIMITS, NOW + 1).is_over);
    }
}
