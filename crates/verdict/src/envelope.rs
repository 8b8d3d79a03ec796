// SPDX-License-Identifier: GPL-3.0-or-later
//! The facts about a message besides its content.

use bulkmark_policy::{Answers, Origin};
use bulkmark_types::ClientNetwork;
use std::net::IpAddr;

/// The envelope of a message, as far as it is known. Addresses have no angle brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The client's address, in its canonical form; none for local submission.
    pub client: Option<IpAddr>,
    /// The client's name, if it was verified.
    pub host: Option<String>,
    /// The client's HELO name. Only SPF depends on it.
    pub helo: Option<String>,
    /// The sender, if it is known; empty for the null sender.
    pub sender: Option<String>,
    /// The recipients.
    pub recipients: Vec<String>,
    /// Whether the client authenticated to the mail server.
    pub authenticated: bool,
    /// The answers of remote tables about its names.
    pub answers: Answers,
    /// The client's login, if it is known.
    pub login: Option<String>,
    /// The name of the listener that the mail server uses, if it has one.
    pub listener: Option<String>,
    /// The mail server's queue id.
    pub id: Option<String>,
    /// The raw Message-ID, perhaps truncated. No decision depends on it.
    pub message_id: Option<String>,
    /// The time of the verdict, in seconds since 1970, for rehearsals that end at a date.
    pub now: u64,
    /// Whether actions are paused now, and so only rehearsed.
    pub is_paused: bool,
    /// The size of the raw message, in bytes.
    pub size: Option<u64>,
}

impl Envelope {
    /// The queue id, or `NOQUEUE`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("NOQUEUE")
    }

    /// The origin that policies match.
    #[must_use]
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            listener: self.listener.as_deref(),
            client: self.client,
            login: self.login.as_deref(),
            authenticated: self.authenticated,
        }
    }

    /// The account of outbound mail: the login, or else the client's address.
    #[must_use]
    pub fn account(&self) -> String {
        match (&self.login, self.client) {
            (Some(login), _) => login.to_lowercase(),
            (None, Some(ip)) => format!("[{ip}]"),
            (None, None) => "[local]".to_owned(),
        }
    }

    /// The client's network, if it is known.
    #[must_use]
    pub fn network(&self) -> Option<ClientNetwork> {
        self.client.map(ClientNetwork::of)
    }
}
