// SPDX-License-Identifier: GPL-3.0-or-later
//! The canary: a line that makes any message bulk, to test a whole mail chain (GTUBE's idea).
//!
//! Each site has its own secret line: nobody else can make this site refuse a message by it.

use bulkmark_mail::{File, Piece, Text, Visitor, Work, pieces};
use memchr::memmem;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq as _;

/// The fixed text around the secret of each site.
const BEFORE: &str = "BULKMARK*CANARY*";
const BEHIND: &str = "*MAKES*BULK";

/// Letters and digits of a secret, five bits each (RFC 4648, base 32).
const ALPHABET: [u8; 32] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The secret line of a site. Others cannot guess its 160 random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Canary([u8; 32]);

/// Hides the secret.
impl fmt::Debug for Canary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Canary(..)")
    }
}

/// The error for a line that is no canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {BEFORE}, 32 letters A to Z and digits 2 to 7, and {BEHIND}")]
pub struct InvalidCanary;

impl Canary {
    /// Makes a canary from random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }

    /// The line, which makes a message bulk as the first line of its text.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{BEFORE}{}{BEHIND}", String::from_utf8_lossy(&self.0))
    }

    /// Whether the first line of a text that is not blank is this one. Returns `None` for blank text.
    fn begins(&self, text: &str) -> Option<bool> {
        let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(bool::from(first.as_bytes().ct_eq(self.line().as_bytes())))
    }
}

impl FromStr for Canary {
    type Err = InvalidCanary;

    fn from_str(line: &str) -> Result<Self, InvalidCanary> {
        let secret = line.trim().strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(BEHIND));
        let secret: [u8; 32] =
            secret.and_then(|secret| secret.as_bytes().try_into().ok()).ok_or(InvalidCanary)?;
        if secret.iter().all(|letter| ALPHABET.contains(letter)) {
            Ok(Self(secret))
        } else {
            Err(InvalidCanary)
        }
    }
}

/// Passes a message on to `visitor` and checks whether it is a canary: whether the line is the first that a reader sees. A reply that
/// quotes a canary has text before it, at least the attribution, so it comes through, however it is quoted.
///
/// An enclosed canary does not make the message around it a canary: a bounce of a canary must come through.
pub(super) struct Watch<'a> {
    visitor: &'a mut dyn Visitor,
    /// `None` if the site has no canary, and after the first line.
    canary: Option<Canary>,
    enclosed: usize,
    pub(super) found: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(visitor: &'a mut dyn Visitor, canary: Option<Canary>) -> Self {
        Self { visitor, canary, enclosed: 0, found: false }
    }

    /// Checks the first text of the message.
    fn look(&mut self, text: &str, shown: impl Fn(&str) -> Cow<'_, str>) {
        let Some(canary) = self.canary.filter(|_| self.enclosed == 0) else { return };
        // Nearly all texts lack the line, and this check is cheap.
        let suspicious = memmem::find(text.as_bytes(), BEFORE.as_bytes()).is_some();
        let begins =
            if suspicious { canary.begins(&shown(text)) } else { (!text.trim().is_empty()).then_some(false) };
        if let Some(found) = begins {
            (self.found, self.canary) = (found, None);
        }
    }
}

/// The visible text of a page.
fn shown<'a>(html: &str, work: &Work) -> Cow<'a, str> {
    let mut shown = String::new();
    pieces(html, work, &mut |piece| match piece {
        Piece::Text(text) => shown.push_str(text),
        Piece::Break => shown.push('\n'),
        _ => (),
    });
    Cow::Owned(shown)
}

impl Visitor for Watch<'_> {
    fn text(&mut self, text: Text<'_>) {
        self.look(text.exact, |text| text.into());
        self.visitor.text(text);
    }

    fn html(&mut self, html: Text<'_>) {
        self.look(html.exact, |text| shown(text, html.work));
        self.visitor.html(html);
    }

    fn file(&mut self, file: File<'_>) {
        self.visitor.file(file);
    }

    fn message(&mut self, fields: &[&[u8]]) {
        self.enclosed += 1;
        self.visitor.message(fields);
    }

    fn message_end(&mut self) {
        self.enclosed = self.enclosed.saturating_sub(1);
        self.visitor.message_end();
    }

    fn report(&mut self, by_daemon: bool) {
        self.visitor.report(by_daemon);
    }

    fn report_end(&mut self) {
        self.visitor.report_end();
    }

    fn alternatives(&mut self) {
        self.visitor.alternatives();
    }

    fn alternative(&mut self) {
        self.visitor.alternative();
    }

    fn alternatives_end(&mut self) {
        self.visitor.alternatives_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, signatures};
    use bulkmark_mail::RawMessage;
    use bulkmark_types::FederationKey;

    fn canary() -> Canary {
        Canary::new(std::array::from_fn(|i| u8::try_from(i * 37 % 256).unwrap()))
    }

    fn is_canary(raw: &str) -> bool {
        let raw = raw.replace("THE-LINE", &canary().line()).replace('\n', "\r\n");
        let message = RawMessage::from_bytes(raw.as_bytes());
        let of = |canary| Settings { canary, ..Settings::default() };
        let found = signatures(&message, &FederationKey::public(), &of(Some(canary()))).canary;
        // Other sites do not recognise it.
        for other in [None, Some(Canary::new([7; 32]))] {
            assert!(!signatures(&message, &FederationKey::public(), &of(other)).canary);
        }
        found
    }

    #[test]
    fn the_line_is_read_again() {
        let line = canary().line();
        assert_eq!(format!("{line}\n").parse(), Ok(canary()));
        assert!(!format!("{:?}", canary()).contains(&line[16..48]));
        for bad in ["", &line[1..], &line[..58], &line.to_lowercase(), &line.replace('A', "1")] {
            assert_eq!(bad.parse::<Canary>(), Err(InvalidCanary), "{bad}");
        }
    }

    #[test]
    fn it_is_the_first_line_that_a_reader_sees() {
        let html = "Content-Type: text/html\n\n";
        let two = "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nTHE-LINE\n--b\nContent-Type: text/html\n\n";
        for message in [
            "\nTHE-LINE",
            "\n\n  THE-LINE \nend\n",
            &format!("{html}<p> </p><div> THE-LINE<br>end</div>"),
            &format!("{two}<p>THE-LINE\n--b--\n"),
            &format!("{}\n\n--b\n\n \n--b\n\nTHE-LINE\n--b--\n", "Content-Type: multipart/mixed; boundary=b"),
        ] {
            assert!(is_canary(message), "{message}");
        }
        // An encoding that splits the line does not change it.
        let line = canary().line();
        let half = line.split_at(20);
        let quoted = format!("Content-Transfer-Encoding: quoted-printable\n\n{}=\n{}\n", half.0, half.1);
        assert!(is_canary(&quoted));
    }

    #[test]
    fn similar_lines_are_no_canary() {
        let html = "Content-Type: text/html\n\n";
        let line = canary().line();
        for message in [
            // Replies that quote it, with and without a mark, above and below.
            "\nThank you.\n\n-----Original Message-----\nFrom: a@b.example\n\nTHE-LINE\n",
            "\nOn Monday a@b.example wrote:\nTHE-LINE\n",
            &format!("{html}<p>Thank you.</p><div><p>From: a</p><p>THE-LINE</p></div>"),
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nThank you.\n--b\n\nTHE-LINE\n--b--\n",
            "Subject: THE-LINE\n\nhello\n",
            "\n> THE-LINE\n",
            "\nsend THE-LINE\n",
            &format!("\n{}\n", line.to_lowercase()),
            &format!("\n{}\n", &line[..line.len() - 1]),
            &format!("\n{}\n{}\n", &line[..20], &line[20..]),
            &format!("{html}<!-- \nTHE-LINE\n --><p>hello"),
            &format!("{html}<p style=\"display:none\">THE-LINE</p>hello"),
            &format!("{html}<blockquote type=\"cite\">THE-LINE</blockquote>hello"),
            "Content-Type: message/rfc822\n\nSubject: a\n\nTHE-LINE\n",
            "Content-Type: application/octet-stream\n\nTHE-LINE\n",
        ] {
            assert!(!is_canary(message), "{message}");
        }
    }
}
