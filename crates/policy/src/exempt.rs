// SPDX-License-Identifier: GPL-3.0-or-later
//! `exempt`: clients whose mail is neither counted nor judged.

use serde::{Deserialize, Deserializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Client {
    Loopback,
    Authenticated,
}

/// Kinds of clients whose mail is neither counted nor judged, in every network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExemptClients {
    /// Local submission, and clients on loopback addresses.
    pub loopback: bool,
    /// Clients that authenticated to the MTA.
    pub authenticated: bool,
}

impl Default for ExemptClients {
    fn default() -> Self {
        Self { loopback: true, authenticated: true }
    }
}

impl<'de> Deserialize<'de> for ExemptClients {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let clients = Vec::<Client>::deserialize(deserializer)?;
        let has = |client| clients.contains(&client);
        Ok(Self { loopback: has(Client::Loopback), authenticated: has(Client::Authenticated) })
    }
}
