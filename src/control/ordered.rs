// SPDX-License-Identifier: GPL-3.0-or-later
//! Orders of the administrator on the control socket, and what became of them: the words of the question and of its answer.

use crate::orders::{All, Allowance};
use bulkmark_types::Signature;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// None: only what is in force is asked for.
    List,
    /// Nothing is refused for so many seconds, or until it is ended.
    Pause(Option<u64>),
    /// The pause ends.
    Resume,
    /// A mailing is never refused.
    Allow(Allow),
    /// The mailing whose name begins so is allowed no more.
    Remove(String),
    /// The counts of a mailing start over; it is known by signatures.
    Forget(Allow),
    /// The mailing whose name begins so counts with its earlier counts again.
    Remember(String),
    /// All correspondents of a user are forgotten, by the number of any pair of that user, under each key.
    ForgetUser(Vec<u64>),
}

/// Which mailing, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Allow {
    /// By these signatures, the first of which names it; none: by those of the message that follows.
    pub signatures: Vec<String>,
    /// Bytes of that message.
    pub length: u64,
    /// For so many seconds; none: until it is removed.
    pub seconds: Option<u64>,
}

/// An order, with who gives it and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Given {
    /// What.
    pub order: Order,
    /// Who.
    pub by: String,
    /// Why; may be empty.
    pub reason: String,
}

impl Given {
    /// Bytes of the message behind it.
    pub(super) const fn length(&self) -> u64 {
        match &self.order {
            Order::Allow(allow) => allow.length,
            Order::List
            | Order::Pause(_)
            | Order::Resume
            | Order::Remove(_)
            | Order::Forget(_)
            | Order::Remember(_)
            | Order::ForgetUser(_) => 0,
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ordered {
    /// All orders in force now.
    pub orders: All,
    /// The mailing that was allowed, or is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailing: Option<Allowance>,
    /// Whether other servers were told that it is no spam.
    #[serde(default)]
    pub shared: bool,
    /// The number of correspondents that were forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<usize>,
    /// Why it ends with the next restart, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A mailing, as it is known by a message of it.
#[derive(Debug, Clone, Default)]
pub struct KnownBy {
    /// Its signatures, the first names it.
    pub signatures: Vec<Signature>,
    /// Whether other servers were told that it is no spam.
    pub shared: bool,
}

/// Makes the signatures of a message whose mailing is allowed by somebody, and says to others that it is no spam.
pub type KnowMailing = Box<
    dyn Fn(Vec<u8>, String) -> Pin<Box<dyn Future<Output = Result<KnownBy, String>> + Send>> + Send + Sync,
>;
