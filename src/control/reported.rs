// SPDX-License-Identifier: GPL-3.0-or-later
//! A user's report on a message, and its result, as the control socket has them.

use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;

/// Size limit of a reported message: the longest body that is read, 32 MiB, and its header.
pub const MAX_REPORTED: u64 = 36 << 20;

/// Length limit of a reporter's name, in bytes.
pub const MAX_REPORTER: usize = 1024;

/// A report on the message that follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The user's name: any bytes.
    pub user: Vec<u8>,
    /// Whether the message is reported as spam; else as not spam.
    pub spam: bool,
    /// Whether your own mail may be reported.
    pub force: bool,
    /// Whether only earlier reports of this user are withdrawn.
    pub forget: bool,
    /// Length of the message in bytes.
    pub length: u64,
}

/// The result of a report, which is on disk. The numbers count signatures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reported {
    /// Signatures of the message.
    pub signatures: usize,
    /// Signatures for which the report was counted.
    pub counted: usize,
    /// Signatures for which an earlier report of the user was withdrawn.
    pub taken_back: usize,
    /// Signatures that the user had already reported.
    pub known: usize,
    /// Signatures for which the user changed the report too often.
    pub too_often: usize,
    /// Signatures for which there is no room.
    pub no_room: usize,
    /// Signatures for which the weight of the report is zero.
    #[serde(default)]
    pub weightless: usize,
    /// The weight of the report; 1 is a whole one.
    #[serde(default)]
    pub weight: f64,
    /// Whether the report is sent to other servers.
    pub shared: bool,
    /// Why nothing was counted, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether the same report may be counted later, since the failure is not due to the message.
    #[serde(default)]
    pub later: bool,
    /// Whether that is tomorrow, since the user sent too many reports today.
    #[serde(default)]
    pub too_many: bool,
}

/// Counts a user's report on a message.
pub type TakeReport =
    Box<dyn Fn(Report, Vec<u8>) -> Pin<Box<dyn Future<Output = Reported> + Send>> + Send + Sync>;
