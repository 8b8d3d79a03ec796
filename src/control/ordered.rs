// SPDX-License-Identifier: GPL-3.0-or-later
//! Orders of the administrator on the control socket, and their results.

use crate::orders::{All, Allowance, SiteOrder, Standing};
use bulkmark_types::Signature;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// No order: asks for the orders in force.
    List,
    /// Nothing is refused for so many seconds, or until `Resume`.
    Pause(Option<u64>),
    /// The pause ends.
    Resume,
    /// A mailing is never refused.
    Allow(Allow),
    /// The mailing whose name has this prefix is no longer allowed.
    Remove(String),
    /// The counts of a mailing start over.
    Forget(Allow),
    /// The mailing whose name has this prefix counts with its earlier counts again.
    Remember(String),
    /// All correspondents of a user are forgotten; the numbers are the user's part of a pair, under each key.
    ForgetUser(Vec<u64>),
}

/// A mailing, and the duration of an order about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Allow {
    /// Its signatures, the first of which names it; if empty, those of the message that follows.
    pub signatures: Vec<String>,
    /// Bytes of that message.
    pub length: u64,
    /// The duration in seconds; none: until the order is removed.
    pub seconds: Option<u64>,
    /// Whether no other site receives the order.
    #[serde(default)]
    pub here: bool,
}

/// An order, its author and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Given {
    /// The order.
    pub order: Order,
    /// The user who gives it.
    pub by: String,
    /// The reason; may be empty.
    pub reason: String,
}

impl Given {
    /// Returns the length of the message behind it, in bytes.
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

/// The result of an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ordered {
    /// All orders of this machine in force now, with the pause of a federation.
    pub orders: All,
    /// The kind that this machine's site has at its server; none if no server has its orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The names of this machine's orders that the federation's operator revoked, so that they hold here alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
    /// The orders of other sites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SiteOrder>,
    /// The reasons why orders are not exchanged with servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
    /// The mailing that is now allowed, or no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailing: Option<Allowance>,
    /// Whether other servers received that it is no spam.
    #[serde(default)]
    pub shared: bool,
    /// The number of correspondents that were forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<usize>,
    /// Why the order ends with the next restart, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A mailing, recognised by one of its messages.
#[derive(Debug, Clone, Default)]
pub struct KnownBy {
    /// Its signatures, the first names it.
    pub signatures: Vec<Signature>,
    /// Whether other servers received that it is no spam.
    pub shared: bool,
    /// Whether no server may receive its signatures.
    pub is_private: bool,
}

/// Makes the signatures of a message whose mailing somebody allows, and reports to other servers that it is no spam.
pub type KnowMailing = Box<
    dyn Fn(Vec<u8>, String) -> Pin<Box<dyn Future<Output = Result<KnownBy, String>> + Send>> + Send + Sync,
>;
