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
    /// Names that it claims, where they are verified here.
    pub claimed: Proven,
    /// Why not all of them could be, if DNS had no answer.
    pub unverified: Option<&'static str>,
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
            claimed: Proven::default(),
            unverified: None,
            from: fields.from,
            list_id: fields.list_id,
            message_id: fields.message_id,
            signatures: signatures(message, &rules.key, &rules.signature),
        }
    }

    /// The same with what it claims, where that is verified here.
    #[must_use]
    pub fn claiming(message: &RawMessage, rules: &Rules, sender: Option<&str>) -> Self {
        let content = Self::of(message, rules);
        let claims = || Proven::claimed(&message.fields(), sender);
        Self { claimed: rules.verifies().then(claims).unwrap_or_default(), ..content }
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
            claimed: rules.authentication.is_here().then_some(&self.claimed),
            mailboxes: Some(&rules.mailboxes),
            answers: Some(&envelope.answers),
        }
    }
}
