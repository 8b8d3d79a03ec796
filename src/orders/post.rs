// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders that a milter sends to its server.

use super::hex;
use super::order::Allowance;
use super::server_lists::{MOST_OF_SITE, Unsound, is_sound};
use serde::{Deserialize, Serialize};

/// All orders of one machine. Its site is the client whose token the request has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// The number of the machine.
    #[serde(with = "hex")]
    pub machine: u64,
    /// Mailings that are never refused.
    pub allowed: Vec<Allowance>,
}

impl Post {
    /// Reads the orders of a client.
    ///
    /// # Errors
    /// If they have another form, or exceed a bound.
    pub fn parse(json: &[u8]) -> Result<Self, Unsound> {
        let post: Self = serde_json::from_slice(json).map_err(|e| Unsound::Form(e.to_string()))?;
        let is_valid = post.allowed.len() <= MOST_OF_SITE && post.allowed.iter().all(is_sound);
        if is_valid { Ok(post) } else { Err(Unsound::Order) }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
