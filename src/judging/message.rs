// SPDX-License-Identifier: GPL-3.0-or-later
//! An incoming message, independent of its protocol.

use super::budget::Reservation;
use super::service::{InFlight, Service};
use crate::activity::Interface;
use bulkmark_mail::{RawMessage, Received};
use bulkmark_verdict::{Envelope, Exempt, Rules, Unknown};
use std::sync::Arc;
use std::time::Instant;

/// The most recipients of a message that are kept. Postfix accepts 1,000 by default.
pub const MAX_RECIPIENTS: usize = 10_000;

/// The most bytes of the two sides of an address that are kept; RFC 5321, 4.5.3.1, has no longer ones.
const MAX_LOCAL_PART: usize = 64;
const MAX_DOMAIN: usize = 255;

/// The most bytes of an account's name that are kept: a whole address (RFC 5321, 4.5.3.1).
const MAX_LOGIN: usize = 320;

/// The most bytes of a client's name, or of a queue id, that are kept. Domains have 255 (RFC 1035, 2.3.4), and a whole HELO command has 512
/// (RFC 5321, 4.5.3.1.4).
const MAX_NAME: usize = 512;

/// The most fields with our own name that are removed, far more than mail systems would ever add. Each is a request to the MTA, which
/// searches all fields for it. The others stay, below ours.
pub const MAX_FORGED: usize = 1000;

/// The most bytes of a subject, or of a Message-ID, that are kept.
const MAX_FIELD: usize = 500;

/// The size of the line between header and body, in bytes.
const EMPTY_LINE: u64 = 2;

/// An incoming message.
pub struct Message {
    /// The rules under which it began.
    pub rules: Arc<Rules>,
    /// The envelope.
    pub envelope: Envelope,
    /// The interface that it comes through.
    pub(super) interface: Interface,
    /// Whether it is only looked up.
    pub(super) is_lookup: bool,
    /// Whether it is kept even if it is not judged.
    is_explained: bool,
    /// The reason why the message is neither counted nor judged.
    pub exempt: Option<Exempt>,
    /// Whether the current client is one of one's own mail servers in front, so that the next Received field has the client before it.
    is_relayed: bool,
    /// The reason why it cannot be judged.
    pub(super) unjudged: Option<Unknown>,
    pub(super) raw: RawMessage,
    /// The number of its header fields with our own name.
    pub forged: usize,
    /// Whether all recipients are known.
    has_content: bool,
    pub(super) started: Instant,
    /// Whether it is an automatic answer, as it claims.
    pub(super) is_automatic: bool,
    /// Its raw Subject field, truncated, if it is recorded.
    pub(super) subject: Option<Vec<u8>>,
    wants_subject: bool,
    /// The memory of `raw`.
    pub(super) reservation: Reservation,
    /// The memory of the recipients: a whole message's worth, if they are many and long.
    recipients_memory: Reservation,
    _in_flight: InFlight,
}

impl Message {
    /// A message with this envelope, without recipients yet. The milter's envelope is complete; at other interfaces, a missing client is
    /// unknown.
    #[must_use]
    pub fn new(service: &Arc<Service>, envelope: Envelope, interface: Interface) -> Self {
        let rules = service.rules.load_full();
        let exempt = match interface {
            Interface::Milter => rules.exempt(&envelope),
            Interface::Http | Interface::Dccifd | Interface::Razor | Interface::Pyzor => {
                rules.exempt_if_client_known(&envelope)
            }
        };
        let is_relayed = exempt.is_none() && rules.is_relay(envelope.client);
        let raw = if rules.verifies() { RawMessage::exact() } else { RawMessage::new() };
        Self {
            rules,
            envelope: bounded(envelope),
            interface,
            is_lookup: false,
            is_explained: false,
            exempt,
            is_relayed,
            unjudged: None,
            raw,
            forged: 0,
            has_content: false,
            started: Instant::now(),
            is_automatic: false,
            subject: None,
            wants_subject: service.activity.is_recording(),
            reservation: service.reservation(),
            recipients_memory: service.reservation(),
            _in_flight: service.begin_message(),
        }
    }

    /// The client's address cannot be read, so it is no local program.
    pub fn client_is_unknown(&mut self) {
        self.exempt = self.rules.exempt_if_client_known(&self.envelope);
    }

    /// It is judged but not counted, and not remembered.
    pub const fn only_look_up(&mut self) {
        self.is_lookup = true;
    }

    /// It is also explained, before it is judged.
    pub const fn explain(&mut self) {
        self.is_explained = true;
    }

    /// It cannot be judged.
    pub const fn fail(&mut self, why: Unknown) {
        self.unjudged = Some(why);
    }

    /// The MTA accepted a recipient.
    pub fn rcpt(&mut self, recipient: &str) {
        let recipient = shortened(address(recipient));
        let recipients = &mut self.envelope.recipients;
        if recipients.len() >= MAX_RECIPIENTS {
            self.unjudged = Some(Unknown::TooManyRecipients);
        } else if self.recipients_memory.take(size_of::<String>() + recipient.len()) {
            recipients.push(recipient);
        } else {
            self.unjudged = Some(Unknown::Overloaded);
        }
    }

    /// All recipients are known: if no policy judges their mail, it need not be kept.
    pub fn content_begins(&mut self) {
        if !std::mem::replace(&mut self.has_content, true) && self.exempt.is_none() {
            let parties = self.rules.parties(&self.envelope);
            self.exempt = (!self.rules.judges_any(&parties)).then_some(Exempt::Policy);
        }
    }

    /// A header field; the value begins with the blank after the colon.
    pub fn header(&mut self, name: &[u8], exact: &[u8]) {
        let value = exact.trim_ascii_start();
        if self.is_relayed && name.eq_ignore_ascii_case(b"received") {
            self.pass_relay(value);
        }
        // The policies depend on the client.
        if !self.is_relayed {
            self.content_begins();
        }
        if name.eq_ignore_ascii_case(self.rules.header.as_str().as_bytes()) {
            self.forged += 1;
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
        // With the colon, a blank and the line end.
        self.grow(name.len() + value.len() + 4);
        self.collect(|raw| raw.header(name, exact));
    }

    /// One's own mail server wrote this Received field: the client is the one that it names, or, if that is such a server or a filter beside
    /// it, the one of the next field.
    fn pass_relay(&mut self, value: &[u8]) {
        let Received { client, helo, .. } = Received::of(&String::from_utf8_lossy(value));
        if client.is_some_and(|ip| ip.is_loopback()) {
            return;
        }
        self.is_relayed = self.rules.is_relay(client);
        if client.is_none() {
            return;
        }
        // Its name is not verified here.
        self.envelope = bounded(Envelope { client, helo, host: None, ..std::mem::take(&mut self.envelope) });
        self.exempt = self.exempt.or_else(|| self.rules.exempt_if_client_known(&self.envelope));
    }

    /// A piece of the body.
    pub fn body(&mut self, chunk: &[u8]) {
        self.content_begins();
        self.grow(chunk.len());
        self.collect(|raw| raw.body(chunk));
    }

    /// Adds to the size of the message, kept or not.
    fn grow(&mut self, bytes: usize) {
        let size = self.envelope.size.get_or_insert(EMPTY_LINE);
        *size = size.saturating_add(bytes as u64);
    }

    /// The raw message, and the reservation of its memory.
    pub(super) fn take_raw(&mut self) -> (RawMessage, Reservation) {
        let empty = self.reservation.new_empty();
        (std::mem::take(&mut self.raw), std::mem::replace(&mut self.reservation, empty))
    }

    /// Keeps a piece of a message to judge, as long as there is memory for it.
    fn collect(&mut self, add: impl FnOnce(&mut RawMessage)) {
        if self.exempt.is_some() && !self.is_explained || self.unjudged.is_some() {
            return;
        }
        let before = self.raw.len();
        add(&mut self.raw);
        if !self.reservation.take(self.raw.len().saturating_sub(before)) {
            self.unjudged = Some(Unknown::Overloaded);
            self.raw = RawMessage::new();
            self.reservation.release();
        }
    }
}

/// An envelope with short texts. Programs at interfaces may send any; the status page keeps them, and log lines with them wait for the log
/// daemon.
fn bounded(envelope: Envelope) -> Envelope {
    let cut = |text: Option<String>, most: usize| {
        text.map(|mut text| {
            text.truncate(text.floor_char_boundary(most));
            text
        })
    };
    Envelope {
        host: cut(envelope.host, MAX_NAME),
        helo: cut(envelope.helo, MAX_NAME),
        login: cut(envelope.login, MAX_LOGIN),
        id: cut(envelope.id, MAX_NAME),
        sender: envelope.sender.map(|sender| shortened(&sender)),
        ..envelope
    }
}

/// An address with truncated sides: a long one must not keep its message from being judged.
fn shortened(address: &str) -> String {
    // Some mail servers accept a longer local part; so only the total length matters.
    if address.len() <= MAX_LOCAL_PART + 1 + MAX_DOMAIN {
        return address.to_owned();
    }
    let (local, domain) = address.rsplit_once('@').unwrap_or((address, ""));
    let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    [&cut(local, MAX_LOCAL_PART), "@", &cut(domain, MAX_DOMAIN)].concat()
}

fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(MAX_FIELD)]
}

/// An SMTP address without its angle brackets.
#[must_use]
pub fn address(smtp: &str) -> &str {
    smtp.strip_prefix('<').and_then(|a| a.strip_suffix('>')).unwrap_or(smtp)
}
