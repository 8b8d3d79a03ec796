// SPDX-License-Identifier: GPL-3.0-or-later
//! The policies of each recipient, by one lookup for all policies: a message may have thousands of recipients.

use super::mailbox::Mailboxes;
use super::name::Name;
use super::recipients::Recipients;
use std::collections::HashMap;

/// Policies as a bit mask, by their numbers.
pub(super) type Numbers = u128;

/// The entries of all policies, with the policies that have them.
#[derive(Debug, Default)]
pub(super) struct ByRecipient {
    /// Policies that name no recipients, which are for all.
    everybody: Numbers,
    users: HashMap<String, Numbers>,
    exact: HashMap<String, Numbers>,
    below: HashMap<String, Numbers>,
}

impl ByRecipient {
    /// Adds the entries of the policy with this number, below 128; `None` is everybody.
    pub(super) fn add(&mut self, number: usize, recipients: Option<Recipients>) {
        let policy = bit(number);
        let Some(recipients) = recipients else {
            self.everybody |= policy;
            return;
        };
        let (users, addresses) = recipients.into_parts();
        let (exact, below) = addresses.into_names();
        for (set, names) in [(&mut self.users, users), (&mut self.exact, exact), (&mut self.below, below)] {
            names.into_iter().for_each(|name| *set.entry(name).or_default() |= policy);
        }
    }

    /// The policies of a message without known recipients.
    pub(super) const fn of_unknown(&self) -> Numbers {
        self.everybody
    }

    /// The policies of this recipient: those with an entry for its address as it is, or as its mailbox.
    pub(super) fn of(&self, address: &str, mailboxes: &Mailboxes) -> Numbers {
        let get = |set: &HashMap<String, Numbers>, name: &str| set.get(name).copied().unwrap_or(0);
        let mailbox = mailboxes.mailbox(address);
        let user = mailbox.rsplit_once('@').map_or(&*mailbox, |(user, _)| user);
        let mut found = self.everybody | get(&self.users, &user.to_lowercase());
        for name in [Name::of(address), Name::of(&mailbox)] {
            let exact = [name.whole(), name.domain(), name.user().unwrap_or("")];
            found |= exact.into_iter().fold(0, |all, name| all | get(&self.exact, name));
            found |= name.domains().fold(0, |all, domain| all | get(&self.below, domain));
        }
        found
    }
}

/// The bit of a policy.
pub(super) fn bit(number: usize) -> Numbers {
    u32::try_from(number).ok().and_then(|number| Numbers::checked_shl(1, number)).unwrap_or(0)
}
