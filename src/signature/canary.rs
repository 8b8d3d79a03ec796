// SPDX-License-Identifier: GPL-3.0-or-later
//! The canary: a line that makes any message bulk, so that a whole mail chain can be tested (the idea of GTUBE).

use crate::mail::{File, Piece, Text, Visitor, pieces};
use memchr::memmem;

/// The line. It stands alone, so an answer that quotes it is no canary, and 160 random bits keep others from writing it
/// by accident.
pub const CANARY: &str = "BULKMARK*CANARY*KKCA2VQNY6PTI7W55X6EKZ3S7RRD4F5J*MAKES*BULK";

/// Shows a message to `visitor`, and looks whether it is a canary.
///
/// An enclosed message that is one makes none of the message around it: a bounce of a canary must come through.
pub(super) struct Watch<'a> {
    visitor: &'a mut dyn Visitor,
    enclosed: usize,
    pub(super) found: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(visitor: &'a mut dyn Visitor) -> Self {
        Self { visitor, enclosed: 0, found: false }
    }

    /// Whether this text must be read line by line. Nearly all need not be, and that is known at once.
    fn suspects(&self, text: &str) -> bool {
        !self.found && self.enclosed == 0 && memmem::find(text.as_bytes(), CANARY.as_bytes()).is_some()
    }
}

/// Whether a line of the text is the canary, and nothing else.
fn has_line(text: &str) -> bool {
    text.lines().any(|line| line.trim() == CANARY)
}

impl Visitor for Watch<'_> {
    fn text(&mut self, text: Text<'_>) {
        self.found |= self.suspects(text.exact) && has_line(text.exact);
        self.visitor.text(text);
    }

    fn html(&mut self, html: Text<'_>) {
        if self.suspects(html.exact) {
            let mut shown = String::new();
            pieces(html.exact, &mut |piece| match piece {
                Piece::Text(text) => shown.push_str(text),
                Piece::Break => shown.push('\n'),
                _ => (),
            });
            self.found |= has_line(&shown);
        }
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

    fn report(&mut self) {
        self.visitor.report();
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
    use crate::mail::RawMessage;
    use crate::signature::{FederationKey, Settings, signatures};

    fn is_canary(raw: &str) -> bool {
        let raw = raw.replace("THE-LINE", CANARY).replace('\n', "\r\n");
        let message = RawMessage::from_bytes(raw.as_bytes()).unwrap();
        signatures(&message, &FederationKey::public(), &Settings::default()).canary
    }

    #[test]
    fn it_is_a_line_that_a_reader_sees() {
        let html = "Content-Type: text/html\n\n";
        let two = "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nhello\n--b\nContent-Type: text/html\n\n";
        for message in [
            "\nTHE-LINE",
            "\nhello\n\n  THE-LINE \nend\n",
            &format!("{html}<p>hello <b>you</b></p><div> THE-LINE<br>end</div>"),
            &format!("{two}<p>THE-LINE\n--b--\n"),
        ] {
            assert!(is_canary(message), "{message}");
        }
        // Encoded, and cut in two by that, it is the same line.
        let half = CANARY.split_at(20);
        let quoted = format!("Content-Transfer-Encoding: quoted-printable\n\n{}=\n{}\n", half.0, half.1);
        assert!(is_canary(&quoted));
    }

    #[test]
    fn what_is_like_it_is_none() {
        let html = "Content-Type: text/html\n\n";
        for message in [
            "Subject: THE-LINE\n\nhello\n",
            "\n> THE-LINE\n",
            "\nsend THE-LINE\n",
            &format!("\n{}\n", CANARY.to_lowercase()),
            &format!("\n{}\n", &CANARY[..CANARY.len() - 1]),
            &format!("\n{}\n{}\n", &CANARY[..20], &CANARY[20..]),
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
