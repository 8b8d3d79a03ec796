// SPDX-License-Identifier: GPL-3.0-or-later
//! One connection of the MTA, and the message in transfer. Independent of the milter protocol.

use crate::activity::Interface;
use crate::judging::{Message, Service, address};
use bulkmark_verdict::Envelope;
use std::net::IpAddr;
use std::sync::Arc;

/// The SMTP client of the MTA.
#[derive(Debug, Clone, Copy)]
pub(super) enum Client {
    /// A client with this address.
    At(IpAddr),
    /// A program on this machine.
    Local,
    /// A client whose address cannot be read.
    Unknown,
}

/// A connection.
pub(super) struct Session {
    pub(super) service: Arc<Service>,
    /// The SMTP client of the MTA, and the listener: an envelope without a message.
    client: Envelope,
    /// Whether the client's address is unreadable: then it is not local mail.
    is_unknown: bool,
    pub(super) message: Option<Message>,
}

impl Session {
    pub(super) fn new(service: Arc<Service>, listener: Option<&str>) -> Self {
        let client = Envelope { listener: listener.map(str::to_owned), ..Envelope::default() };
        Self { service, client, is_unknown: false, message: None }
    }

    /// Whether the milter verifies mail, by the current rules.
    pub(super) fn verifies(&self) -> bool {
        self.service.rules.load().verifies()
    }

    /// Whether traps are removed from envelopes, by the current rules.
    pub(super) fn removes_traps(&self) -> bool {
        let rules = self.service.rules.load();
        rules.traps.discards() && !rules.traps.is_empty()
    }

    /// Takes the connected client. A host name in brackets, or "unknown", is none.
    pub(super) fn connect(&mut self, host: &str, client: Client) {
        let ip = match client {
            Client::At(ip) => Some(ip),
            Client::Local | Client::Unknown => None,
        };
        self.is_unknown = matches!(client, Client::Unknown);
        let verified = !host.is_empty() && !host.starts_with('[') && !host.eq_ignore_ascii_case("unknown");
        self.client = Envelope {
            client: ip.map(|ip| ip.to_canonical()),
            host: verified.then(|| host.to_owned()),
            ..self.nobody()
        };
    }

    /// Takes the client's HELO name, as much of it as a domain may have (RFC 5321, 4.5.3.1.2).
    pub(super) fn helo(&mut self, name: &str) {
        self.client.helo = Some(name.chars().take(255).collect());
    }

    /// An envelope without client, on this listener.
    fn nobody(&mut self) -> Envelope {
        Envelope { listener: self.client.listener.take(), ..Envelope::default() }
    }

    /// The SMTP client has disconnected.
    pub(super) fn disconnect(&mut self) {
        self.client = self.nobody();
        self.is_unknown = false;
        self.message = None;
    }

    /// Begins a message. Its client may have authenticated, usually with a login.
    pub(super) fn mail(&mut self, sender: &str, authenticated: bool, login: Option<String>) {
        let sender = Some(address(sender).to_owned());
        let envelope = Envelope { sender, authenticated, login, ..self.client.clone() };
        let mut message = Message::new(&self.service, envelope, Interface::Milter);
        if self.is_unknown {
            message.client_is_unknown();
        }
        self.message = Some(message);
    }
}
