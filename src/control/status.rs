// SPDX-License-Identifier: GPL-3.0-or-later
//! What a daemon can say of itself.

use super::ordered::KnowMailing;
use super::reported::TakeReport;
use super::reports::NameReporter;
use crate::activity::{AccountStatus, Activity, DoorStatus, LikelyRelay, TrapStatus};
use crate::orders::{All, Orders, Pause};
use bulkmark_counts::{Role, Shares};
use bulkmark_ledger::correspondents::Correspondents;
use bulkmark_ledger::{FILE_NAME, Ledger, LedgerError};
use bulkmark_sync::fleet::{Fleet, FleetStatus};
use bulkmark_sync::{Asks, LinkStatus, Links, Parameters, Remote};
use bulkmark_types::Signature;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a disk may take for something before it is said to hang.
pub const DISK_PATIENCE: Duration = Duration::from_secs(10);

/// How long the ledger may take to tell of itself.
const LEDGER_PATIENCE: Duration = Duration::from_secs(3);

/// How long a server may take to say how far it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is said of a ledger that cannot be written.
const DISK_FAILED: &str = "the ledger's disk failed";

/// Accounts that are listed.
const MOST_ACCOUNTS: usize = 20;

/// How a client of a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// As it should be.
    #[default]
    Well,
    /// It asked for nothing since the server was started.
    NotHeard,
    /// It asked for nothing in the last ten minutes.
    Silent,
    /// A request was refused in the last ten minutes, and no report was counted since.
    Refused,
    /// The same, because it sent or asked more than it may.
    OverLimits,
    /// It registered, and waits for approval.
    Unapproved,
    /// Its signatures are made up, so nothing is taken of it.
    MadeUp,
    /// Its token has expired.
    Expired,
}

impl ClientState {
    /// Whether the administrator has to look after it.
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
    /// How it is.
    #[serde(default)]
    pub state: ClientState,
    /// What it may do.
    pub role: String,
    /// The limits of a partner.
    pub limits: Option<String>,
    /// The version of its program, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Batches that were counted, or had been before.
    pub batches: u64,
    /// Signatures in them.
    pub signatures: u64,
    /// Those of today, by UTC.
    #[serde(default)]
    pub today: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Why the last of them was.
    pub last_refusal: Option<String>,
    /// Whether nothing is taken of it, since its signatures are made up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_up: bool,
    /// Seconds since a batch of it was counted.
    #[serde(default)]
    pub reported_seconds_ago: Option<u64>,
    /// Seconds since it asked for anything; at most a minute while it follows updates.
    pub heard_seconds_ago: Option<u64>,
}

/// Requests that a server refused since it was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedStatus {
    /// How many, by the codes of docs/protocol.md.
    pub requests: BTreeMap<String, u64>,
    /// The address that tried a token last that nobody has; "unix" of a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_invalid_token_from: Option<String>,
    /// How long ago that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_invalid_token_seconds_ago: Option<u64>,
}

/// A daemon at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DaemonStatus {
    /// "milter", "doors" or "server".
    pub role: String,
    /// Of the program.
    pub version: String,
    /// Seconds since it was started.
    pub uptime_seconds: u64,
    /// Why it counts nothing; none while it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ailment: Option<String>,
    /// Where it listens, as the system has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<String>,
    /// What all who share counts agree in.
    pub parameters: String,
    /// How far each origin is counted.
    pub versions: BTreeMap<String, u64>,
    /// The counts.
    pub ledger: bulkmark_ledger::Status,
    /// Upstream servers of a milter, peers of a server.
    pub links: Vec<LinkStatus>,
    /// Of a machine of a fleet; `links` has the connection to its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetStatus>,
    /// Seconds since any of them said anything, or since the start; none without them.
    #[serde(default)]
    pub staleness_seconds: Option<u64>,
    /// Clients of a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientStatus>,
    /// What a server refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedStatus>,
    /// Accounts that sent bulk to others lately, those over their limit first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountStatus>,
    /// Pairs of a user and somebody the user wrote to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correspondents: Option<usize>,
    /// What traps made of mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traps: Option<TrapStatus>,
    /// Clients that may be mail servers of one's own in front of this one, and are not in `relays`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub likely_relays: Vec<LikelyRelay>,
    /// Doors of a milter beside the mail server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doors: Vec<DoorStatus>,
    /// Whether nothing is refused for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Mailings that are never refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<usize>,
}

/// What a daemon is made of, as far as it can tell of it.
pub struct Parts {
    /// The name of its command: "milter", "doors" or "server".
    pub name: &'static str,
    /// What its ledger is for.
    pub role: Role,
    /// Where it listens, as the system has it.
    pub address: String,
    /// What all who share counts agree in.
    pub parameters: Parameters,
    /// The counts.
    pub ledger: Ledger,
    /// The directory of their file.
    pub state_dir: PathBuf,
    /// Connections to other servers.
    pub links: Arc<Links>,
    /// Those servers, in the same order.
    pub servers: Vec<Arc<Remote>>,
    /// A fleet that it is one of, whose log is the first of `links`.
    pub fleet: Option<Arc<Fleet>>,
    /// Who is asked for counts that are not held here.
    pub asks: Option<Arc<Asks>>,
    /// The clients of a server; a milter has none.
    pub clients: Box<dyn Fn() -> Vec<ClientStatus> + Send + Sync>,
    /// What a server refused; none of a milter.
    pub refused: Box<dyn Fn() -> Option<RefusedStatus> + Send + Sync>,
    /// Whom the users of a milter wrote to.
    pub correspondents: Option<Arc<Correspondents>>,
    /// Who counts what users say; a server has none.
    pub reports: Option<TakeReport>,
    /// Who knows by which number the ledger has them; a server does not.
    pub reporter: Option<NameReporter>,
    /// What the administrator ordered; a server refuses nothing.
    pub orders: Option<Arc<Orders>>,
    /// Who makes the signatures of a message whose mailing is allowed.
    pub know_mailing: Option<KnowMailing>,
    /// What it did.
    pub activity: Arc<Activity>,
}

/// What a daemon knows of itself.
pub struct Daemon {
    started: Instant,
    /// The same, in seconds since 1970.
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
    /// One that begins now.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self { started: Instant::now(), started_at: bulkmark_ledger::now(), parts }
    }

    /// Whether it is a server; else it is a milter, or has doors alone.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.role == Role::Server
    }

    /// The orders in force.
    #[must_use]
    pub fn in_force(&self) -> All {
        self.orders.as_ref().map(|orders| orders.all(bulkmark_ledger::now())).unwrap_or_default()
    }

    /// Seconds since the start.
    #[must_use]
    pub fn uptime(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// What is known of its disk.
    #[must_use]
    pub fn disk(&self) -> Option<Disk> {
        Disk::of(&self.state_dir)
    }

    /// All of it; estimates of false bulk for a `threshold` only. Asks the other servers how far they are.
    ///
    /// # Errors
    /// When the ledger is not available.
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
            ailment: self.ailment().map(|what| self.ledger.fault().unwrap_or_else(|| what.to_owned())),
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
            doors: self.activity.doors.status(),
            pause: orders.pause,
            allowed: Some(orders.allowed.len()).filter(|&number| number > 0),
            ..self.outline(ledger)
        })
    }

    /// Of what the counts of these signatures are made up. What is not held here is asked, if others may be told of them.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn shares(&self, signatures: Vec<Signature>, ask: bool) -> Result<Vec<Shares>, LedgerError> {
        let asks = self.asks.as_deref().filter(|_| ask);
        bulkmark_sync::shares(&self.ledger, asks, signatures, Instant::now() + PATIENCE).await
    }

    /// What everybody may know who may read: nothing of addresses, links and clients.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn public_status(&self) -> Result<DaemonStatus, LedgerError> {
        let mut ledger = self.ask_ledger(None).await?;
        ledger.limited.clear();
        Ok(self.outline(ledger))
    }

    /// What the ledger tells of itself. One whose disk hangs would never answer.
    async fn ask_ledger(&self, threshold: Option<u32>) -> Result<bulkmark_ledger::Status, LedgerError> {
        match tokio::time::timeout(LEDGER_PATIENCE, self.ledger.status(threshold)).await {
            Ok(status) => status,
            Err(_) => {
                let seconds = self.ledger.busy_for().as_secs();
                let why = if self.ledger.is_busy_with_disk() {
                    format!("the ledger's disk has not answered for {seconds} s")
                } else {
                    format!("the ledger has been counting what it was told for {seconds} s")
                };
                Err(LedgerError::Unavailable(why))
            }
        }
    }

    /// What keeps it from counting; none while it can.
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
            doors: Vec::new(),
            pause: None,
            allowed: None,
        }
    }
}

async fn ask(server: Arc<Remote>) -> Option<BTreeMap<String, u64>> {
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

/// What a disk has, and what the ledger takes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Bytes of the file system.
    pub size: u64,
    /// Bytes of it that the daemon may still write.
    pub available: u64,
    /// Bytes of the ledger's file.
    pub ledger: u64,
}

impl Disk {
    /// Of the ledger in this directory; none where the system does not tell.
    fn of(directory: &Path) -> Option<Self> {
        let system = rustix::fs::statvfs(directory).ok()?;
        let ledger = directory.join(FILE_NAME).metadata().ok()?.len();
        Some(Self {
            size: system.f_blocks.saturating_mul(system.f_frsize),
            available: system.f_bavail.saturating_mul(system.f_frsize),
            ledger,
        })
    }
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
