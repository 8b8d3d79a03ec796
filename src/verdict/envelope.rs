// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of a message beside its content, whoever brings it.

use crate::policy::{Answers, Mailboxes, Per};
use crate::signature::ClientNetwork;
use std::collections::HashSet;
use std::net::IpAddr;

/// The envelope of a message, as far as it is known. Addresses stand without angle brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The client's address, in its canonical form; none for local submission.
    pub client: Option<IpAddr>,
    /// The client's name, if it was verified.
    pub host: Option<String>,
    /// What the client calls itself. Nothing is decided by it.
    pub helo: Option<String>,
    /// The sender, if it is known; empty for the null sender.
    pub sender: Option<String>,
    /// The recipients.
    pub recipients: Vec<String>,
    /// Whether the client authenticated to the mail server.
    pub authenticated: bool,
    /// What tables elsewhere said of its names.
    pub answers: Answers,
    /// The mail server's queue id.
    pub id: Option<String>,
}

impl Envelope {
    /// The queue id, or what stands for none.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("NOQUEUE")
    }

    /// The mailboxes that it goes to: who is named twice, or in two spellings, still gets one copy.
    #[must_use]
    pub fn mailboxes(&self, mailboxes: &Mailboxes) -> HashSet<String> {
        self.recipients.iter().map(|recipient| mailboxes.mailbox(recipient)).collect()
    }

    /// How many reports the message is.
    #[must_use]
    pub fn times(&self, per: Per, mailboxes: &Mailboxes) -> u32 {
        match per {
            Per::Recipient => u32::try_from(self.mailboxes(mailboxes).len()).unwrap_or(u32::MAX).max(1),
            Per::Message => 1,
        }
    }

    /// The network that it came from, if that is known.
    #[must_use]
    pub fn network(&self) -> Option<ClientNetwork> {
        self.client.map(ClientNetwork::of)
    }
}
