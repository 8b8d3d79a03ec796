// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message is held against white lists by.

use super::authentication::{Proven, domain};
use super::mailbox::Mailboxes;
use super::name::Name;
use super::table::Answers;
use bulkmark_types::Signature;
use std::net::IpAddr;

/// What is known of a message besides its count. Addresses stand without angle brackets.
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
    /// The same under the federation key before, while the key changes: entries may have that one.
    pub earlier_signature: Option<Signature>,
    /// Names that stand behind it, as far as somebody verified it.
    pub proven: Option<&'a Proven>,
    /// Names that it claims and that may be verified yet, where that is done here.
    pub claimed: Option<&'a Proven>,
    /// Which recipients are one.
    pub mailboxes: Option<&'a Mailboxes>,
    /// Recipients who wrote to whom it comes from, which is verified.
    pub known_to: &'a [String],
    /// Whether the administrator allowed its mailing.
    pub is_allowed: bool,
    /// What tables elsewhere said of it.
    pub answers: Option<&'a Answers>,
}

impl<'a> Facts<'a> {
    /// The `body` signatures that entries may name.
    pub(super) fn signatures(&self) -> impl Iterator<Item = Signature> {
        self.signature.into_iter().chain(self.earlier_signature)
    }

    /// The same if all held that it claims.
    pub(super) fn if_proven(self) -> Self {
        Self { proven: self.claimed.or(self.proven), ..self }
    }

    /// Names for whom the client may send, as far as they are the sender's. A verifier's word on another sender is none on this
    /// message.
    pub(super) fn spf(&self) -> impl Iterator<Item = &'a str> {
        let names = self.proven.map_or(&[][..], |proven| &proven.spf);
        let sender = self.sender;
        let is_senders =
            move |name: &&str| sender.is_none_or(|sender| Name::of(domain(sender)) == Name::of(domain(name)));
        names.iter().map(|name| &**name).filter(is_senders)
    }
}
