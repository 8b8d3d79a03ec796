// SPDX-License-Identifier: GPL-3.0-or-later
//! The last verdicts.

use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;

/// Verdicts that are kept.
const MOST: usize = 60;

/// Which data of messages are kept beside counts. None by default, since nobody would see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// The last verdicts, and bulk mailings.
    pub verdicts: bool,
    /// Subjects of bulk, too.
    pub subjects: bool,
    /// Names and addresses of clients.
    pub clients: bool,
    /// Recipients.
    pub recipients: bool,
}

/// A verdict, as the page shows it.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recent {
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The MTA's queue id.
    pub id: String,
    /// The verdict.
    pub verdict: String,
    /// The action; none if only the header was added.
    pub action: Option<String>,
    /// The action that was only rehearsed, if so.
    pub would: Option<String>,
    /// The reason if it was not counted or the action was not taken.
    pub reason: Option<&'static str>,
    /// The count of its body.
    pub body: Option<u32>,
    /// The count of its `near` signatures.
    pub near: Option<u32>,
    /// The weight of the users' reports as spam, if any.
    pub spam: Option<String>,
    /// Its `body` signature.
    pub signature: Option<String>,
    /// The name of its mailing, if it is bulk.
    pub mailing: Option<String>,
    /// The domain of the envelope sender.
    pub domain: String,
    /// Name and address of the client, if the configuration wants that.
    pub client: Option<String>,
    /// Some of the recipients, if the configuration wants that.
    pub recipients: Vec<String>,
    /// The number of all recipients.
    pub nrcpt: usize,
    /// The time it took, in milliseconds.
    pub ms: f64,
}

/// The last `MOST` verdicts.
#[derive(Debug, Default)]
pub(super) struct Ring(Mutex<VecDeque<Recent>>);

impl Ring {
    pub(super) fn push(&self, recent: Recent) {
        let mut ring = self.0.lock();
        ring.truncate(MOST - 1);
        ring.push_front(recent);
    }

    /// Returns all of them, the latest first.
    pub(super) fn list(&self) -> Vec<Recent> {
        self.0.lock().iter().cloned().collect()
    }
}
