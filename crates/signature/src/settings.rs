// SPDX-License-Identifier: GPL-3.0-or-later
//! The settings of signatures.

use super::canary::Canary;
use serde::Deserialize;
use std::num::NonZeroUsize;

/// `[signature]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Distinct words below which a message without attachment gets no signature.
    pub min_words: NonZeroUsize,
    /// Whether `near` signatures are made: some mail has a threshold for them.
    #[serde(skip)]
    pub near: bool,
    /// Whether the header has the body signature.
    pub header: bool,
    /// The line that makes a message bulk, if the site has one. No configuration key: each site keeps its own in a file.
    #[serde(skip)]
    pub canary: Option<Canary>,
}

impl Default for Settings {
    fn default() -> Self {
        // As DCC's Fuz2: the usual one-line bodies ("Sent from my Samsung Galaxy smartphone") stay below eight words.
        Self { min_words: NonZeroUsize::MIN.saturating_add(7), near: true, header: false, canary: None }
    }
}
