// SPDX-License-Identifier: GPL-3.0-or-later
//! The status of a daemon.

use super::ordered::KnowMailing;
use super::reported::TakeReport;
use super::reports::NameReporter;
use crate::activity::{AccountStatus, Activity, InterfaceStatus, LikelyRelay, TrapStatus, WebhookStatus};
use crate::orders::{All, Orders, Pause, State};
use bulkmark_counts::{Role, Shares};
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_ledger::{FILE_NAME, FileFormat, Ledger, LedgerError};
use bulkmark_sync::fleet::{Fleet, FleetStatus};
use bulkmark_sync::{LinkStatus, Links, Parameters, Remote, RemoteCounts};
use bulkmark_types::Signature;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after which a disk is reported to hang.
pub const DISK_PATIENCE: Duration = Duration::from_secs(10);

/// Time limit for the ledger's status.
const LEDGER_PATIENCE: Duration = Duration::from_secs(3);

/// Time limit for another server's versions.
const PATIENCE: Duration = Duration::from_secs(3);

/// The ailment of a ledger that cannot be written.
const DISK_FAILED: &str = "the ledger's disk failed";

/// Accounts that are listed.
const MOST_ACCOUNTS: usize = 20;

/// The state of a server's client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// It has no trouble.
    #[default]
    Well,
    /// It has sent no request since the server was started.
    NotHeard,
    /// It has sent no request in the last ten minutes.
    Silent,
    /// One of its requests was refused in the last ten minutes, and no report was counted since then.
    Refused,
    /// The same, because it sent or asked more than it may.
    OverLimits,
    /// It registered, and waits for approval.
    Unapproved,
    /// Its signatures are not hashes, so its reports are refused.
    MadeUp,
    /// Its token has expired.
    Expired,
}

impl ClientState {
    /// Whether the administrator must act.
    #[must_use]
    pub const fn is_trouble(self) -> bool {
        !matches!(self, Self::Well | Self::NotHeard | Self::Unapproved)
    }
}

impl fmt::Display for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Well => "well",
            Self::NotHeard => "not heard",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::OverLimits => "over limits",
            Self::Unapproved => "unapproved",
            Self::MadeUp => "made up",
            Self::Expired => "expired",
        })
    }
}

/// A client of a server, since the server was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClientStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    #[serde(default)]
    pub state: ClientState,
    /// Its role.
    pub role: String,
    /// The limits of a partner.
    pub limits: Option<String>,
    /// The version that its program sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Batches that were counted now or earlier.
    pub batches: u64,
    /// Signatures in them.
    pub signatures: u64,
    /// Signatures of today, by UTC.
    #[serde(default)]
    pub today: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// The reason of the last refusal.
    pub last_refusal: Option<String>,
    /// Whether its reports are ignored, because its signatures are made up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_up: bool,
    /// Seconds since its last counted batch.
    #[serde(default)]
    pub reported_seconds_ago: Option<u64>,
    /// Seconds since its last request; at most a minute while it follows updates.
    pub heard_seconds_ago: Option<u64>,
}

/// Requests that a server refused since it was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedStatus {
    /// Their number, by the codes of docs/protocol.md.
    pub requests: BTreeMap<String, u64>,
    /// The address that last tried an unknown token; "unix" for a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_invalid_token_from: Option<String>,
    /// Seconds since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_invalid_token_seconds_ago: Option<u64>,
}

/// A daemon at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DaemonStatus {
    /// "milter", "interfaces" or "server".
    pub role: String,
    /// The version of the program.
    pub version: String,
    /// Seconds since it was started.
    pub uptime_seconds: u64,
    /// Why it does not count; none while it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ailment: Option<String>,
    /// The address on which it listens, from the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<String>,
    /// The parameters on which all members of a federation agree.
    pub parameters: String,
    /// The format of the ledger's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger_format: Option<FileFormat>,
    /// The counted version of each origin.
    pub versions: BTreeMap<String, u64>,
    /// The counts.
    pub ledger: bulkmark_ledger::Status,
    /// The upstream servers of a milter, peers of a server.
    pub links: Vec<LinkStatus>,
    /// The fleet of this machine; `links` has the connection to its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetStatus>,
    /// Seconds since any server answered, or since the start; none without servers.
    #[serde(default)]
    pub staleness_seconds: Option<u64>,
    /// Clients of a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientStatus>,
    /// Requests that a server refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedStatus>,
    /// Accounts that sent bulk to other domains lately, those over their limit first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountStatus>,
    /// The number of pairs of a user and a correspondent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correspondents: Option<usize>,
    /// Results of messages to traps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traps: Option<TrapStatus>,
    /// Clients that may be your own mail servers in front of this one, and are missing in `relays`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub likely_relays: Vec<LikelyRelay>,
    /// Interfaces of a milter beside the mail server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceStatus>,
    /// The webhook of `[alerts]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
    /// The pause, if nothing is refused for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The number of mailings that are never refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<usize>,
    /// Mailings that other sites allow, by whether that holds here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allowed_elsewhere: BTreeMap<State, usize>,
    /// The reasons why orders are not exchanged with servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_troubles: Vec<String>,
}

/// The parts of a daemon that its status is about.
pub struct Parts {
    /// The name of its command: "milter", "interfaces" or "server".
    pub name: &'static str,
    /// The role of its ledger.
    pub role: Role,
    /// The address on which it listens, from the system.
    pub address: String,
    /// The parameters on which all members of a federation agree.
    pub parameters: Parameters,
    /// The counts.
    pub ledger: Ledger,
    /// The directory of the ledger's file.
    pub state_dir: PathBuf,
    /// Connections to other servers.
    pub links: Arc<Links>,
    /// Those servers, in the same order.
    pub servers: Vec<Arc<Remote>>,
    /// Its fleet, whose log is the first of `links`.
    pub fleet: Option<Arc<Fleet>>,
    /// Who is asked for counts that are not held here.
    pub asks: Option<Arc<RemoteCounts>>,
    /// The clients of a server; a milter has none.
    pub clients: Box<dyn Fn() -> Vec<ClientStatus> + Send + Sync>,
    /// Returns the requests that a server refused; none on a milter.
    pub refused: Box<dyn Fn() -> Option<RefusedStatus> + Send + Sync>,
    /// The correspondents of a milter's users.
    pub correspondents: Option<Arc<Correspondents>>,
    /// Counts user reports; none on a server.
    pub reports: Option<TakeReport>,
    /// Returns the ledger's number of a reporter; none on a server.
    pub reporter: Option<NameReporter>,
    /// The administrator's orders; none on an aggregator of a fleet.
    pub orders: Option<Arc<Orders>>,
    /// Makes the signatures of a message whose mailing is allowed.
    pub know_mailing: Option<KnowMailing>,
    /// The activity since the start.
    pub activity: Arc<Activity>,
}

/// A running daemon.
pub struct Daemon {
    started: Instant,
    /// The start in seconds since 1970.
    pub(super) started_at: u64,
    parts: Parts,
}

impl Deref for Daemon {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Daemon {
    /// Creates a daemon that starts now.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self { started: Instant::now(), started_at: bulkmark_ledger::now(), parts }
    }

    /// Whether it is a server; else it is a milter, or has only interfaces.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.role == Role::Server
    }

    /// Returns the orders in force.
    #[must_use]
    pub fn in_force(&self) -> All {
        self.orders.as_ref().map(|orders| orders.all(bulkmark_ledger::now())).unwrap_or_default()
    }

    /// Returns the number of mailings that other sites allow, by whether that holds here.
    #[must_use]
    pub fn allowed_elsewhere(&self) -> BTreeMap<State, usize> {
        self.orders
            .as_ref()
            .map(|orders| orders.federation.numbers(bulkmark_ledger::now()))
            .unwrap_or_default()
    }

    /// Returns the seconds since the start.
    #[must_use]
    pub fn uptime(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Returns the state of its disk.
    #[must_use]
    pub fn disk(&self) -> Option<Disk> {
        Disk::of(&self.state_dir)
    }

    /// Returns the whole status, with estimates of false bulk for a `threshold` only. Asks the other servers for their versions.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn status(&self, threshold: Option<u32>) -> Result<DaemonStatus, LedgerError> {
        let ledger = self.ask_ledger(threshold).await?;
        let mut links = self.links.status();
        let asked: Vec<_> = self.servers.iter().map(|server| tokio::spawn(ask(Arc::clone(server)))).collect();
        for (link, asked) in links.iter_mut().zip(asked) {
            link.behind = asked.await.ok().flatten().map(|theirs| behind(&ledger.versions(), &theirs));
        }
        let fleet = self.fleet.as_ref().map(|fleet| fleet.status(self.ledger.fleet(), self.is_server()));
        if let (Some(fleet), Some(link)) = (&fleet, links.first_mut()) {
            link.behind = fleet.steps_behind;
        }
        let orders = self.in_force();
        Ok(DaemonStatus {
            ailment: self.ailment().map(|ailment| self.ledger.fault().unwrap_or_else(|| ailment.to_owned())),
            listens: Some(self.address.clone()).filter(|address| !address.is_empty()),
            links,
            fleet,
            staleness_seconds: self.links.staleness(),
            clients: (self.clients)(),
            refused: (self.refused)(),
            accounts: self.activity.busiest_accounts(MOST_ACCOUNTS, bulkmark_ledger::now()),
            correspondents: self.correspondents.as_ref().map(|pairs| pairs.len()),
            traps: Some(self.activity.traps()).filter(|traps| *traps != TrapStatus::default()),
            likely_relays: self.activity.likely_relays(),
            interfaces: self.activity.interfaces.status(),
            webhook: self.activity.webhook.status(),
            pause: orders.pause,
            allowed: Some(orders.allowed.len()).filter(|&number| number > 0),
            allowed_elsewhere: self.allowed_elsewhere(),
            order_troubles: self
                .orders
                .as_ref()
                .map(|orders| orders.federation.troubles())
                .unwrap_or_default(),
            ..self.outline(ledger)
        })
    }

    /// Returns the shares of these signatures' counts. With `ask`, other servers are asked for counts that are not held here.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn shares(&self, signatures: Vec<Signature>, ask: bool) -> Result<Vec<Shares>, LedgerError> {
        let asks = self.asks.as_deref().filter(|_| ask);
        bulkmark_sync::shares(&self.ledger, asks, signatures, Instant::now() + PATIENCE).await
    }

    /// Returns the public part of the status, without addresses, links and clients.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn public_status(&self) -> Result<DaemonStatus, LedgerError> {
        let mut ledger = self.ask_ledger(None).await?;
        ledger.limited.clear();
        Ok(self.outline(ledger))
    }

    /// Asks the ledger for its status. A ledger whose disk hangs would never answer.
    async fn ask_ledger(&self, threshold: Option<u32>) -> Result<bulkmark_ledger::Status, LedgerError> {
        match tokio::time::timeout(LEDGER_PATIENCE, self.ledger.status(threshold)).await {
            Ok(status) => status,
            Err(_) => {
                let seconds = self.ledger.busy_for().as_secs();
                let why = if self.ledger.is_busy_with_disk() {
                    format!("the ledger's disk has not answered for {seconds} s")
                } else {
                    format!("the ledger has been busy with one piece of work for {seconds} s")
                };
                Err(LedgerError::Unavailable(why))
            }
        }
    }

    /// Returns why it cannot count; none while it can.
    #[must_use]
    pub fn ailment(&self) -> Option<&'static str> {
        if !self.ledger.is_available() {
            Some(DISK_FAILED)
        } else if self.ledger.busy_for() >= DISK_PATIENCE {
            Some("the ledger's disk does not answer")
        } else {
            None
        }
    }

    fn outline(&self, ledger: bulkmark_ledger::Status) -> DaemonStatus {
        DaemonStatus {
            role: self.name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.uptime(),
            ailment: None,
            listens: None,
            parameters: self.parameters.to_string(),
            ledger_format: Some(self.ledger.format()),
            versions: ledger.versions(),
            ledger,
            links: Vec::new(),
            fleet: None,
            staleness_seconds: None,
            clients: Vec::new(),
            refused: None,
            accounts: Vec::new(),
            correspondents: None,
            traps: None,
            likely_relays: Vec::new(),
            interfaces: Vec::new(),
            webhook: None,
            pause: None,
            allowed: None,
            allowed_elsewhere: BTreeMap::new(),
            order_troubles: Vec::new(),
        }
    }
}

async fn ask(server: Arc<Remote>) -> Option<BTreeMap<String, u64>> {
    let status = tokio::time::timeout(PATIENCE, server.status()).await.ok()?.ok()?;
    let versions = status.get("versions")?;
    BTreeMap::deserialize(versions).ok()
}

/// Returns how many updates `theirs` has beyond `ours`.
fn behind(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) -> u64 {
    let missing = |(origin, &version): (&String, &u64)| {
        version.saturating_sub(ours.get(origin).copied().unwrap_or_default())
    };
    theirs.iter().map(missing).fold(0, u64::saturating_add)
}

/// The space of a disk, and of the ledger on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Bytes of the file system.
    pub size: u64,
    /// Bytes of it that the daemon may still write.
    pub available: u64,
    /// Bytes of the ledger's file.
    pub ledger: u64,
    /// Whether so little is left that alerts and the page report it.
    pub short: bool,
}

impl Disk {
    /// One part in so many of a disk should be free.
    const RESERVE: u64 = 20;

    /// Reads the disk of the ledger in this directory; none if the system does not answer.
    fn of(directory: &Path) -> Option<Self> {
        let system = rustix::fs::statvfs(directory).ok()?;
        let ledger = directory.join(FILE_NAME).metadata().ok()?.len();
        let size = system.f_blocks.saturating_mul(system.f_frsize);
        let available = system.f_bavail.saturating_mul(system.f_frsize);
        Some(Self { size, available, ledger, short: available < size / Self::RESERVE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_counts_the_missing_updates() {
        let versions = |list: &[(&str, u64)]| list.iter().map(|&(o, v)| (o.to_owned(), v)).collect();
        assert_eq!(behind(&versions(&[("a", 5), ("b", 2)]), &versions(&[("a", 7), ("b", 1), ("c", 3)])), 5);
        assert_eq!(behind(&versions(&[]), &versions(&[])), 0);
    }
}
