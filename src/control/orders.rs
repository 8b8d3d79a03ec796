// SPDX-License-Identifier: GPL-3.0-or-later
//! Orders of the administrator on the control socket: pauses, and mailings that are never refused.

use super::question::Answer;
use super::report::{PATIENCE, read_message};
use super::reported::MAX_REPORTED;
use super::status::Daemon;
use crate::orders::{All, Allowance, Failure, MAX_TEXT, Orders, Pause};
use bulkmark_ledger::now;
use bulkmark_types::{Signature, told};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::AsyncRead;

/// Signatures of a mailing at most; a message has fewer.
const MOST: usize = 100;

/// What a server says that is asked for orders.
const NONE_HERE: &str = "a signature server refuses no mail, ask a milter";

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
            Order::List | Order::Pause(_) | Order::Resume | Order::Remove(_) => 0,
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

/// Carries out an order, whose message follows, if it has one.
pub(super) async fn answer(
    reader: &mut (impl AsyncRead + Unpin),
    given: Given,
    daemon: &Daemon,
) -> io::Result<Answer> {
    if given.length() > MAX_REPORTED || given.by.len() > MAX_TEXT || given.reason.len() > MAX_TEXT {
        let why = format!("expected a message of {MAX_REPORTED} bytes at most, and texts of {MAX_TEXT}");
        return Ok(Answer::Error(why));
    }
    let message = tokio::time::timeout(PATIENCE, read_message(reader, given.length()));
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the message does not come");
    let message = message.await.map_err(slow)??;
    let Some(orders) = &daemon.orders else { return Ok(Answer::Error(NONE_HERE.to_owned())) };
    let known = match &given.order {
        Order::Allow(Allow { signatures, .. }) if signatures.is_empty() => {
            let Some(know) = &daemon.know_mailing else { return Ok(Answer::Error(NONE_HERE.to_owned())) };
            match know(message, given.by.clone()).await {
                Ok(known) => known,
                Err(e) => return Ok(Answer::Unclear(e)),
            }
        }
        Order::Allow(Allow { signatures, .. }) => {
            match signatures.iter().take(MOST).map(|text| text.parse()).collect() {
                Ok(signatures) => KnownBy { signatures, shared: false },
                Err(e) => return Ok(Answer::Unclear(format!("it is no signature: {e}"))),
            }
        }
        _ => KnownBy::default(),
    };
    // It waits for the disk.
    let orders = Arc::clone(orders);
    let done = tokio::task::spawn_blocking(move || carry_out(&orders, given, &known)).await;
    Ok(match done {
        Ok(Ok(ordered)) => Answer::Ordered(Box::new(ordered)),
        Ok(Err(e)) => Answer::Unclear(e.to_string()),
        Err(_) => Answer::Error("it was not carried out".to_owned()),
    })
}

fn carry_out(
    orders: &Orders,
    Given { order, by, reason }: Given,
    known: &KnownBy,
) -> Result<Ordered, Failure> {
    let now = now();
    let until = |seconds: Option<u64>| seconds.map(|seconds| now.saturating_add(seconds));
    let mut done = Ordered { shared: known.shared, ..Ordered::default() };
    let who = format!("by={} reason=\"{}\"", told(&by), told(&reason));
    let kept = match order {
        Order::List => Ok(()),
        Order::Pause(seconds) => {
            let seconds_told = seconds.map_or_else(String::new, |seconds| format!(" for {seconds} s"));
            log::warn!("paused{seconds_told}: nothing is refused, {who}");
            orders.pause(Pause { since: now, until: until(seconds), by, reason })
        }
        Order::Resume => {
            log::warn!("resumed, {who}");
            orders.resume(now).map(drop)
        }
        Order::Remove(prefix) => orders.remove(&prefix, now).map(|removed| {
            log::info!("mailing {} is allowed no more, {who}", removed.name());
            done.mailing = Some(removed);
        }),
        Order::Allow(Allow { seconds, .. }) => {
            let signatures = known.signatures.iter().map(ToString::to_string).collect();
            let allowance = Allowance { signatures, since: now, until: until(seconds), by, reason };
            done.mailing = Some(allowance.clone());
            let allowed = orders.allow(allowance);
            if let (Ok(()) | Err(Failure::NotKept { .. }), Some(mailing)) = (&allowed, &done.mailing) {
                log::info!("mailing {} is allowed, {who}", mailing.name());
            }
            allowed
        }
    };
    done.warning = match kept {
        Err(e @ Failure::NotKept { .. }) => Some(e.to_string()),
        other => other.map(|()| None)?,
    };
    done.orders = orders.all(now);
    Ok(done)
}
