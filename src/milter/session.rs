// SPDX-License-Identifier: GPL-3.0-or-later
//! One connection of the MTA, and the message that is on its way through it. Knows nothing of the milter protocol.

use super::budget::Account;
use super::service::{InFlight, Service};
use crate::mail::RawMessage;
use crate::verdict::{Envelope, Exempt, Rules, Unknown};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Recipients of one message that are kept. Postfix takes 1,000 by default.
const MAX_RECIPIENTS: usize = 10_000;

/// Bytes of all their addresses: on average 100 for each.
const MAX_RECIPIENT_BYTES: usize = MAX_RECIPIENTS * 100;

/// Fields of our own name that are removed, far more than mail systems would ever add. Each is a request to the MTA, which
/// looks for it among all fields.
pub(super) const MAX_FORGED: usize = 1000;

/// Bytes of the name of an account that are kept: all of an address (RFC 5321, 4.5.3.1).
const MAX_LOGIN: usize = 320;

/// Bytes of a subject, or of a Message-ID, that are kept.
const MAX_FIELD: usize = 500;

/// Bytes of the line between header and body.
const EMPTY_LINE: u64 = 2;

/// A connection.
pub(super) struct Session {
    pub(super) service: Arc<Service>,
    /// Who speaks SMTP to the MTA, and on which listener the MTA asks: an envelope without a message.
    client: Envelope,
    pub(super) message: Option<Message>,
}

/// A message under way.
pub(super) struct Message {
    pub(super) rules: Arc<Rules>,
    pub(super) envelope: Envelope,
    recipient_bytes: usize,
    /// Why the message is neither counted nor judged.
    pub(super) exempt: Option<Exempt>,
    /// Why it cannot be judged.
    pub(super) unjudged: Option<Unknown>,
    pub(super) raw: RawMessage,
    /// Header fields of our own name that came with it.
    pub(super) forged: usize,
    /// Whether all recipients are known.
    has_content: bool,
    pub(super) started: Instant,
    /// Whether a program answered by itself, as it says: nobody wrote that.
    pub(super) is_automatic: bool,
    /// Its Subject field as it came, cut short; where somebody wants to see it.
    pub(super) subject: Option<Vec<u8>>,
    wants_subject: bool,
    account: Account,
    _in_flight: InFlight,
}

impl Session {
    pub(super) fn new(service: Arc<Service>, listener: Option<&str>) -> Self {
        let client = Envelope { listener: listener.map(str::to_owned), ..Envelope::default() };
        Self { service, client, message: None }
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
    pub(super) fn connect(&mut self, host: &str, ip: Option<IpAddr>) {
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
        self.message = None;
    }

    /// A message begins. Its client may have authenticated, mostly with a name.
    pub(super) fn mail(&mut self, sender: &str, authenticated: bool, login: Option<String>) {
        let rules = self.service.rules.load_full();
        let sender = Some(address(sender).to_owned());
        let login = login.map(|mut login| {
            login.truncate(login.floor_char_boundary(MAX_LOGIN));
            login
        });
        let envelope = Envelope { sender, authenticated, login, ..self.client.clone() };
        let exempt = rules.exempt(&envelope);
        let raw = if rules.verifies() { RawMessage::exact() } else { RawMessage::new() };
        self.message = Some(Message {
            rules,
            envelope,
            recipient_bytes: 0,
            exempt,
            unjudged: None,
            raw,
            forged: 0,
            has_content: false,
            started: Instant::now(),
            is_automatic: false,
            subject: None,
            wants_subject: self.service.activity.is_recording(),
            account: self.service.budget.account(),
            _in_flight: self.service.begin_message(),
        });
    }
}

impl Message {
    /// The MTA accepted a recipient.
    pub(super) fn rcpt(&mut self, recipient: &str) {
        let recipient = address(recipient);
        self.recipient_bytes += recipient.len();
        let recipients = &mut self.envelope.recipients;
        if recipients.len() < MAX_RECIPIENTS && self.recipient_bytes <= MAX_RECIPIENT_BYTES {
            recipients.push(recipient.to_owned());
        } else {
            self.unjudged = Some(Unknown::TooManyRecipients);
        }
    }

    /// All recipients are known: if nobody wants his mail judged, it need not be kept.
    pub(super) fn content_begins(&mut self) {
        if !std::mem::replace(&mut self.has_content, true) && self.exempt.is_none() {
            let parties = self.rules.parties(&self.envelope);
            self.exempt = (!self.rules.judges_any(&parties)).then_some(Exempt::Policy);
        }
    }

    /// A header field, its value with the blank behind the colon.
    pub(super) fn header(&mut self, name: &[u8], exact: &[u8]) {
        let value = exact.trim_ascii_start();
        self.content_begins();
        if name.eq_ignore_ascii_case(self.rules.header.as_str().as_bytes()) {
            self.forged += 1;
            if self.forged > MAX_FORGED {
                self.unjudged = Some(Unknown::TooManyForged);
            }
        }
        if self.wants_subject && self.subject.is_none() && name.eq_ignore_ascii_case(b"subject") {
            self.subject = Some(cut(value).to_vec());
        }
        if self.envelope.message_id.is_none() && name.eq_ignore_ascii_case(b"message-id") {
            self.envelope.message_id = Some(String::from_utf8_lossy(cut(value)).into_owned());
        }
        // RFC 3834.
        self.is_automatic |=
            name.eq_ignore_ascii_case(b"auto-submitted") && !value.trim_ascii().eq_ignore_ascii_case(b"no");
        // With the colon, a blank and the end of the line.
        self.grow(name.len() + value.len() + 4);
        self.collect(|raw| raw.header(name, exact));
    }

    /// A piece of the body.
    pub(super) fn body(&mut self, chunk: &[u8]) {
        self.content_begins();
        self.grow(chunk.len());
        self.collect(|raw| raw.body(chunk));
    }

    /// More bytes of the message came, wanted or not.
    fn grow(&mut self, bytes: usize) {
        let size = self.envelope.size.get_or_insert(EMPTY_LINE);
        *size = size.saturating_add(bytes as u64);
    }

    /// The message as it came, and the account of its memory.
    pub(super) fn take_raw(&mut self) -> (RawMessage, Account) {
        let empty = self.account.of_same();
        (std::mem::take(&mut self.raw), std::mem::replace(&mut self.account, empty))
    }

    /// Keeps a piece of a message that will be judged, as long as there is memory for it.
    fn collect(&mut self, add: impl FnOnce(&mut RawMessage)) {
        if self.exempt.is_some() || self.unjudged.is_some() || self.raw.over().is_some() {
            return;
        }
        let before = self.raw.len();
        add(&mut self.raw);
        if self.raw.over().is_some() {
            self.account.give_back();
        } else if !self.account.take(self.raw.len().saturating_sub(before)) {
            self.unjudged = Some(Unknown::Overloaded);
            self.raw = RawMessage::new();
            self.account.give_back();
        }
    }
}

fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(MAX_FIELD)]
}

/// An address as SMTP gives it, without its angle brackets.
fn address(smtp: &str) -> &str {
    smtp.strip_prefix('<').and_then(|a| a.strip_suffix('>')).unwrap_or(smtp)
}
