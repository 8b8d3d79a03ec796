// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message itself says.

use super::rules::Rules;
use crate::mail::RawMessage;
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
    /// The signatures.
    pub signatures: Signatures,
}

impl Content {
    /// Reads a message.
    #[must_use]
    pub fn of(message: &RawMessage, rules: &Rules) -> Self {
        let fields = message.fields();
        Self {
            from: fields.from,
            list_id: fields.list_id,
            message_id: fields.message_id,
            signatures: signatures(message, &rules.key, &rules.signature),
        }
    }
}
