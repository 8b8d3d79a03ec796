// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks the server that is followed for counts that a thin milter does not hold. Nobody waits for that longer than a bound, and a
//! server that did not answer is left alone for a while.

use super::remote::Remote;
use super::state::Links;
use super::wire::MAX_ASKED;
use crate::ledger::{self, Ledger, LedgerError, Shares};
use crate::signature::Signature;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long an answer is taken for the count. It is as old as a server's updates are.
const FRESH: Duration = Duration::from_secs(1);

/// Answers that are remembered, in less than four megabytes.
const MOST: usize = 1 << 16;

/// How long a server that did not answer in time is left alone.
const QUIET: Duration = Duration::from_secs(5);

/// Asks for counts.
pub struct Asks {
    servers: Vec<Arc<Remote>>,
    links: Arc<Links>,
    /// Whether nobody is followed, so that whoever does not answer is left for the next one.
    takes_turns: bool,
    /// The count from which on bulk is held here.
    bound: AtomicU32,
    known: Mutex<HashMap<Signature, (u32, Instant)>>,
    /// Until when nobody is asked.
    quiet: Mutex<Option<Instant>>,
}

impl Asks {
    /// Asks that of `servers` which is followed, as `links` tell. What has reached `bound` is held here.
    #[must_use]
    pub fn new(servers: Vec<Arc<Remote>>, links: Arc<Links>, bound: u32) -> Self {
        let (known, quiet) = (Mutex::default(), Mutex::default());
        Self { servers, links, takes_turns: false, bound: bound.into(), known, quiet }
    }

    /// Asks the first of `servers`, whose connections these `links` are, and the next one when that does not answer: aggregators, whose
    /// counts come by their fleet's log. Of none, nothing is ever known.
    #[must_use]
    pub fn of_fleet(servers: Vec<Arc<Remote>>, links: Arc<Links>, bound: u32) -> Self {
        links.set_active((!servers.is_empty()).then_some(0));
        Self { takes_turns: true, ..Self::new(servers, links, bound) }
    }

    /// The count from which on bulk is held here.
    #[must_use]
    pub fn bound(&self) -> u32 {
        self.bound.load(Ordering::Relaxed)
    }

    /// The thresholds were changed.
    pub fn set_bound(&self, bound: u32) {
        self.bound.store(bound, Ordering::Relaxed);
    }

    /// How often the server counted these signatures. None when it is not known before `deadline`.
    pub async fn counts(&self, signatures: &[Signature], deadline: Instant) -> Option<Vec<u32>> {
        let mut missing = self.missing(signatures);
        missing.sort_unstable();
        missing.dedup();
        for some in missing.chunks(MAX_ASKED) {
            drop(self.ask(some, deadline).await?);
        }
        let known = self.known.lock();
        signatures.iter().map(|signature| known.get(signature).map(|&(count, _)| count)).collect()
    }

    /// The same of these signatures, 1,024 at most, as the server counts them now.
    pub async fn counts_now(&self, signatures: &[Signature], deadline: Instant) -> Option<Vec<u32>> {
        self.ask(signatures, deadline).await
    }

    fn missing(&self, signatures: &[Signature]) -> Vec<Signature> {
        let known = self.known.lock();
        let is_fresh =
            |signature: &Signature| known.get(signature).is_some_and(|(_, at)| at.elapsed() < FRESH);
        signatures.iter().copied().filter(|signature| !is_fresh(signature)).collect()
    }

    /// Asks for these, and remembers the answer.
    async fn ask(&self, signatures: &[Signature], deadline: Instant) -> Option<Vec<u32>> {
        if self.quiet.lock().is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let active = self.links.active()?;
        let server = self.servers.get(active)?;
        let patience = deadline.saturating_duration_since(Instant::now());
        match server.counts(signatures, patience).await {
            Ok(counts) => {
                self.remember(signatures, &counts);
                Some(counts)
            }
            Err(e) => {
                let (url, seconds) = (server.url(), QUIET.as_secs());
                log::warn!("{url}: counts below {} are not known for {seconds} s: {e}", self.bound());
                *self.quiet.lock() = Some(Instant::now() + QUIET);
                if self.takes_turns {
                    self.links.set_active(Some((active + 1) % self.servers.len()));
                }
                None
            }
        }
    }

    fn remember(&self, signatures: &[Signature], counts: &[u32]) {
        let mut known = self.known.lock();
        if known.len() + signatures.len() > MOST {
            known.retain(|_, (_, at)| at.elapsed() < FRESH);
            if known.len() + signatures.len() > MOST {
                known.clear();
            }
        }
        let now = Instant::now();
        known.extend(signatures.iter().zip(counts).map(|(&signature, &count)| (signature, (count, now))));
    }
}

/// Of what the counts of these signatures are made up: what is held here, and, where others are asked, what they count, if they say so before
/// `deadline`.
///
/// # Errors
/// When the ledger is not available.
pub async fn shares(
    ledger: &Ledger,
    asks: Option<&Asks>,
    signatures: Vec<Signature>,
    deadline: Instant,
) -> Result<Vec<Shares>, LedgerError> {
    let mut all = ledger.shares(signatures.clone(), ledger::now()).await?;
    let asked = match asks {
        Some(asks) => asks.counts(&signatures, deadline).await,
        None => None,
    };
    for (shares, count) in all.iter_mut().zip(asked.into_iter().flatten()) {
        shares.asked = Some(count);
    }
    Ok(all)
}
