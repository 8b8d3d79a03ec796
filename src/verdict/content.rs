// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message itself says.

use super::envelope::Envelope;
use super::rules::Rules;
use crate::mail::RawMessage;
use crate::policy::{Facts, Proven};
use crate::signature::{Signatures, signatures};

/// The signatures of a message, and the fields by which white lists know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Addresses of the From field.
    pub from: Vec<String>,
    /// The list id.
    pub list_id: Option<String>,
    /// The Message-ID as it stands.
    pub message_id: Option<String>,
    /// Names that stand behind it, as far as it was verified.
    pub proven: Proven,
    /// The signatures.
    pub signatures: Signatures,
}

impl Content {
    /// Reads a message.
    #[must_use]
    pub fn of(message: &RawMessage, rules: &Rules) -> Self {
        let fields = message.fields();
        Self {
            proven: rules.authentication.proven(&fields),
            from: fields.from,
            list_id: fields.list_id,
            message_id: fields.message_id,
            signatures: signatures(message, &rules.key, &rules.signature),
        }
    }

    /// What it is held against lists by.
    #[must_use]
    pub fn facts<'a>(&'a self, envelope: &'a Envelope, rules: &'a Rules) -> Facts<'a> {
        Facts {
            client_ip: envelope.client,
            client_host: envelope.host.as_deref(),
            sender: envelope.sender.as_deref(),
            recipients: &envelope.recipients,
            from: &self.from,
            list_id: self.list_id.as_deref(),
            signature: self.signatures.body.ok(),
            proven: Some(self.proven.for_sender(envelope.sender.as_deref())),
            mailboxes: Some(&rules.mailboxes),
            answers: Some(&envelope.answers),
        }
    }
}
