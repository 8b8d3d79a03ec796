// SPDX-License-Identifier: GPL-3.0-or-later
//! The lines before a message: options, client, HELO, sender and recipients, a line each, and an empty line.

use crate::judging::MAX_RECIPIENTS;
use std::net::IpAddr;

/// The most bytes of all these lines.
const MOST: usize = 256 << 10;

/// The number of lines before the recipients.
const FIXED: usize = 4;

/// The most Received fields that can be skipped.
const MOST_SKIPPED: usize = 20;

/// The content of the answer besides letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shows {
    /// Nothing.
    #[default]
    Nothing,
    /// The header line.
    Header,
    /// The same and a table of checksums.
    Checksums,
    /// The whole message with the header line.
    Message,
}

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The content of the answer.
    pub shows: Shows,
    /// Whether it reports the message as spam.
    pub spam: bool,
    /// Whether it is only a look-up.
    pub query: bool,
    /// Whether the answer must not refuse the message.
    pub no_reject: bool,
    /// The number of Received fields to skip: one's own mail servers wrote them above the one with the client.
    pub skipped: usize,
    /// The client, if the request has it; otherwise a Received field has it.
    pub client: Option<IpAddr>,
    /// Its name.
    pub host: Option<String>,
    /// Its HELO name.
    pub helo: String,
    /// The sender.
    pub sender: String,
    /// The recipients, as far as they are kept.
    pub recipients: Vec<String>,
    /// The number of other recipients.
    pub unkept: usize,
    /// The local user of a recipient, of the first that has one.
    pub user: Option<String>,
}

/// The reason why a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// An unknown option.
    #[error(
        "found the option {0:?}, expected header, cksums, body, log, spam, query, grey-off, no-grey, grey-query, no-reject or rcvd-next"
    )]
    Option(String),
    /// Lines that are too long.
    #[error("the lines before the message are longer than {MOST} bytes")]
    TooLong,
    /// It ended before the message.
    #[error(
        "it ended before the message, expected options, client, HELO, sender, recipients and an empty line"
    )]
    Early,
}

/// The incoming lines.
#[derive(Debug, Default)]
pub struct Preamble {
    line: Vec<u8>,
    request: Request,
    lines: usize,
    bytes: usize,
}

impl Preamble {
    /// Takes bytes; returns those of the message, once it begins.
    ///
    /// # Errors
    /// [`Bad`]
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Bad> {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.add(&rest[..end])?;
            rest = &rest[end + 1..];
            if self.end_line()? {
                return Ok(Some(rest));
            }
        }
        self.add(rest)?;
        Ok(None)
    }

    /// The request of these lines.
    #[must_use]
    pub fn into_request(self) -> Request {
        self.request
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        self.bytes += bytes.len() + 1;
        if self.bytes > MOST {
            return Err(Bad::TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes a whole line; returns true for the empty line before the message.
    fn end_line(&mut self) -> Result<bool, Bad> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if self.lines >= FIXED && line.is_empty() {
            return Ok(true);
        }
        let text = String::from_utf8_lossy(line);
        match self.lines {
            0 => self.request.options(&text)?,
            1 => self.request.client(&text),
            2 => text.trim().clone_into(&mut self.request.helo),
            3 => address(&text).clone_into(&mut self.request.sender),
            _ => self.request.recipient(&text),
        }
        self.lines += 1;
        Ok(false)
    }
}

impl Request {
    fn options(&mut self, line: &str) -> Result<(), Bad> {
        for word in line.split_ascii_whitespace() {
            match &*word.to_ascii_lowercase() {
                "header" => self.show(Shows::Header),
                "cksums" => self.show(Shows::Checksums),
                "body" => self.show(Shows::Message),
                "spam" => self.spam = true,
                "query" => self.query = true,
                "no-reject" => self.no_reject = true,
                "rcvd-nxt" | "rcvd-next" => self.skipped = (self.skipped + 1).min(MOST_SKIPPED),
                // There is no greylist here, and every message has a log line.
                "log" | "grey-off" | "no-grey" | "grey-query" => (),
                _ => return Err(Bad::Option(word.chars().take(40).collect())),
            }
        }
        // A query reports nothing.
        self.spam &= !self.query;
        Ok(())
    }

    /// The option that shows more wins.
    fn show(&mut self, shows: Shows) {
        if shows as usize > self.shows as usize {
            self.shows = shows;
        }
    }

    fn client(&mut self, line: &str) {
        let (ip, host) = line.split_once('\r').unwrap_or((line, ""));
        let ip = ip.trim().trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        self.client = ip.map(|ip| ip.to_canonical()).filter(|ip| !ip.is_unspecified());
        let host = host.trim();
        let is_name = !host.is_empty()
            && !host.starts_with('[')
            && !host.eq_ignore_ascii_case("unknown")
            && host.parse::<IpAddr>().is_err();
        self.host = (is_name && self.client.is_some()).then(|| host.to_owned());
    }

    /// A recipient, and after a carriage return the local user. Haraka has all recipients in one line, so a local user with an `@` would
    /// count as one; no known client sends such a user.
    fn recipient(&mut self, line: &str) {
        for (at, part) in line.split('\r').enumerate() {
            let part = part.trim();
            if at == 0 || part.contains('@') || part.starts_with('<') {
                if self.recipients.len() < MAX_RECIPIENTS {
                    self.recipients.push(address(part).to_owned());
                } else {
                    self.unkept += 1;
                }
            } else if self.user.is_none() && !part.is_empty() {
                self.user = Some(part.to_owned());
            }
        }
    }
}

/// An address without angle brackets and source route.
fn address(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text);
    match text.split_once(':') {
        Some((route, address)) if route.starts_with('@') => address,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a request in chunks of several sizes, and the beginning of its message.
    fn read(bytes: &[u8]) -> Result<(Request, Vec<u8>), Bad> {
        let mut all = Vec::new();
        for size in [1, 2, 3, bytes.len()] {
            let (mut preamble, mut message, mut is_message) = (Preamble::default(), Vec::new(), false);
            for chunk in bytes.chunks(size) {
                if is_message {
                    message.extend_from_slice(chunk);
                } else if let Some(rest) = preamble.take(chunk)? {
                    is_message = true;
                    message.extend_from_slice(rest);
                }
            }
            if !is_message {
                return Err(Bad::Early);
            }
            all.push((preamble.into_request(), message));
        }
        assert!(all.iter().all(|one| *one == all[0]));
        Ok(all.remove(0))
    }

    /// The bytes that SpamAssassin 4.0.1, rspamd 3.4 and newer, Exim 4.96 and Haraka send.
    #[test]
    fn requests_of_known_clients_are_understood() {
        let spamassassin =
            b"cksums grey-off \n192.0.2.7\rclient.example\nclient.example\n\nunknown\n\nA: b\n\nc\n";
        let (request, message) = read(spamassassin).unwrap();
        let expected = Request {
            shows: Shows::Checksums,
            client: "192.0.2.7".parse().ok(),
            host: Some("client.example".to_owned()),
            helo: "client.example".to_owned(),
            recipients: vec!["unknown".to_owned()],
            ..Request::default()
        };
        assert_eq!((request, &*message), (expected, &b"A: b\n\nc\n"[..]));
        let rspamd =
            b"header\n192.0.2.7\rh.example\nc.example\ns@example.org\nu@box.test\nv@box.test\n\nA: b\n";
        let (request, message) = read(rspamd).unwrap();
        assert_eq!((request.shows, &*request.sender), (Shows::Header, "s@example.org"));
        assert_eq!(
            (request.recipients, &*message),
            (vec!["u@box.test".to_owned(), "v@box.test".to_owned()], &b"A: b\n"[..])
        );
        // As rspamd asks in 2026, for a message with unknown recipients.
        let newer = b"header grey-off\n192.0.2.7\nc.example\n\ntest@example.com\n\nA: b\n";
        let (request, message) = read(newer).unwrap();
        assert_eq!((request.shows, request.host, &*request.sender), (Shows::Header, None, ""));
        assert_eq!((request.recipients, &*message), (vec!["test@example.com".to_owned()], &b"A: b\n"[..]));
        let exim = b"header\n127.0.0.1\nHELO localhost\n<>\nu@box.test\r\nv@box.test\r\n\nA: b\n\r\nbody\n";
        let (request, message) = read(exim).unwrap();
        assert_eq!((&*request.sender, request.recipients.len(), request.user), ("", 2, None));
        assert_eq!(message, b"A: b\n\r\nbody\n");
        let haraka = b"header spam\n192.0.2.7\rh\nh\n<s@example.org>\n<u@box.test>\r<v@box.test>\n\nA: b\n";
        let (request, _) = read(haraka).unwrap();
        assert!(request.spam && request.recipients == ["u@box.test", "v@box.test"]);
    }

    #[test]
    fn options_in_all_their_forms() {
        let of = |line: &str| read(format!("{line}\n\n\n\n\n").as_bytes()).map(|(request, _)| request);
        let request = of("HEADER Cksums no-reject rcvd-nxt rcvd-next log grey-query no-grey").unwrap();
        assert!(request.no_reject && request.skipped == 2 && request.shows == Shows::Checksums);
        let both = of("spam query").unwrap();
        assert!(both.query && !both.spam, "a query reports nothing");
        assert_eq!(of("").unwrap(), Request::default());
        assert_eq!(of("header frobnicate"), Err(Bad::Option("frobnicate".to_owned())));
    }

    #[test]
    fn unknown_clients_in_all_their_forms() {
        let client = |line: &str| {
            let (request, _) = read(format!("\n{line}\n\n\nu\n\n").as_bytes()).unwrap();
            (request.client.map(|ip| ip.to_string()), request.host)
        };
        for none in ["", "0.0.0.0", "0.0.0.0\r0.0.0.0", "nonsense\rhost"] {
            assert_eq!(client(none), (None, None), "{none:?}");
        }
        assert_eq!(client("::ffff:192.0.2.7\r192.0.2.7"), (Some("192.0.2.7".to_owned()), None));
        assert_eq!(client("2001:db8::1\r[2001:db8::1]"), (Some("2001:db8::1".to_owned()), None));
    }

    #[test]
    fn recipients_in_all_their_forms() {
        let (request, _) = read(b"\n\n\n\n<@a,@b:u@box.test>\ruser\nunknown\n<>\n\n").unwrap();
        assert_eq!(request.recipients, ["u@box.test", "unknown", ""]);
        assert_eq!(request.user.as_deref(), Some("user"));
        let (request, _) = read(b"\n\n\n\nu@box.test\rv@box.test\rme\n\n").unwrap();
        assert_eq!((request.recipients.len(), request.user.as_deref()), (2, Some("me")));
        let (request, _) = read(&[b"\n\n\n\n", &*b"a\n".repeat(MAX_RECIPIENTS + 7), b"\n"].concat()).unwrap();
        assert_eq!((request.recipients.len(), request.unkept), (MAX_RECIPIENTS, 7));
    }

    #[test]
    fn invalid_requests_are_refused() {
        assert_eq!(read(b"header\n192.0.2.7\n"), Err(Bad::Early));
        assert_eq!(read(b"GET / HTTP/1.0\r\n\r\n"), Err(Bad::Option("GET".to_owned())));
        let long = [&b"header\n\n\n\n"[..], &b"u@box.test\n".repeat(100_000)].concat();
        assert_eq!(Preamble::default().take(&long), Err(Bad::TooLong));
        assert_eq!(Preamble::default().take(&vec![b'x'; MOST + 1]), Err(Bad::TooLong));
    }
}
