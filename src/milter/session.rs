// SPDX-License-Identifier: GPL-3.0-or-later
//! One connection of the MTA, and the message that is on its way through it. Knows nothing of the milter protocol.

use crate::activity::Door;
use crate::judging::{Message, Service, address};
use bulkmark_verdict::Envelope;
use std::net::IpAddr;
use std::sync::Arc;

/// Who speaks SMTP to the MTA.
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
    /// Who speaks SMTP to the MTA, and on which listener the MTA asks: an envelope without a message.
    client: Envelope,
    /// Whether the client's address could not be read: it is then not local mail.
    is_unknown: bool,
    pub(super) message: Option<Message>,
}

impl Session {
    pub(super) fn new(service: Arc<Service>, listener: Option<&str>) -> Self {
        let client = Envelope { listener: listener.map(str::to_owned), ..Envelope::default() };
        Self { service, client, is_unknown: false, message: None }
    }

    /// Whether mail is verified here, by the rules of now.
    pub(super) fn verifies(&self) -> bool {
        self.service.rules.load().verifies()
    }

    /// Whether recipients are taken out of messages, by the rules of now.
    pub(super) fn removes_traps(&self) -> bool {
        let rules = self.service.rules.load();
        rules.traps.discards() && !rules.traps.is_empty()
    }

    /// The MTA tells who connected. A host name in brackets, or "unknown", is none.
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

    /// No client, on this listener.
    fn nobody(&mut self) -> Envelope {
        Envelope { listener: self.client.listener.take(), ..Envelope::default() }
    }

    /// The SMTP client is gone.
    pub(super) fn disconnect(&mut self) {
        self.client = self.nobody();
        self.is_unknown = false;
        self.message = None;
    }

    /// A message begins. Its client may have authenticated, mostly with a name.
    pub(super) fn mail(&mut self, sender: &str, authenticated: bool, login: Option<String>) {
        let sender = Some(address(sender).to_owned());
        let envelope = Envelope { sender, authenticated, login, ..self.client.clone() };
        let mut message = Message::new(&self.service, envelope, Door::Milter);
        if self.is_unknown {
            message.client_is_unknown();
        }
        self.message = Some(message);
    }
}
