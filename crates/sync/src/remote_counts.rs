// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks the followed server for counts that a milter with a partial copy does not hold. No call waits longer than a bound, and a server
//! that did not answer gets no questions for a while.

use super::remote::Remote;
use super::state::Links;
use super::wire::MAX_ASKED;
use bulkmark_counts::Shares;
use bulkmark_ledger::{Ledger, LedgerError};
use bulkmark_types::Signature;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long an answer is used as the count. Server updates have about the same delay.
const FRESH: Duration = Duration::from_secs(1);

/// Maximum of cached answers, in less than four megabytes.
const MOST: usize = 1 << 16;

/// With less time than this, no question is sent: the answer would hardly arrive in time, and a missing one would prove nothing about the
/// server.
const TOO_LATE: Duration = Duration::from_millis(20);

/// How long a server gets no questions after it left this many in a row unanswered. One answer may be late, and one question too large,
/// while all others are answered.
const QUIET: Duration = Duration::from_secs(5);
const FAILURES: u32 = 3;

/// Counts that a server has and this machine does not hold.
pub struct RemoteCounts {
    servers: Vec<Arc<Remote>>,
    links: Arc<Links>,
    /// Whether no server is followed, so that the next one takes over from one that does not answer.
    takes_turns: bool,
    /// Bulk is held locally from this count on.
    bound: AtomicU32,
    known: Mutex<HashMap<Signature, (u32, Instant)>>,
    trouble: Mutex<Trouble>,
}

/// The failures of a server.
#[derive(Debug, Default)]
struct Trouble {
    /// Unanswered questions since the last answer.
    failures: u32,
    /// No questions are sent before this time.
    quiet: Option<Instant>,
}

impl Trouble {
    fn is_quiet(&self, now: Instant) -> bool {
        self.quiet.is_some_and(|until| now < until)
    }

    /// Counts an unanswered question. Returns true if no more questions are sent for a while.
    fn fails(&mut self, now: Instant) -> bool {
        self.failures += 1;
        let gives_up = self.failures >= FAILURES && !self.is_quiet(now);
        if gives_up {
            // From then on, one failure is enough, until there is an answer.
            (self.failures, self.quiet) = (FAILURES - 1, Some(now + QUIET));
        }
        gives_up
    }
}

impl RemoteCounts {
    /// Asks the followed one of `servers`, according to `links`. Bulk is held locally from `bound` on.
    #[must_use]
    pub fn new(servers: Vec<Arc<Remote>>, links: Arc<Links>, bound: u32) -> Self {
        let (known, trouble) = (Mutex::default(), Mutex::default());
        Self { servers, links, takes_turns: false, bound: bound.into(), known, trouble }
    }

    /// Asks the first of `servers`, and the next one when it does not answer. They are the aggregators of a fleet, whose counts come by its
    /// log; `links` are their connections. Without servers, no count is ever known.
    #[must_use]
    pub fn of_fleet(servers: Vec<Arc<Remote>>, links: Arc<Links>, bound: u32) -> Self {
        links.set_active((!servers.is_empty()).then_some(0));
        Self { takes_turns: true, ..Self::new(servers, links, bound) }
    }

    /// Returns the count from which bulk is held locally.
    #[must_use]
    pub fn bound(&self) -> u32 {
        self.bound.load(Ordering::Relaxed)
    }

    /// Sets the bound after the thresholds changed.
    pub fn set_bound(&self, bound: u32) {
        self.bound.store(bound, Ordering::Relaxed);
    }

    /// Returns the server's counts of these signatures. None if they are not known before `deadline`.
    pub async fn counts(&self, signatures: &[Signature], deadline: Instant) -> Option<Vec<u32>> {
        // Read first: other tasks' answers may push these out of the cache meanwhile.
        let mut found = self.remembered(signatures);
        let mut missing: Vec<_> =
            signatures.iter().copied().filter(|signature| !found.contains_key(signature)).collect();
        missing.sort_unstable();
        missing.dedup();
        for some in missing.chunks(MAX_ASKED) {
            found.extend(some.iter().copied().zip(self.ask(some, deadline).await?));
        }
        signatures.iter().map(|signature| found.get(signature).copied()).collect()
    }

    /// Returns the server's current counts of these signatures, 1,024 at most.
    pub async fn counts_now(&self, signatures: &[Signature], deadline: Instant) -> Option<Vec<u32>> {
        self.ask(signatures, deadline).await
    }

    /// Returns the counts that are cached and fresh.
    fn remembered(&self, signatures: &[Signature]) -> HashMap<Signature, u32> {
        let known = self.known.lock();
        let fresh = |signature: &Signature| {
            known.get(signature).filter(|(_, at)| at.elapsed() < FRESH).map(|&(count, _)| (*signature, count))
        };
        signatures.iter().filter_map(fresh).collect()
    }

    /// Asks for these signatures, and caches the answer.
    async fn ask(&self, signatures: &[Signature], deadline: Instant) -> Option<Vec<u32>> {
        if self.trouble.lock().is_quiet(Instant::now()) {
            return None;
        }
        let active = self.links.active()?;
        let server = self.servers.get(active)?;
        let patience = deadline.saturating_duration_since(Instant::now());
        if patience < TOO_LATE {
            return None;
        }
        match server.counts(signatures, patience).await {
            Ok(counts) => {
                self.remember(signatures, &counts);
                *self.trouble.lock() = Trouble::default();
                Some(counts)
            }
            Err(e) => {
                if !self.trouble.lock().fails(Instant::now()) {
                    log::debug!(
                        "{}: counts below {} are not known this time: {e}",
                        server.url(),
                        self.bound()
                    );
                    return None;
                }
                let (url, seconds) = (server.url(), QUIET.as_secs());
                log::warn!("{url}: counts below {} are not known for {seconds} s: {e}", self.bound());
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

/// Returns the parts that make up the counts of these signatures: those held locally and, with `asks`, those of the server if it answers
/// before `deadline`.
///
/// # Errors
/// When the ledger is not available.
pub async fn shares(
    ledger: &Ledger,
    asks: Option<&RemoteCounts>,
    signatures: Vec<Signature>,
    deadline: Instant,
) -> Result<Vec<Shares>, LedgerError> {
    let mut all = ledger.shares(signatures.clone(), bulkmark_ledger::now()).await?;
    let asked = match asks {
        Some(asks) => asks.counts(&signatures, deadline).await,
        None => None,
    };
    for (shares, count) in all.iter_mut().zip(asked.into_iter().flatten()) {
        shares.asked = Some(count);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Upstream;
    use std::net::TcpListener;

    /// A question without enough time left does not count as a failure of the server.
    #[tokio::test]
    async fn without_time_left_no_question_is_sent() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // It accepts connections and sends nothing.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let upstream =
            Upstream { url: url.clone(), token_file: None, ca_file: None, plain_http_anywhere: false };
        let links = Arc::new(Links::new(&[&url], false));
        let remote = Remote::new(&upstream, None, links.get(0).unwrap()).unwrap();
        let asks = RemoteCounts::of_fleet(vec![Arc::new(remote)], links, 10);
        let signature = "00000000000000000000000000000001".parse().unwrap();
        assert_eq!(asks.counts(&[signature], Instant::now() + TOO_LATE / 2).await, None);
        assert_eq!(asks.trouble.lock().failures, 0, "it was not asked");
        for _ in 1..FAILURES {
            assert_eq!(asks.counts(&[signature], Instant::now() + 3 * TOO_LATE).await, None);
            assert_eq!(asks.trouble.lock().quiet, None, "one late answer is no silence");
        }
        assert_eq!(asks.counts(&[signature], Instant::now() + 3 * TOO_LATE).await, None);
        assert!(asks.trouble.lock().is_quiet(Instant::now()));
    }

    /// A server that does not answer gets no questions for five seconds; after that, one more unanswered question is enough.
    #[test]
    fn a_server_that_does_not_answer_gets_no_questions_for_a_while() {
        let (mut trouble, begin) = (Trouble::default(), Instant::now());
        assert_eq!([(); 3].map(|()| trouble.fails(begin)), [false, false, true]);
        assert!(!trouble.fails(begin), "it was asked before");
        let at = |millis| begin + Duration::from_millis(millis);
        assert!(trouble.is_quiet(at(4999)) && !trouble.is_quiet(at(5000)));
        assert!(trouble.fails(at(5000)) && trouble.is_quiet(at(9999)) && !trouble.is_quiet(at(10_000)));
    }

    /// Answers that are cached when a question begins are used, even if others push them out of the cache.
    #[test]
    fn cached_answers_are_read_before_questions_are_sent() {
        let asks = RemoteCounts::of_fleet(Vec::new(), Arc::new(Links::new(&[], false)), 10);
        let of = |n: u64| format!("{n:032x}").parse::<Signature>().unwrap();
        asks.remember(&[of(0)], &[7]);
        let found = asks.remembered(&[of(0), of(1)]);
        let many: Vec<_> = (1..=MOST as u64).map(of).collect();
        asks.remember(&many, &vec![1; MOST]);
        assert!(asks.remembered(&[of(0)]).is_empty(), "there is no room for it");
        assert_eq!(found.get(&of(0)), Some(&7));
    }
}
