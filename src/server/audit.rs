// SPDX-License-Identifier: GPL-3.0-or-later
//! The acts of operators on the list of clients: when, by whom, on which client.

use super::clients::Clients;
use serde::{Deserialize, Serialize};

/// Acts that are kept. Sites that register by themselves make none, so nobody else can push them out.
const MOST: usize = 2000;

/// One act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Deed {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The user of the server's machine.
    pub by: String,
    /// "added", "approved", "changed", "rotated", "removed" or "removed with counts".
    pub act: String,
    /// The client.
    pub client: String,
}

impl Clients {
    /// Notes an act.
    pub fn note(&mut self, deed: Deed) {
        self.audit.push(deed);
        let over = self.audit.len().saturating_sub(MOST);
        self.audit.drain(..over);
    }

    /// The acts that are kept, the last one last.
    #[must_use]
    pub fn audit(&self) -> &[Deed] {
        &self.audit
    }
}
