// SPDX-License-Identifier: GPL-3.0-or-later
//! Data from the header of a delivered message: arrival, envelope and subject.

use super::decode::{fields_of, name_and_value, subject};
use super::entity;
use super::received::Received;
use mail_parser::DateTime;

/// Bytes of a field's value that are read; a Received field takes some hundreds.
const MAX_VALUE: usize = 4 << 10;

/// Received fields that are read; a message has one for each mail server on its way.
const MAX_RECEIVED: usize = 30;

/// Header data written by mail servers and the sender's program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Arrival in seconds since 1970: the date of the first Received field, or else of the Date field.
    pub time: Option<u64>,
    /// The envelope sender written by the last mail server; empty for the null sender.
    pub return_path: Option<String>,
    /// The envelope recipient written by the last mail server.
    pub delivered_to: Option<String>,
    /// The clients of its mail servers, as these describe them, the last first.
    pub received: Vec<Received>,
    /// The Subject in plain text; it may contain any character.
    pub subject: String,
}

impl Stored {
    /// Reads the header of a message, whole or truncated. Ignores an mbox `From ` line in front.
    #[must_use]
    pub fn of(raw: &[u8]) -> Self {
        let mut stored = Self::default();
        let mut date = None;
        for field in fields_of(head(raw)) {
            let Some((name, value)) = name_and_value(field) else { continue };
            let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
            if is("received") && stored.received.len() < MAX_RECEIVED {
                if stored.received.is_empty() {
                    stored.time = memchr::memrchr(b';', value).and_then(|at| time(&value[at + 1..]));
                }
                stored.received.push(Received::of(&String::from_utf8_lossy(cut(value))));
            } else if is("date") && date.is_none() {
                date = time(value);
            } else if is("return-path") && stored.return_path.is_none() {
                stored.return_path = Some(address(value));
            } else if (is("delivered-to") || is("x-original-to")) && stored.delivered_to.is_none() {
                stored.delivered_to = Some(address(value));
            } else if is("subject") && stored.subject.is_empty() {
                stored.subject = subject(cut(value));
            }
        }
        stored.time = stored.time.or(date);
        stored
    }
}

/// The values of all fields of this name in the header of a whole message, as written, truncated.
pub fn values<'a>(raw: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let fields = fields_of(head(raw)).filter_map(name_and_value);
    let of_name = fields.filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
    of_name.map(|(_, value)| cut(value))
}

fn head(raw: &[u8]) -> &[u8] {
    let raw = if raw.starts_with(b"From ") { entity::after_line(raw) } else { raw };
    entity::split_entity(raw).0
}

fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(MAX_VALUE)]
}

fn address(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(cut(value)).trim().to_lowercase();
    text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(&text).to_owned()
}

/// A date in the format of RFC 5322, after 1970.
fn time(value: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(cut(value)).replace(['\r', '\n'], " ");
    let date = DateTime::parse_rfc822(text.trim()).filter(DateTime::is_valid)?;
    u64::try_from(date.to_timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_received_has_the_time() {
        let raw = b"From x Sat Nov 21 10:00:00 2026\nReturn-Path: <Bounce@Example.org>\nDelivered-To: user@example.net\n\
                    Received: from a (a [192.0.2.1]) by mx; with; SMTP;\n\tSat, 21 Nov 2026 11:00:05 +0100 (CET)\n\
                    Received: from b by a; Fri, 20 Nov 2026 10:00:00 +0000\nDate: Thu, 1 Jan 2099 00:00:00 +0000\n\
                    Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= from\n us\n\nbody\nSubject: no\n";
        let stored = Stored::of(raw);
        assert_eq!(stored.time, Some(1_795_255_205));
        assert_eq!(stored.return_path.as_deref(), Some("bounce@example.org"));
        assert_eq!(stored.delivered_to.as_deref(), Some("user@example.net"));
        assert_eq!(stored.subject, "Grüße from us");
        let by: Vec<&str> = stored.received.iter().map(|received| &*received.by).collect();
        assert_eq!((by, stored.received[0].client), (vec!["mx", "a"], "192.0.2.1".parse().ok()));
    }

    #[test]
    fn without_received_the_date_has_the_time() {
        let time = |text: &str| Stored::of(text.as_bytes()).time;
        assert_eq!(time("Date: Sat, 21 Nov 2026 10:00:05 GMT\n\n"), Some(1_795_255_205));
        assert_eq!(time("Received: by mx\nDate: 21 Nov 2026 10:00:05 +0000\n\n"), Some(1_795_255_205));
        assert_eq!(time("Received: by mx; yesterday\n\n"), None);
        assert_eq!(time("Date: 99 Foo 2026 77:00:05 +0000\n\n"), None);
        assert_eq!(time("Date: 1 Jan 1960 00:00:00 +0000\n\n"), None);
        assert_eq!(time(""), None);
    }
}
