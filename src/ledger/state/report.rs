// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message tells the ledger.

use super::retries::RetryKey;
use crate::signature::Signature;

/// "I saw these signatures": what a message adds to the ledger, and what it asks for.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was seen.
    pub signatures: Vec<Signature>,
    /// What is only asked for.
    pub asked: Vec<Signature>,
    /// How often it was seen; zero only asks.
    pub times: u32,
    /// For each time, who it was for, as far as the caller knows: those that were [refused](crate::ledger::Ledger::refused) within
    /// the last hour are not counted again.
    pub keys: Vec<RetryKey>,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}
