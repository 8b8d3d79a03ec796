// SPDX-License-Identifier: GPL-3.0-or-later
//! All signatures of a message, in one pass.

use super::body::Canonical;
use super::canary::{Canary, Watch};
use super::near::{self, Near, Reader};
use super::settings::Settings;
use bulkmark_mail::{File, RawMessage, Text, Visitor, pieces};
use bulkmark_types::FederationKey;
use bulkmark_types::{LowInformation, Signature};

/// The signatures of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signatures {
    /// The `body` signature, if the message has enough words.
    pub body: Result<Signature, LowInformation>,
    /// The `near` signatures.
    pub near: Near,
    /// Whether it is the [`Canary`], which is always bulk.
    pub canary: bool,
}

impl Signatures {
    /// The signatures that the message reports, its `body` signature first.
    #[must_use]
    pub fn reported(&self) -> Vec<Signature> {
        self.body.ok().into_iter().chain(self.near.reported()).collect()
    }

    /// Whether the message has no signature.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.is_err() && self.near.is_empty()
    }
}

/// Makes all signatures of `message`.
#[must_use]
pub fn signatures(message: &RawMessage, key: &FederationKey, settings: &Settings) -> Signatures {
    let body = Canonical::new(key, settings.min_words.get());
    if !settings.near {
        let (body, canary) = watched(message, body, settings.canary);
        return Signatures { body: body.finish(), near: Near::default(), canary };
    }
    let near = near::reader(key, false).with_payload();
    let (both, canary) = watched(message, Both { body, near }, settings.canary);
    let near = near::finish(both.near, key, &message.correspondents());
    Signatures { body: both.body.finish(), near, canary }
}

/// Passes the message to `visitor`, and returns whether it is a canary.
fn watched<V: Visitor>(message: &RawMessage, mut visitor: V, canary: Option<Canary>) -> (V, bool) {
    let mut watch = Watch::new(&mut visitor, canary);
    message.visit(&mut watch);
    let found = watch.found;
    (visitor, found)
}

/// Passes everything to both readers.
struct Both {
    body: Canonical,
    near: Reader,
}

impl Visitor for Both {
    fn text(&mut self, text: Text<'_>) {
        self.body.text(text);
        self.near.text(text);
    }

    fn html(&mut self, html: Text<'_>) {
        if !html.is_clean() || html.is_attachment {
            self.body.html(html);
            self.near.html(html);
            return;
        }
        self.body.html_begin();
        pieces(html.exact, html.work, &mut |piece| {
            self.body.piece(piece);
            self.near.piece(piece);
        });
        self.near.html_end();
    }

    fn file(&mut self, file: File<'_>) {
        self.body.file(file);
        self.near.file(file);
    }

    fn message(&mut self, fields: &[&[u8]]) {
        self.body.message(fields);
        self.near.message(fields);
    }

    fn message_end(&mut self) {
        self.body.message_end();
        self.near.message_end();
    }

    fn report(&mut self, by_daemon: bool) {
        self.near.report(by_daemon);
    }

    fn report_end(&mut self) {
        self.near.report_end();
    }

    fn alternatives(&mut self) {
        self.near.alternatives();
    }

    fn alternative(&mut self) {
        self.near.alternative();
    }

    fn alternatives_end(&mut self) {
        self.near.alternatives_end();
    }
}
