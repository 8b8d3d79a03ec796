// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger's settings.

use crate::key_files::KeyFiles;
use serde::Deserialize;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// The length of a window of user reports, in seconds. No other window has this length, which identifies them.
pub const USER_REPORT_WINDOW: u64 = 5 * 86_400;

/// The time at which a report is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When it is on disk: answered reports survive a crash and a power loss.
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
    /// The time for which a report counts, from the beginning of its window; in whole windows.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
    /// The time for which a user report counts, from the beginning of its window of five days.
    #[serde(skip)]
    pub user_report_retention: Duration,
    /// The time at which a report is answered.
    pub durability: Durability,
    /// The longest time until a relaxed report is on disk.
    #[serde(skip)]
    pub commit_interval: Duration,
    /// The files of the federation's key.
    pub federation_key_file: KeyFiles,
    /// Settings from other tables of the configuration.
    #[serde(skip)]
    pub federation: Federation,
}

/// The most reports that wait for a server, if the capacity is no larger.
const MIN_SPOOL: usize = 1_000_000;

/// The age at which a report that no server took is dropped.
pub const SPOOL_AGE: Duration = DAY;

/// The settings of a ledger that shares its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Federation {
    /// The time between two updates of a server.
    pub sync_interval: Duration,
    /// The time for which a server keeps updates for holders that were away.
    pub keep_updates: Duration,
    /// The URLs of all upstream servers.
    pub upstreams: Vec<String>,
    /// The federation's key id; `Ledger::open` sets it.
    pub key_id: u64,
    /// The client of this milter's reports in a fleet's log.
    pub fleet_client: Option<String>,
    /// Whether updates are kept, in a fleet, for holders that follow this one by HTTPS.
    pub serves: bool,
    /// The URLs of a server's peers, from which it learns after a start which of its counts they have.
    pub peers: Vec<String>,
    /// Whether a server keeps its updates for other servers too, until their reports expire.
    pub for_peers: bool,
    /// The part of the federation's counts that a milter holds.
    pub copy: LocalCopy,
}

/// The part of the federation's counts that a milter holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalCopy {
    /// All of them.
    #[default]
    Full,
    /// Bulk: the counts of signatures from half of the lowest threshold on.
    Partial,
}

impl Default for Federation {
    fn default() -> Self {
        Self {
            sync_interval: Duration::from_secs(1),
            keep_updates: DAY.saturating_mul(3),
            upstreams: Vec::new(),
            copy: LocalCopy::Full,
            key_id: 0,
            fleet_client: None,
            serves: false,
            peers: Vec::new(),
            for_peers: false,
        }
    }
}

/// The purpose of a ledger, which never changes between milter and server.
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
    /// Whether updates are made of the local counts.
    pub fn is_server(self) -> bool {
        self == Self::Server
    }
}

/// As in the ledger's file, where both kinds of milters are the same.
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
            user_report_retention: DAY.saturating_mul(30),
            durability: Durability::default(),
            commit_interval: Duration::from_secs(1),
            federation_key_file: KeyFiles::default(),
            federation: Federation::default(),
        }
    }
}

impl Settings {
    /// Returns the most reports that wait for a server: as many as a window has signatures, which are those of a whole day, and a million at
    /// least.
    #[must_use]
    pub fn max_spool(&self) -> usize {
        usize::try_from(self.capacity.get()).unwrap_or(usize::MAX).max(MIN_SPOOL)
    }

    /// Returns the first key with an invalid value, and the expected values.
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
        let of_user_reports = Duration::from_secs(USER_REPORT_WINDOW);
        if self.window == of_user_reports {
            let why = "is the length of the windows in which user reports are counted; expected another one";
            return Err(("window", format!("found {}, which {why}", shown(self.window))));
        }
        Ok(())
    }
}
