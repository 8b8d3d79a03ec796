// SPDX-License-Identifier: GPL-3.0-or-later
//! The facts about a message that white lists are matched against.

use super::authentication::{VerifiedNames, domain};
use super::held::Allowed;
use super::mailbox::Mailboxes;
use super::name::Name;
use super::table::Answers;
use bulkmark_types::Signature;
use std::net::IpAddr;

/// The facts about a message besides its count. Addresses have no angle brackets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The client's address.
    pub client_ip: Option<IpAddr>,
    /// The client's name, if the MTA verified one.
    pub client_host: Option<&'a str>,
    /// The envelope sender, if it is known; empty for the null sender.
    pub sender: Option<&'a str>,
    /// The envelope recipients.
    pub recipients: &'a [String],
    /// The addresses of the From field.
    pub from: &'a [String],
    /// The list id.
    pub list_id: Option<&'a str>,
    /// The `body` signature.
    pub signature: Option<Signature>,
    /// The `body` signature under the old federation key, during a change of keys: entries may contain that one.
    pub old_key_signature: Option<Signature>,
    /// Its verified names.
    pub verified: Option<&'a VerifiedNames>,
    /// The claimed names that can still be verified, if the milter verifies mail.
    pub claimed: Option<&'a VerifiedNames>,
    /// The rules for recipients that are one mailbox.
    pub mailboxes: Option<&'a Mailboxes>,
    /// Recipients who wrote to its sender, which is verified.
    pub known_to: &'a [String],
    /// By whose order its mailing is allowed, if it is.
    pub allowed: Option<&'a Allowed>,
    /// The answers of remote tables.
    pub answers: Option<&'a Answers>,
}

impl<'a> Facts<'a> {
    /// The `body` signatures that entries may contain.
    pub(super) fn signatures(&self) -> impl Iterator<Item = Signature> {
        self.signature.into_iter().chain(self.old_key_signature)
    }

    /// The same, as if all claimed names were verified.
    pub(super) fn if_verified(self) -> Self {
        Self { verified: self.claimed.or(self.verified), ..self }
    }

    /// Verified SPF names, if they are the sender's. A result for another sender does not count for this message.
    pub(super) fn spf(&self) -> impl Iterator<Item = &'a str> {
        let names = self.verified.map_or(&[][..], |verified| &verified.spf);
        let sender = self.sender;
        let is_senders =
            move |name: &&str| sender.is_none_or(|sender| Name::of(domain(sender)) == Name::of(domain(name)));
        names.iter().map(|name| &**name).filter(is_senders)
    }
}
