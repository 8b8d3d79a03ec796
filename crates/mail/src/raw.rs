// SPDX-License-Identifier: GPL-3.0-or-later
//! A received message: its few needed header fields, and the body.

use super::decode::{self, Correspondents, Fields};
use super::entity;
use super::mime::{self, Visitor};

/// Bytes of body that are kept; a longer message is judged by these. Postfix accepts 10 MB by default, and sites that raise it stay near 25 to
/// 50 MB. Many large messages at once must not exhaust the machine.
pub const MAX_BODY: usize = 32 << 20;

/// Bytes of the original header, for verifying signatures over it.
pub const MAX_HEADERS: usize = 256 << 10;

/// The header fields needed to read the body or to identify the sender, each with the bytes kept of all fields of its name; all others are
/// dropped on arrival, so that neither their number nor their content matters. A sender who writes more loses the rest and gains nothing by
/// it. Postfix truncates each field at 100 KiB; needed fields are a few hundred bytes.
const KEPT: [(&str, usize); 6] = [
    ("content-type", 32 << 10),
    ("content-transfer-encoding", 4 << 10),
    ("content-disposition", 32 << 10),
    ("from", 128 << 10),
    ("list-id", 8 << 10),
    ("message-id", 8 << 10),
];

/// Fields with claims of others about a message. Only the first of these are kept: mail servers write theirs above the sender's.
const CLAIMS: [&str; 2] = ["authentication-results", "dkim-signature"];

/// Kept fields of each name; mail servers write a few, and verify a few signatures.
const MAX_CLAIMS: usize = 20;

/// Bytes of such a field; a signature with a key of 4,096 bits takes 1 to 2 KiB.
const MAX_CLAIM: usize = 4 << 10;

/// Fields with others' addresses. The first of each is kept, from its beginning.
const ADDRESSES: [&str; 3] = ["reply-to", "to", "cc"];

/// Bytes of such a field, some hundred addresses.
const MAX_ADDRESSES: usize = 8 << 10;

/// A message under construction; complete after its last body chunk.
#[derive(Debug, Clone, Default)]
pub struct RawMessage {
    /// The kept header fields, the empty line once the body began, and the body.
    bytes: Vec<u8>,
    /// Where the body begins; 0 before that.
    body: usize,
    /// Bytes kept of each of [`KEPT`].
    kept: [usize; KEPT.len()],
    /// Number of fields received of each of [`CLAIMS`].
    claims: [usize; CLAIMS.len()],
    /// Whether a field of each of [`ADDRESSES`] was received.
    addresses: [bool; ADDRESSES.len()],
    /// All original header fields, if signatures over them may be verified.
    exact: Option<Exact>,
}

/// Original header fields, each with its line end; none if they exceed [`MAX_HEADERS`] together.
#[derive(Debug, Clone, Default)]
struct Exact {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Exact {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        // Mail servers pass the lines of a folded field without the CR of their line ends.
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        if self.is_over || self.bytes.len() + name.len() + 2 * value.len() > MAX_HEADERS {
            *self = Self { bytes: Vec::new(), is_over: true };
            return;
        }
        self.bytes.extend_from_slice(name);
        self.bytes.push(b':');
        for (n, line) in value.split(|&byte| byte == b'\n').enumerate() {
            self.bytes.extend_from_slice(if n > 0 { b"\r\n" } else { b"" });
            self.bytes.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        }
        self.bytes.extend_from_slice(b"\r\n");
    }
}

impl RawMessage {
    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty message that also keeps its original header.
    #[must_use]
    pub fn exact() -> Self {
        Self { exact: Some(Exact::default()), ..Self::default() }
    }

    /// A whole message in its wire or file form, with CRLF or LF line ends, or CR if it has no other. An mbox `From ` line in front is ignored.
    #[must_use]
    pub fn from_bytes(raw: &[u8]) -> Self {
        Self::new().fill(raw)
    }

    /// The same, keeping its original header.
    #[must_use]
    pub fn exact_from_bytes(raw: &[u8]) -> Self {
        Self::exact().fill(raw)
    }

    fn fill(self, raw: &[u8]) -> Self {
        let mut message = self;
        // Line ends of old machines, if there are no others.
        let by_return = (memchr::memchr(b'\n', raw).is_none()).then(|| entity::with_line_feeds(raw));
        let raw = by_return.as_deref().unwrap_or(raw);
        let raw = if raw.starts_with(b"From ") { entity::after_line(raw) } else { raw };
        let (head, body) = entity::split_entity(raw);
        for field in decode::exact_fields_of(head) {
            if let Some(colon) = memchr::memchr(b':', field) {
                message.header(&field[..colon], &field[colon + 1..]);
            }
        }
        message.body(body);
        message
    }

    /// Adds a header field, in order; `value` includes the blank behind the colon, and may have folds.
    pub fn header(&mut self, name: &[u8], value: &[u8]) {
        if let Some(exact) = &mut self.exact {
            exact.add(name, value);
        }
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        // Programs that remove forged fields search for the plain name: a name with a blank behind it is another one.
        if let Some(claim) = CLAIMS.iter().position(|claim| is(claim)) {
            self.claims[claim] += 1;
            if self.claims[claim] <= MAX_CLAIMS {
                // A field that is too long stays as an unreadable one: otherwise the one below would seem to be on top.
                self.keep(name, if value.len() <= MAX_CLAIM { value } else { b"" });
            }
            return;
        }
        let name = name.trim_ascii();
        let is_it = |wanted: &&str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if let Some(field) = ADDRESSES.iter().position(is_it) {
            if !std::mem::replace(&mut self.addresses[field], true) {
                self.keep_addresses(name, value);
            }
            return;
        }
        let Some(field) = KEPT.iter().position(|(kept, _)| name.eq_ignore_ascii_case(kept.as_bytes())) else {
            return;
        };
        let room = KEPT[field].1 - self.kept[field];
        if room > 0 {
            let value = value.trim_ascii();
            let value = &value[..value.len().min(room)];
            // An empty field takes room, too: the number of fields is bounded.
            self.kept[field] = KEPT[field].1.min(self.kept[field] + value.len() + name.len() + 4);
            self.keep(name, value);
        }
    }

    /// Adds the beginning of an address field, up to a comma.
    fn keep_addresses(&mut self, name: &[u8], value: &[u8]) {
        let value = match value.get(..MAX_ADDRESSES) {
            Some(beginning) => &value[..memchr::memrchr(b',', beginning).unwrap_or(0)],
            None => value,
        };
        self.keep(name, value);
    }

    /// Adds a needed field.
    fn keep(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value.trim_ascii());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Adds a piece of the body; pieces may end anywhere. Everything past [`MAX_BODY`] is dropped.
    pub fn body(&mut self, chunk: &[u8]) {
        if self.body == 0 {
            self.bytes.extend_from_slice(b"\r\n");
            self.body = self.bytes.len();
        }
        let room = MAX_BODY - (self.bytes.len() - self.body);
        self.bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if let (Some(exact), true) = (&mut self.exact, chunk.len() > room) {
            // A signature over the whole body cannot be verified.
            *exact = Exact { bytes: Vec::new(), is_over: true };
        }
    }

    /// Bytes that this message holds in memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.exact.as_ref().map_or(0, |exact| exact.bytes.len())
    }

    /// All original header fields, with CRLF line ends and without the empty line at the end; `None` if they were not kept, if they exceed
    /// [`MAX_HEADERS`], or if the body is not all here.
    #[must_use]
    pub fn exact_header(&self) -> Option<&[u8]> {
        self.exact.as_ref().filter(|exact| !exact.is_over).map(|exact| &*exact.bytes)
    }

    /// The original body, up to [`MAX_BODY`].
    #[must_use]
    pub fn exact_body(&self) -> &[u8] {
        if self.body == 0 { &[] } else { &self.bytes[self.body..] }
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sender, list and message id from the header.
    #[must_use]
    pub fn fields(&self) -> Fields {
        Fields::of(entity::split_entity(&self.bytes).0)
    }

    /// The addresses in From, Reply-To, and the first To and Cc.
    #[must_use]
    pub fn correspondents(&self) -> Correspondents {
        Correspondents::of(entity::split_entity(&self.bytes).0)
    }

    /// Passes the content to `visitor`, in the order of the message.
    pub fn visit(&self, visitor: &mut dyn Visitor) {
        mime::walk(&self.bytes, visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_any_form() {
        let raw =
            b"From mbox Sat Nov 21\r\nReceived: x\r\n y\r\nFROM: \"A, B\" <a@example.org>, b@Example.Net\r\n\
                    List-Id: News <news.Example.org>\r\nMessage-ID: <1@x>\r\nSubject: a\r\n b\r\n\r\nbody";
        let fields = RawMessage::from_bytes(raw).fields();
        assert_eq!(fields.from, ["a@example.org", "b@example.net"]);
        assert_eq!(fields.list_id.as_deref(), Some("news.example.org"));
        assert_eq!(fields.message_id.as_deref(), Some("<1@x>"));
        let lf = raw.iter().copied().filter(|&b| b != b'\r').collect::<Vec<_>>();
        assert_eq!(RawMessage::from_bytes(&lf).fields(), fields);
        // Line ends of old machines, if there are no others.
        let cr = RawMessage::from_bytes(
            &lf.iter().map(|&b| if b == b'\n' { b'\r' } else { b }).collect::<Vec<_>>(),
        );
        assert_eq!((cr.fields(), cr.exact_body()), (fields, &b"body"[..]));
    }

    /// A verifier of signatures needs this.
    #[test]
    fn an_exact_message_is_as_it_came() {
        let mut message = RawMessage::exact();
        for (name, value) in [("Subject", " two\n lines"), ("X-None", "x"), ("X-CRLF", "\ta\r\n\tb ")] {
            message.header(name.as_bytes(), value.as_bytes());
        }
        message.body(b"a\r\nb");
        message.body(b"\r\n");
        let header = b"Subject: two\r\n lines\r\nX-None:x\r\nX-CRLF:\ta\r\n\tb \r\n";
        assert_eq!(message.exact_header(), Some(&header[..]));
        assert_eq!(message.exact_body(), b"a\r\nb\r\n");
        let file = [&header[..], b"\r\na\r\nb\r\n"].concat();
        let read = RawMessage::exact_from_bytes(&file);
        assert_eq!((read.exact_header(), read.exact_body()), (message.exact_header(), message.exact_body()));
        for _ in 0..MAX_HEADERS / 100 {
            message.header(b"X", &[b'\n'; 99]);
        }
        assert!(message.exact_header().is_none() && message.len() < 100);
    }

    #[test]
    fn correspondents_are_found() {
        let many = "a@b.example, ".repeat(2000);
        let raw = format!(
            "From: A <A@b.example>\nTo: \"x, y\" <C@d.example>,\n e@f.example\nCc: {many}\nTo: no@b.example\n\
             reply-to : g@H.example\n\nbody"
        );
        let message = RawMessage::from_bytes(raw.as_bytes());
        let found = message.correspondents();
        assert_eq!(
            (found.from, found.reply_to),
            (vec!["a@b.example".to_owned()], vec!["g@h.example".to_owned()])
        );
        assert_eq!(found.to[..3], ["c@d.example", "e@f.example", "a@b.example"]);
        assert!(found.to.len() < 700 && message.len() < 10_000);
        assert_eq!(message.exact_body(), b"body");
    }

    #[test]
    fn bounds_are_kept() {
        let mut message = RawMessage::new();
        for _ in 0..100_000 {
            message.header(b"Received", &[b'x'; 100]);
        }
        assert!(message.is_empty());
        // A sender who writes too much of one field loses the rest of that field, and nothing else.
        let all = KEPT.iter().map(|(name, _)| *name).chain(CLAIMS).chain(ADDRESSES);
        for name in all.clone() {
            message.header(name.as_bytes(), b"first@example.org");
            (0..10_000).for_each(|_| message.header(name.as_bytes(), b""));
            (0..10_000).for_each(|_| message.header(name.as_bytes(), &[b'x'; 100]));
            message.header(name.as_bytes(), &[b'x'; 1 << 20]);
        }
        message.body(b"body");
        assert!(message.len() < 512 << 10, "{}", message.len());
        assert_eq!(message.fields().from[0], "first@example.org");
        assert_eq!(message.fields().message_id.as_deref(), Some("first@example.org"));
        assert_eq!(message.exact_body(), b"body");

        let mut message = RawMessage::exact();
        message.header(b"From", b" a@example.org");
        for _ in 0..1000 {
            message.body(&[b'x'; 65535]);
        }
        assert_eq!((message.exact_body().len(), message.exact_header()), (MAX_BODY, None));
        assert_eq!(message.fields().from, ["a@example.org"]);
    }
}
