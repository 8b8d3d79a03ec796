// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of a message beside its content, whoever brings it.

use bulkmark_policy::{Answers, Origin};
use bulkmark_types::ClientNetwork;
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
    /// By which name, if it is known.
    pub login: Option<String>,
    /// The name of the listener by which the mail server asks, if it has one.
    pub listener: Option<String>,
    /// The mail server's queue id.
    pub id: Option<String>,
    /// The Message-ID field as it came, perhaps cut short. Nothing is decided by it.
    pub message_id: Option<String>,
    /// Whether actions are paused at this time, and so only rehearsed.
    pub is_paused: bool,
    /// Bytes of the message as it came.
    pub size: Option<u64>,
}

impl Envelope {
    /// The queue id, or what stands for none.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("NOQUEUE")
    }

    /// From where it comes, for policies.
    #[must_use]
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            listener: self.listener.as_deref(),
            client: self.client,
            login: self.login.as_deref(),
            authenticated: self.authenticated,
        }
    }

    /// Whose mail it is, if it is outbound: who logged in, or else the client's address.
    #[must_use]
    pub fn account(&self) -> String {
        match (&self.login, self.client) {
            (Some(login), _) => login.to_lowercase(),
            (None, Some(ip)) => format!("[{ip}]"),
            (None, None) => "[local]".to_owned(),
        }
    }

    /// The network that it came from, if that is known.
    #[must_use]
    pub fn network(&self) -> Option<ClientNetwork> {
        self.client.map(ClientNetwork::of)
    }
}
