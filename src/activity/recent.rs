// SPDX-License-Identifier: GPL-3.0-or-later
//! The last verdicts.

use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;

/// Verdicts that are kept.
const MOST: usize = 60;

/// What is kept of messages beside counts. By default nothing: nobody would see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// The last verdicts, and what is bulk.
    pub verdicts: bool,
    /// Of bulk the subjects as well.
    pub subjects: bool,
    /// Names and addresses of clients.
    pub clients: bool,
    /// Recipients.
    pub recipients: bool,
}

/// A verdict, for people.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recent {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The MTA's queue id.
    pub id: String,
    /// What was found.
    pub verdict: String,
    /// What was done; none where nothing was, beside the header.
    pub action: Option<String>,
    /// What would have been done, where that is only rehearsed.
    pub would: Option<String>,
    /// Why it was not counted, or not acted on, if so.
    pub reason: Option<&'static str>,
    /// The count of its body.
    pub body: Option<u32>,
    /// The count of its `near` signatures.
    pub near: Option<u32>,
    /// By how much users report it as spam, if so.
    pub spam: Option<String>,
    /// Its `body` signature.
    pub signature: Option<String>,
    /// The name of its mailing, if it is bulk.
    pub mailing: Option<String>,
    /// The domain of the envelope sender.
    pub domain: String,
    /// Name and address of the client, where the configuration wants that.
    pub client: Option<String>,
    /// The recipients, where the configuration wants that; a few of them.
    pub recipients: Vec<String>,
    /// How many there are.
    pub nrcpt: usize,
    /// How long it took, in milliseconds.
    pub ms: f64,
}

/// The last of them.
#[derive(Debug, Default)]
pub(super) struct Ring(Mutex<VecDeque<Recent>>);

impl Ring {
    pub(super) fn push(&self, recent: Recent) {
        let mut ring = self.0.lock();
        ring.truncate(MOST - 1);
        ring.push_front(recent);
    }

    /// All of them, the last one first.
    pub(super) fn list(&self) -> Vec<Recent> {
        self.0.lock().iter().cloned().collect()
    }
}
