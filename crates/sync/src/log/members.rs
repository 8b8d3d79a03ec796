// SPDX-License-Identifier: GPL-3.0-or-later
//! The members that `bulkmark fleet setup` lets use a log, and its other parameters.

use super::types::Client;
use bulkmark_counts::Limits;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name: 1 to 64 letters, digits, `-` and `_`. Also the name of its account or role.
    pub name: String,
    /// Its duty.
    pub duty: Duty,
    /// The public half of its nkey, `U...`.
    pub nkey: Option<String>,
    /// The file with the password of its role. Without one, it authenticates with a certificate.
    pub password_file: Option<PathBuf>,
}

/// The duty of a fleet's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// It reports, and follows.
    Milter {
        /// The limits of its reports; none for an own client.
        limits: Option<Limits>,
        /// How often its reports were withdrawn.
        withdrawn: u32,
        /// Reports a second that it may send; none for no limit.
        rate: Option<NonZeroU32>,
    },
    /// It reads all batches, and appends steps and snapshots.
    Aggregator,
}

impl Member {
    /// Returns the client under which its reports count; none if it does not report.
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
    /// Whether the changes are only shown.
    pub dry_run: bool,
    /// NATS: the file for the accounts, which nats-server's configuration includes.
    pub accounts: Option<PathBuf>,
    /// NATS: the number of nodes that store everything: 1, 3 or 5.
    pub replicas: u8,
}
