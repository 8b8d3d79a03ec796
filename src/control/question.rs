// SPDX-License-Identifier: GPL-3.0-or-later
//! Questions on the control socket, and their answers.

use super::ordered::{Given, Ordered};
use super::reported::{Report, Reported};
use super::reports::{ReporterRef, ReportsAsked};
use super::status::DaemonStatus;
use bulkmark_counts::{MailingReports, Overview, Shares, Withdrawal};
use serde::{Deserialize, Serialize};
use std::io;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question {
    /// The counts of these signatures.
    Counts(Vec<String>),
    /// The same without asking other servers.
    Held(Vec<String>),
    /// The daemon's status, with estimates of false bulk at this threshold.
    Status(u32),
    /// The whole ledger, in frames behind the answer.
    Backup,
    /// Which of these pairs of a user and a correspondent exist.
    Correspondents(Vec<u64>),
    /// A user's report on the message that follows.
    Report(Report),
    /// The user reports.
    Reports(ReportsAsked),
    /// The reporters of the mailing whose name has this prefix.
    Mailing(String),
    /// Withdraw all reports of a reporter.
    Forget(ReporterRef),
    /// Trust a user fully.
    Vouch(ReporterRef),
    /// An order of the administrator, with a message behind it if the order needs one.
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
    #[serde(rename = "spoken")]
    Mailing(Box<MailingReports>),
    Forgotten(Withdrawal),
    Vouched(bool),
    Ordered(Box<Ordered>),
    /// The reporter or mailing is unknown or ambiguous.
    Unclear(String),
    Error(String),
}

impl Answer {
    /// Returns the answer as one line of JSON.
    pub(super) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}
