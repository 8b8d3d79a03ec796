// SPDX-License-Identifier: GPL-3.0-or-later
//! `act-despite`: doubts that do not keep bulk from being acted on.

use serde::{Deserialize, Deserializer};

/// A doubt, beside the count, that may keep bulk from being acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Doubt {
    /// No server sent an update or confirmed that there is none.
    Stale,
    /// A table of a white list did not answer.
    Unanswered,
    /// DNS did not answer, and an entry of a white list might have wanted the message.
    Unverified,
}

/// The doubts that do not matter; with any other, bulk is only marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Despite {
    /// Counts that are older than `sync.max-staleness`.
    pub stale: bool,
    /// A table of a white list that did not answer.
    pub unanswered: bool,
    /// DNS that did not answer.
    pub unverified: bool,
}

impl Default for Despite {
    fn default() -> Self {
        Self { stale: true, unanswered: false, unverified: false }
    }
}

impl<'de> Deserialize<'de> for Despite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let doubts = Vec::<Doubt>::deserialize(deserializer)?;
        let has = |doubt| doubts.contains(&doubt);
        Ok(Self {
            stale: has(Doubt::Stale),
            unanswered: has(Doubt::Unanswered),
            unverified: has(Doubt::Unverified),
        })
    }
}
