// SPDX-License-Identifier: GPL-3.0-or-later
//! Whom `bulkmark fleet setup` lets use a log, and what it is told besides.

use super::types::Client;
use bulkmark_counts::Limits;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name: 1 to 64 letters, digits, `-` and `_`. The name of its account or role, too.
    pub name: String,
    /// What it does.
    pub duty: Duty,
    /// The public half of its nkey, `U...`.
    pub nkey: Option<String>,
    /// The file with the password of its role. Without one the role has none, and shows a certificate.
    pub password_file: Option<PathBuf>,
}

/// What a machine of a fleet does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// It reports, and follows.
    Milter {
        /// What it may bring; none for an own one.
        limits: Option<Limits>,
        /// How often what it brought was taken back.
        withdrawn: u32,
        /// Reports a second that it may bring; none: as many as it likes.
        rate: Option<NonZeroU32>,
    },
    /// It reads all batches, and appends steps and snapshots.
    Aggregator,
}

impl Member {
    /// As whom its reports are known; none where it does not report.
    #[must_use]
    pub fn client(&self) -> Option<Client> {
        match self.duty {
            Duty::Milter { limits, withdrawn, rate } => {
                Some(Client { name: self.name.clone(), limits, withdrawn, rate })
            }
            Duty::Aggregator => None,
        }
    }
}

/// How a log is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUp {
    /// Whether it is only told what would be done.
    pub dry_run: bool,
    /// NATS: where the accounts are written to, for nats-server's configuration to include.
    pub accounts: Option<PathBuf>,
    /// NATS: on how many nodes all is kept: 1, 3 or 5.
    pub replicas: u8,
}
