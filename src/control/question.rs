// SPDX-License-Identifier: GPL-3.0-or-later
//! What is asked on the control socket, and what is answered.

use super::ordered::{Given, Ordered};
use super::reported::{Report, Reported};
use super::reports::{ReportsAsked, Whose};
use super::status::DaemonStatus;
use bulkmark_counts::{MailingReports, Overview, Shares, Withdrawal};
use serde::{Deserialize, Serialize};
use std::io;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question {
    /// The counts of these signatures.
    Counts(Vec<String>),
    /// The same as far as the daemon has them, without asking others.
    Held(Vec<String>),
    /// What the daemon can say of itself, with estimates of false bulk at this threshold.
    Status(u32),
    /// All of the ledger, in frames behind the answer.
    Backup,
    /// Which of these pairs of a user and somebody the user wrote to there are.
    Correspondents(Vec<u64>),
    /// What somebody says of the message that follows.
    Report(Report),
    /// What was said.
    Reports(ReportsAsked),
    /// Who spoke of the mailing whose name begins so.
    Mailing(String),
    /// All that somebody said is to be taken back.
    Forget(Whose),
    /// A user is to be trusted in full.
    Vouch(Whose),
    /// An order of the administrator, with a message behind it where it is about one.
    Order(Given),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Counts(Vec<Shares>),
    Status(Box<DaemonStatus>),
    Backup,
    Reported(Reported),
    Correspondents(Vec<bool>),
    Reports(Box<Overview>),
    Spoken(Box<MailingReports>),
    Forgotten(Withdrawal),
    Vouched(bool),
    Ordered(Box<Ordered>),
    /// It cannot be told who or what is meant.
    Unclear(String),
    Error(String),
}

impl Answer {
    /// As it travels.
    pub(super) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}
