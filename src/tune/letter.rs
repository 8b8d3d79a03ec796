// SPDX-License-Identifier: GPL-3.0-or-later
//! A message of an archive, without its text.

use bulkmark_verdict::{Content, Envelope};

/// The data of a message.
#[derive(Debug)]
pub(super) struct Letter {
    /// The time of its arrival, in seconds since 1970.
    pub(super) time: u64,
    pub(super) subject: String,
    /// The envelope, from the fields of the last mail server.
    pub(super) envelope: Envelope,
    pub(super) content: Content,
}

impl Letter {
    /// Returns the domain of the first From address.
    pub(super) fn domain(&self) -> Option<&str> {
        let first = self.content.from.first();
        first.map(|address| address.rsplit_once('@').map_or(&**address, |(_, domain)| domain))
    }

    /// Returns a message without any data.
    #[cfg(test)]
    pub(super) fn empty() -> Self {
        use bulkmark_signature::Signatures;
        use bulkmark_signature::near::Near;
        use bulkmark_types::LowInformation;
        let signatures = Signatures {
            body: Err(LowInformation { words: 0, wanted: 8 }),
            near: Near::default(),
            canary: false,
        };
        let verified = bulkmark_policy::VerifiedNames::default();
        let content = Content {
            from: Vec::new(),
            list_id: None,
            message_id: None,
            claimed: verified.clone(),
            verified,
            unverified: None,
            correspondences: Vec::new(),
            allowed: None,
            signatures,
            old_key: None,
        };
        Self { time: 0, subject: String::new(), envelope: Envelope::default(), content }
    }
}
