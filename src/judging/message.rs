// SPDX-License-Identifier: GPL-3.0-or-later
//! A message on its way in. Knows nothing of the protocol by which it comes.

use super::budget::Account;
use super::service::{InFlight, Service};
use crate::activity::Door;
use bulkmark_mail::{RawMessage, Received};
use bulkmark_verdict::{Envelope, Exempt, Rules, Unknown};
use std::sync::Arc;
use std::time::Instant;

/// Recipients of one message that are kept. Postfix takes 1,000 by default.
pub const MAX_RECIPIENTS: usize = 10_000;

/// Bytes of the two sides of an address that are kept; RFC 5321, 4.5.3.1, has no longer ones.
const MAX_LOCAL_PART: usize = 64;
const MAX_DOMAIN: usize = 255;

/// Bytes of the name of an account that are kept: all of an address.
const MAX_LOGIN: usize = 320;

/// Bytes of a name of the client, or of a queue id, that are kept. Domains have 255 (RFC 1035, 2.3.4), and a whole HELO has 512 (RFC 5321,
/// 4.5.3.1.4).
const MAX_NAME: usize = 512;

/// Fields of our own name that are removed, far more than mail systems would ever add. Each is a request to the MTA, which
/// looks for it among all fields. Those beyond stay, below ours.
pub const MAX_FORGED: usize = 1000;

/// Bytes of a subject, or of a Message-ID, that are kept.
const MAX_FIELD: usize = 500;

/// Bytes of the line between header and body.
const EMPTY_LINE: u64 = 2;

/// A message under way.
pub struct Message {
    /// Those under which it began.
    pub rules: Arc<Rules>,
    /// Who sends it to whom.
    pub envelope: Envelope,
    /// By which way it comes.
    pub(super) door: Door,
    /// Whether it is only asked about.
    pub(super) is_asked: bool,
    /// Whether it is kept even where it is not judged.
    is_explained: bool,
    /// Why the message is neither counted nor judged.
    pub exempt: Option<Exempt>,
    /// Whether the client that is known by now is one of one's own mail servers in front: the next Received field has the one before it.
    is_relayed: bool,
    /// Why it cannot be judged.
    pub(super) unjudged: Option<Unknown>,
    pub(super) raw: RawMessage,
    /// Header fields of our own name that came with it.
    pub forged: usize,
    /// Whether all recipients are known.
    has_content: bool,
    pub(super) started: Instant,
    /// Whether a program answered by itself, as it says: nobody wrote that.
    pub(super) is_automatic: bool,
    /// Its Subject field as it came, cut short; where somebody wants to see it.
    pub(super) subject: Option<Vec<u8>>,
    wants_subject: bool,
    pub(super) account: Account,
    _in_flight: InFlight,
}

impl Message {
    /// One with this envelope, without recipients yet. What comes from the mail server is told whole; what another program does not tell
    /// of a client is not known.
    #[must_use]
    pub fn new(service: &Arc<Service>, envelope: Envelope, door: Door) -> Self {
        let rules = service.rules.load_full();
        let exempt = match door {
            Door::Milter => rules.exempt(&envelope),
            Door::Http | Door::Dccifd | Door::Razor | Door::Pyzor => rules.exempt_as_told(&envelope),
        };
        let is_relayed = exempt.is_none() && rules.is_relay(envelope.client);
        let raw = if rules.verifies() { RawMessage::exact() } else { RawMessage::new() };
        Self {
            rules,
            envelope: bounded(envelope),
            door,
            is_asked: false,
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
            account: service.budget.account(),
            _in_flight: service.begin_message(),
        }
    }

    /// It does not come from a program on this machine: its client's address cannot be read.
    pub fn client_is_unknown(&mut self) {
        self.exempt = self.rules.exempt_as_told(&self.envelope);
    }

    /// It is judged and not counted, and nothing is remembered of it.
    pub const fn only_ask(&mut self) {
        self.is_asked = true;
    }

    /// It is to be explained, too, before it is judged.
    pub const fn explain(&mut self) {
        self.is_explained = true;
    }

    /// It cannot be judged.
    pub const fn fail(&mut self, why: Unknown) {
        self.unjudged = Some(why);
    }

    /// The MTA accepted a recipient.
    pub fn rcpt(&mut self, recipient: &str) {
        let recipient = address(recipient);
        let recipients = &mut self.envelope.recipients;
        if recipients.len() < MAX_RECIPIENTS {
            recipients.push(shortened(recipient));
        } else {
            self.unjudged = Some(Unknown::TooManyRecipients);
        }
    }

    /// All recipients are known: if nobody wants his mail judged, it need not be kept.
    pub fn content_begins(&mut self) {
        if !std::mem::replace(&mut self.has_content, true) && self.exempt.is_none() {
            let parties = self.rules.parties(&self.envelope);
            self.exempt = (!self.rules.judges_any(&parties)).then_some(Exempt::Policy);
        }
    }

    /// A header field, its value with the blank behind the colon.
    pub fn header(&mut self, name: &[u8], exact: &[u8]) {
        let value = exact.trim_ascii_start();
        if self.is_relayed && name.eq_ignore_ascii_case(b"received") {
            self.pass_relay(value);
        }
        // For whom it is judged depends on the client.
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
        // With the colon, a blank and the end of the line.
        self.grow(name.len() + value.len() + 4);
        self.collect(|raw| raw.header(name, exact));
    }

    /// A mail server of one's own wrote this Received field: the message comes from the client that it tells, or, if that is such a server
    /// as well or a filter beside it, from the one of the next field.
    fn pass_relay(&mut self, value: &[u8]) {
        let Received { client, helo, .. } = Received::of(&String::from_utf8_lossy(value));
        if client.is_some_and(|ip| ip.is_loopback()) {
            return;
        }
        self.is_relayed = self.rules.is_relay(client);
        if client.is_none() {
            return;
        }
        // Nobody here verified a name of it.
        self.envelope = bounded(Envelope { client, helo, host: None, ..std::mem::take(&mut self.envelope) });
        self.exempt = self.exempt.or_else(|| self.rules.exempt_as_told(&self.envelope));
    }

    /// A piece of the body.
    pub fn body(&mut self, chunk: &[u8]) {
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
        if self.exempt.is_some() && !self.is_explained || self.unjudged.is_some() || self.raw.over().is_some()
        {
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

/// An envelope of which each text is short. Programs at doors may tell any; it is kept for the status page, and the log has it in a line
/// that waits for the log daemon.
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

/// An address whose sides are as long as they may be: a longer one must not keep its message from being judged.
fn shortened(address: &str) -> String {
    // Some mail servers take a longer local part; so only the whole decides.
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

/// An address as SMTP gives it, without its angle brackets.
#[must_use]
pub fn address(smtp: &str) -> &str {
    smtp.strip_prefix('<').and_then(|a| a.strip_suffix('>')).unwrap_or(smtp)
}
