// SPDX-License-Identifier: GPL-3.0-or-later
//! A message of an archive, without its text.

use bulkmark_verdict::{Content, Envelope};

/// What a message tells.
#[derive(Debug)]
pub(super) struct Letter {
    /// When it came, in seconds since 1970.
    pub(super) time: u64,
    pub(super) subject: String,
    /// What the last mail server wrote down of it.
    pub(super) envelope: Envelope,
    pub(super) content: Content,
}

impl Letter {
    /// The domain of the first From address.
    pub(super) fn domain(&self) -> Option<&str> {
        let first = self.content.from.first();
        first.map(|address| address.rsplit_once('@').map_or(&**address, |(_, domain)| domain))
    }

    /// One that says nothing.
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
        let proven = bulkmark_policy::Proven::default();
        let content = Content {
            from: Vec::new(),
            list_id: None,
            message_id: None,
            claimed: proven.clone(),
            proven,
            unverified: None,
            correspondences: Vec::new(),
            is_allowed: false,
            signatures,
            earlier: None,
        };
        Self { time: 0, subject: String::new(), envelope: Envelope::default(), content }
    }
}
