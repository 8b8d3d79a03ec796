// SPDX-License-Identifier: GPL-3.0-or-later
//! What somebody says of a message, and what became of it: the words of the question and of its answer.

use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;

/// Bytes of a message that is reported: the longest body that is read of one, 32 MiB, and its header.
pub const MAX_REPORTED: u64 = 36 << 20;

/// Bytes of a reporter's name at most.
pub const MAX_REPORTER: usize = 1024;

/// Who says what of the message that follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The user's name: any bytes.
    pub user: Vec<u8>,
    /// Whether it is spam; else it is none.
    pub spam: bool,
    /// Whether mail of one's own may be meant.
    pub force: bool,
    /// Whether only what this user said before is taken back.
    pub forget: bool,
    /// Bytes of the message.
    pub length: u64,
}

/// What became of it. The numbers are of signatures; it is on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reported {
    /// Of the message.
    pub signatures: usize,
    /// For which the word was counted.
    pub counted: usize,
    /// For which what the user said before was taken back.
    pub taken_back: usize,
    /// For which the user had said so before.
    pub known: usize,
    /// For which the user changed their mind too often.
    pub too_often: usize,
    /// For which there is no room.
    pub no_room: usize,
    /// For which the word weighs nothing.
    #[serde(default)]
    pub weightless: usize,
    /// What the word weighs, of a whole one.
    #[serde(default)]
    pub weight: f64,
    /// Whether other servers are told.
    pub shared: bool,
    /// Why nothing was counted, if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether the same may be counted later, since it is for no fault of the message.
    #[serde(default)]
    pub later: bool,
    /// Whether that is tomorrow, since the user said enough today.
    #[serde(default)]
    pub too_many: bool,
}

/// Counts what somebody says of a message.
pub type TakeReport =
    Box<dyn Fn(Report, Vec<u8>) -> Pin<Box<dyn Future<Output = Reported> + Send>> + Send + Sync>;
