// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of the ledger.

use serde::Deserialize;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Seconds of a window in which what people say is counted. No other window has this length: by it they are told apart.
pub const PEOPLE_WINDOW: u64 = 5 * 86_400;

/// When a report is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When it is on disk: what was answered survives a crash and a power loss.
    #[default]
    Strict,
    /// At once; it is on disk within `commit_interval`.
    Relaxed,
}

/// `[ledger]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Signatures that the first slice of a generation holds with the stated accuracy; twice as many in the next.
    pub capacity: NonZeroU32,
    /// The length of a generation's window.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// How long a report counts, from the beginning of its window; in whole windows.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
    /// How long counts what people say of a message, from the beginning of its window of five days.
    #[serde(skip)]
    pub people_retention: Duration,
    /// When a report is answered.
    pub durability: Durability,
    /// The longest time that a relaxed report is not yet on disk.
    #[serde(skip)]
    pub commit_interval: Duration,
    /// The file of the federation's key; none for a site of its own.
    pub federation_key_file: Option<PathBuf>,
    /// The file of the key that was used before, while its counts still count.
    pub old_federation_key_file: Option<PathBuf>,
    /// What other tables of the configuration say.
    #[serde(skip)]
    pub federation: Federation,
}

/// How a ledger that shares its counts does so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Federation {
    /// The time between two updates of a server.
    pub sync_interval: Duration,
    /// How long a server keeps updates for holders that were away.
    pub keep_updates: Duration,
    /// The age at which a report that no server acknowledged is dropped.
    pub spool_age: Duration,
    /// Reports that wait for a server at most; then the oldest are dropped.
    pub spool_reports: usize,
    /// The URLs of all upstream servers.
    pub upstreams: Vec<String>,
    /// The number of the federation's key; `Ledger::open` sets it.
    pub key_id: u64,
    /// In a fleet, the client under which this milter's reports go to the log.
    pub fleet_client: Option<String>,
    /// Whether, in a fleet, updates are kept for holders that follow this one by HTTPS.
    pub serves: bool,
    /// Of a server, those that it hears of after a start what they know of its counts: the URLs of its peers.
    pub peers: Vec<String>,
    /// Whether a server keeps its updates for other servers, beside milters: as long as what they count counts.
    pub for_peers: bool,
    /// What a milter holds of the federation's counts.
    pub hold: Hold,
}

/// What a milter holds of the federation's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// All of them.
    #[default]
    All,
    /// Those of bulk: of signatures from half of the lowest threshold on.
    Bulk,
}

impl Default for Federation {
    fn default() -> Self {
        Self {
            sync_interval: Duration::from_secs(1),
            keep_updates: DAY.saturating_mul(3),
            spool_age: DAY,
            spool_reports: 1_000_000,
            upstreams: Vec::new(),
            hold: Hold::All,
            key_id: 0,
            fleet_client: None,
            serves: false,
            peers: Vec::new(),
            for_peers: false,
        }
    }
}

/// What a ledger is for; it stays what it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A milter that counts for itself.
    Site,
    /// A milter whose counts come from an upstream server.
    Cache,
    /// A signature server.
    Server,
}

impl Role {
    /// Whether updates are made of what is counted here.
    pub fn is_server(self) -> bool {
        self == Self::Server
    }
}

/// As the ledger's file has it: a milter may change from one side to the other.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_server() { "server" } else { "milter" })
    }
}

const DAY: Duration = Duration::from_secs(86_400);

impl Default for Settings {
    fn default() -> Self {
        Self {
            capacity: const { NonZeroU32::new(1_000_000).unwrap() },
            window: DAY,
            retention: DAY.saturating_mul(7),
            people_retention: DAY.saturating_mul(30),
            durability: Durability::default(),
            commit_interval: Duration::from_secs(1),
            federation_key_file: None,
            old_federation_key_file: None,
            federation: Federation::default(),
        }
    }
}

impl Settings {
    /// The first key whose value cannot work, and what was expected of it.
    ///
    /// # Errors
    /// The key's name and the sentence for the administrator.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let shown = humantime_serde::re::humantime::format_duration;
        if self.window < Duration::from_secs(60) || !self.window.as_secs().is_multiple_of(60) {
            let found = shown(self.window);
            return Err((
                "window",
                format!("found {found}, expected whole minutes, for example \"1d\" or \"6h\""),
            ));
        }
        if self.retention < self.window || self.retention > self.window.saturating_mul(366) {
            let (found, window) = (shown(self.retention), shown(self.window));
            return Err((
                "retention",
                format!("found {found}, expected 1 to 366 times the window of {window}"),
            ));
        }
        let of_people = Duration::from_secs(PEOPLE_WINDOW);
        if self.window == of_people {
            let why =
                "is the length of the windows in which what people say is counted; expected another one";
            return Err(("window", format!("found {}, which {why}", shown(self.window))));
        }
        Ok(())
    }
}
