// SPDX-License-Identifier: GPL-3.0-or-later
//! What a daemon can say of itself.

use crate::ledger::{self, Ledger, LedgerError, Role};
use crate::sync::{Client, LinkStatus, Links, Parameters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server may take to say how far it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// A client of a server, since the server was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClientStatus {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// Batches that were counted, or had been before.
    pub batches: u64,
    /// Signatures in them.
    pub signatures: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Why the last of them was.
    pub last_refusal: Option<String>,
    /// Seconds since it asked for anything.
    pub heard_seconds_ago: Option<u64>,
}

/// A daemon at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// "milter" or "server".
    pub role: String,
    /// Of the program.
    pub version: String,
    /// Seconds since it was started.
    pub uptime_seconds: u64,
    /// What all who share counts agree in.
    pub parameters: String,
    /// How far each origin is counted.
    pub versions: BTreeMap<String, u64>,
    /// The counts.
    pub ledger: ledger::Status,
    /// Upstream servers of a milter, peers of a server.
    pub links: Vec<LinkStatus>,
    /// Clients of a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientStatus>,
}

/// What a daemon knows of itself.
pub struct Daemon {
    role: Role,
    started: Instant,
    parameters: Parameters,
    pub(super) ledger: Ledger,
    links: Arc<Links>,
    servers: Vec<Arc<Client>>,
    clients: Box<dyn Fn() -> Vec<ClientStatus> + Send + Sync>,
}

impl Daemon {
    /// One that begins now, on this ledger. `servers` are those that `links` lead to; `clients` tells of those of a server.
    pub fn new(
        role: Role,
        parameters: Parameters,
        ledger: Ledger,
        links: Arc<Links>,
        servers: Vec<Arc<Client>>,
        clients: impl Fn() -> Vec<ClientStatus> + Send + Sync + 'static,
    ) -> Self {
        let (started, clients) = (Instant::now(), Box::new(clients));
        Self { role, started, parameters, ledger, links, servers, clients }
    }

    /// All of it; estimates of false bulk for a `threshold` only. Asks the other servers how far they are.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn status(&self, threshold: Option<u32>) -> Result<Status, LedgerError> {
        let ledger = self.ledger.status(threshold).await?;
        let mut links = self.links.status();
        let asked: Vec<_> = self.servers.iter().map(|server| tokio::spawn(ask(Arc::clone(server)))).collect();
        for (link, asked) in links.iter_mut().zip(asked) {
            link.behind = asked.await.ok().flatten().map(|theirs| behind(&ledger.versions(), &theirs));
        }
        Ok(Status { links, clients: (self.clients)(), ..self.outline(ledger) })
    }

    /// What everybody may know who may read: nothing of links and clients.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn public_status(&self) -> Result<Status, LedgerError> {
        Ok(self.outline(self.ledger.status(None).await?))
    }

    fn outline(&self, ledger: ledger::Status) -> Status {
        Status {
            role: self.role.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            parameters: self.parameters.to_string(),
            versions: ledger.versions(),
            ledger,
            links: Vec::new(),
            clients: Vec::new(),
        }
    }
}

async fn ask(server: Arc<Client>) -> Option<BTreeMap<String, u64>> {
    let status = tokio::time::timeout(PATIENCE, server.status()).await.ok()?.ok()?;
    let versions = status.get("versions")?;
    BTreeMap::deserialize(versions).ok()
}

/// How many updates are known there and not here.
fn behind(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) -> u64 {
    let missing = |(origin, &version): (&String, &u64)| {
        version.saturating_sub(ours.get(origin).copied().unwrap_or_default())
    };
    theirs.iter().map(missing).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_is_what_is_missing_here() {
        let versions = |list: &[(&str, u64)]| list.iter().map(|&(o, v)| (o.to_owned(), v)).collect();
        assert_eq!(behind(&versions(&[("a", 5), ("b", 2)]), &versions(&[("a", 7), ("b", 1), ("c", 3)])), 5);
        assert_eq!(behind(&versions(&[]), &versions(&[])), 0);
    }
}
