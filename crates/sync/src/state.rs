// SPDX-License-Identifier: GPL-3.0-or-later
//! The state of the connections to other servers, for people.

use super::clock;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::{Notify, RwLock};

/// The purposes of a connection. Each can fail while the others work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Its updates and snapshots.
    Updates,
    /// Reports to the server.
    Reports,
    /// The comparison of clocks, if the other flows do not depend on it.
    Clock,
}

/// The connection to one server.
#[derive(Debug, Default)]
pub struct Link {
    url: String,
    received: AtomicU64,
    sent: AtomicU64,
    /// When something was received last, by a monotonic clock.
    last_received: Mutex<Option<Instant>>,
    /// When an update of it was applied last, or it confirmed that there is none.
    fresh: Mutex<Option<Instant>>,
    /// Whether the clocks agreed when they were compared last.
    clocks_agree: Mutex<Option<bool>>,
    /// Notified when the result of the comparison changes.
    clocks_compared: Arc<Notify>,
    /// The problem of each flow, as long as it lasts.
    problems: Mutex<[Option<Problem>; 3]>,
}

/// The problem of a flow.
#[derive(Debug)]
struct Problem {
    what: String,
    /// The reasons that were logged. Alternating ones, such as a timeout and a refused connection, are logged once each.
    logged: Vec<String>,
}

/// Maximum of logged reasons for one failure.
const MOST_REASONS: usize = 4;

/// The status of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinkStatus {
    /// The address.
    pub url: String,
    /// Whether its updates are followed.
    pub active: bool,
    /// The number of its updates that are missing here; none if it does not answer.
    pub behind: Option<u64>,
    /// Seconds since something came from it.
    pub heard_seconds_ago: Option<u64>,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes of reports sent.
    pub bytes_out: u64,
    /// The problem; none while the link works.
    pub error: Option<String>,
}

impl Link {
    /// Creates the link to this address.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), ..Self::default() }
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn touch(&self) {
        *self.last_received.lock() = Some(Instant::now());
    }

    pub(super) fn set_fresh(&self) {
        *self.fresh.lock() = Some(Instant::now());
    }

    pub(super) fn set_clocks_agree(&self, agree: bool) {
        let before = self.clocks_agree.lock().replace(agree);
        if before != Some(agree) {
            self.clocks_compared.notify_one();
        }
    }

    /// Compares the log's time, in seconds since 1970, with the local clock.
    pub(super) fn compare_clock(&self, time: u64) {
        let compared = clock::check_log(time);
        self.set_clocks_agree(compared.is_ok());
        match compared {
            Ok(()) => self.set_working(Flow::Clock),
            Err(what) => self.set_failing(Flow::Clock, what),
        }
    }

    /// Returns the difference to the clock of a fleet's log, if there is one; none before the first comparison.
    #[must_use]
    pub fn clock(&self) -> Option<Result<(), String>> {
        let agree = (*self.clocks_agree.lock())?;
        let what = || self.problems.lock()[Flow::Clock as usize].as_ref().map(|problem| problem.what.clone());
        Some(if agree { Ok(()) } else { Err(what().unwrap_or_default()) })
    }

    /// Returns the seconds since something was received; none before that.
    fn silence(&self) -> Option<u64> {
        self.last_received.lock().map(|at| at.elapsed().as_secs())
    }

    /// Records the problem of a flow, and logs each reason once.
    pub(super) fn set_failing(&self, flow: Flow, problem: String) {
        let mut problems = self.problems.lock();
        let is_logged =
            problems.iter().flatten().any(|known| known.what == problem || known.logged.contains(&problem));
        let mut logged = problems[flow as usize].take().map(|problem| problem.logged).unwrap_or_default();
        if !is_logged && logged.len() < MOST_REASONS {
            log::warn!("{}: {problem}", self.url);
            logged.push(problem.clone());
        }
        problems[flow as usize] = Some(Problem { what: problem, logged });
    }

    /// Records and logs that a flow works again. This also ends a problem of another flow that was logged under this flow only; otherwise
    /// it would not be logged when it returns.
    pub(super) fn set_working(&self, flow: Flow) {
        let mut problems = self.problems.lock();
        if let Some(ended) = problems[flow as usize].take() {
            for other in problems.iter_mut() {
                other.take_if(|problem| problem.logged.is_empty() && ended.logged.contains(&problem.what));
            }
            let what = match flow {
                Flow::Updates => "it answers again",
                Flow::Reports => "it takes reports again",
                Flow::Clock => "its clock and this machine's agree again",
            };
            log::info!("{}: {what}", self.url);
        }
    }

    /// Whether a flow had a problem at the last attempt.
    pub(super) fn is_failing(&self, flow: Flow) -> bool {
        self.problems.lock()[flow as usize].is_some()
    }
}

/// All links of a daemon.
#[derive(Debug)]
pub struct Links {
    links: Vec<Arc<Link>>,
    /// One more than the number of the followed link; zero while none is followed.
    active: AtomicUsize,
    /// Whether all are followed, as peers of a server are.
    all: bool,
    /// The start of the daemon.
    began: Instant,
    /// Notified when the result of a comparison of clocks changes.
    clocks_compared: Arc<Notify>,
    /// Own reports that were dropped because no server took them.
    reports_dropped: AtomicU64,
    /// Locked for reading while a report waits for its answer, and for writing while counts are taken over. A server's update that includes
    /// a report can arrive before its answer; applied first, it would count the report twice until then.
    answers: RwLock<()>,
}

impl Links {
    /// Creates links to these addresses, of which one is followed or `all`.
    #[must_use]
    pub fn new(urls: &[&str], all: bool) -> Self {
        let clocks_compared = Arc::new(Notify::new());
        let link =
            |url: &&str| Arc::new(Link { clocks_compared: Arc::clone(&clocks_compared), ..Link::new(url) });
        Self {
            links: urls.iter().map(link).collect(),
            active: AtomicUsize::new(0),
            all,
            began: Instant::now(),
            clocks_compared,
            reports_dropped: AtomicU64::new(0),
            answers: RwLock::default(),
        }
    }

    /// Returns the link with this number.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Arc<Link>> {
        self.links.get(i).cloned()
    }

    pub(super) fn set_active(&self, i: Option<usize>) {
        self.active.store(i.map_or(0, |i| i + 1), Ordering::Relaxed);
    }

    /// Returns the number of the followed link.
    #[must_use]
    pub fn active(&self) -> Option<usize> {
        self.active.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether some server's clock differs and none agrees: then the local one may be wrong.
    pub(super) fn clock_is_doubtful(&self) -> bool {
        let agree = |link: &Arc<Link>| *link.clocks_agree.lock();
        let all: Vec<_> = self.links.iter().filter_map(agree).collect();
        !all.is_empty() && !all.contains(&true)
    }

    /// Waits until the result of a comparison of clocks changes.
    pub(super) async fn clocks_compared(&self) {
        self.clocks_compared.notified().await;
    }

    /// The lock that [`push`](super::push) holds while it waits for an answer, and that tasks await before they take counts over.
    pub(super) const fn answers(&self) -> &RwLock<()> {
        &self.answers
    }

    pub(super) fn dropped(&self, reports: u64) {
        self.reports_dropped.fetch_add(reports, Ordering::Relaxed);
    }

    /// Returns the number of own reports dropped since the start because no server took them.
    #[must_use]
    pub fn reports_dropped(&self) -> u64 {
        self.reports_dropped.load(Ordering::Relaxed)
    }

    /// Whether there are no links.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the seconds since an update was applied, a server confirmed that there is none, or the daemon started; none without links. A
    /// server that is only alive does not count.
    #[must_use]
    pub fn staleness(&self) -> Option<u64> {
        let began = self.began.elapsed().as_secs();
        let age = |link: &Arc<Link>| link.fresh.lock().map_or(began, |fresh| fresh.elapsed().as_secs());
        self.links.iter().map(age).min()
    }

    /// Returns the status of all links, for people.
    #[must_use]
    pub fn status(&self) -> Vec<LinkStatus> {
        let status = |(i, link): (usize, &Arc<Link>)| LinkStatus {
            url: link.url.clone(),
            active: self.all || Some(i) == self.active(),
            behind: None,
            heard_seconds_ago: link.silence(),
            bytes_in: link.received.load(Ordering::Relaxed),
            bytes_out: link.sent.load(Ordering::Relaxed),
            error: link.problems.lock().iter().flatten().next().map(|problem| problem.what.clone()),
        };
        self.links.iter().enumerate().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that is down for days has one log line for each of a few reasons, even if they alternate; when it fails again later, the
    /// reasons are logged again.
    #[test]
    fn a_dead_server_is_logged_once_for_each_reason() {
        let link = Link::new("https://counts.example.org:8721");
        let logged =
            || link.problems.lock()[Flow::Updates as usize].as_ref().map(|problem| problem.logged.len());
        for n in 0..100 {
            link.set_failing(Flow::Updates, ["refused", "timeout"][n % 2].to_owned());
        }
        assert_eq!(logged(), Some(2));
        (0..100).for_each(|n| link.set_failing(Flow::Updates, n.to_string()));
        assert_eq!(logged(), Some(MOST_REASONS));
        // Another flow that fails for the same reason has no log line.
        link.set_failing(Flow::Reports, "timeout".to_owned());
        assert_eq!(
            link.problems.lock()[Flow::Reports as usize].as_ref().map(|problem| problem.logged.len()),
            Some(0)
        );
        // Its problem ends with the flow that was logged, and is logged when it returns.
        link.set_working(Flow::Updates);
        assert!(!link.is_failing(Flow::Reports));
        link.set_failing(Flow::Updates, "timeout".to_owned());
        assert_eq!(logged(), Some(1));
    }
}
