// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of the connections to other servers, for people.

use super::clock;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::{Notify, RwLock};

/// What a server is needed for. Each can fail while the other goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Its updates and snapshots.
    Updates,
    /// Reports to it.
    Reports,
    /// That its clock goes as ours does, where that is no condition of the others.
    Clock,
}

/// One server that this machine talks to.
#[derive(Debug, Default)]
pub struct Link {
    url: String,
    received: AtomicU64,
    sent: AtomicU64,
    /// When something came from it last, by a clock that nobody sets.
    heard: Mutex<Option<Instant>>,
    /// When an update of it was applied last, or it was seen to know nothing that is not known here.
    fresh: Mutex<Option<Instant>>,
    /// Whether its clock and ours agreed when they were compared last.
    clocks_agree: Mutex<Option<bool>>,
    /// Told when they agree that did not, or the other way round.
    clocks_compared: Arc<Notify>,
    /// What is wrong with each flow, as long as it is.
    problems: Mutex<[Option<Problem>; 3]>,
}

/// What is wrong with a flow.
#[derive(Debug)]
struct Problem {
    what: String,
    /// What the log has of it: reasons that take turns, such as a timeout and a refused connection, are logged once each.
    logged: Vec<String>,
}

/// Reasons of one failure that the log has.
const MOST_REASONS: usize = 4;

/// A link at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinkStatus {
    /// The address.
    pub url: String,
    /// Whether it is the one whose updates are followed.
    pub active: bool,
    /// Updates that it knows and we do not; none when it does not answer.
    pub behind: Option<u64>,
    /// Seconds since something came from it.
    pub heard_seconds_ago: Option<u64>,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Bytes of reports that went.
    pub bytes_out: u64,
    /// What is wrong; none while it works.
    pub error: Option<String>,
}

impl Link {
    /// To this address.
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

    pub(super) fn heard(&self) {
        *self.heard.lock() = Some(Instant::now());
    }

    pub(super) fn is_fresh(&self) {
        *self.fresh.lock() = Some(Instant::now());
    }

    pub(super) fn set_clocks_agree(&self, agree: bool) {
        let before = self.clocks_agree.lock().replace(agree);
        if before != Some(agree) {
            self.clocks_compared.notify_one();
        }
    }

    /// It told its time, in seconds since 1970.
    pub(super) fn has_clock(&self, time: u64) {
        let compared = clock::check_log(time);
        self.set_clocks_agree(compared.is_ok());
        match compared {
            Ok(()) => self.works(Flow::Clock),
            Err(what) => self.fails(Flow::Clock, what),
        }
    }

    /// Whether a fleet's log tells another time, and by how much; none before it told any.
    #[must_use]
    pub fn clock(&self) -> Option<Result<(), String>> {
        let agree = (*self.clocks_agree.lock())?;
        let what = || self.problems.lock()[Flow::Clock as usize].as_ref().map(|problem| problem.what.clone());
        Some(if agree { Ok(()) } else { Err(what().unwrap_or_default()) })
    }

    /// Seconds since something came; none when nothing ever did.
    fn silence(&self) -> Option<u64> {
        self.heard.lock().map(|heard| heard.elapsed().as_secs())
    }

    /// Says what is wrong with a flow, once for each thing.
    pub(super) fn fails(&self, flow: Flow, problem: String) {
        let mut problems = self.problems.lock();
        let is_told =
            problems.iter().flatten().any(|known| known.what == problem || known.logged.contains(&problem));
        let mut logged = problems[flow as usize].take().map(|problem| problem.logged).unwrap_or_default();
        if !is_told && logged.len() < MOST_REASONS {
            log::warn!("{}: {problem}", self.url);
            logged.push(problem.clone());
        }
        problems[flow as usize] = Some(Problem { what: problem, logged });
    }

    /// Says that nothing is wrong with a flow any more. A problem that another flow has, and that has only this flow's line in the log, is
    /// over with it; else the log would not have it when it comes again.
    pub(super) fn works(&self, flow: Flow) {
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

    /// Whether something is wrong with a flow, as far as it was tried.
    pub(super) fn is_failing(&self, flow: Flow) -> bool {
        self.problems.lock()[flow as usize].is_some()
    }
}

/// All links of a daemon.
#[derive(Debug)]
pub struct Links {
    links: Vec<Arc<Link>>,
    /// One more than the number of the one whose updates are followed; zero while none is.
    active: AtomicUsize,
    /// Whether all are followed, as a server does with its peers.
    all: bool,
    /// When the daemon began.
    began: Instant,
    /// Told when a clock is found to be another than before.
    clocks_compared: Arc<Notify>,
    /// Own reports that no server took.
    reports_dropped: AtomicU64,
    /// Read while the answer to a report is on its way, written while counts are taken over. A server's update that includes a report may
    /// be here before its answer; applied first, it would count the report twice until that came.
    answers: RwLock<()>,
}

impl Links {
    /// To these addresses, of which one is followed or `all`.
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

    /// The link with this number.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Arc<Link>> {
        self.links.get(i).cloned()
    }

    pub(super) fn set_active(&self, i: Option<usize>) {
        self.active.store(i.map_or(0, |i| i + 1), Ordering::Relaxed);
    }

    /// The number of the one whose updates are followed.
    pub(super) fn active(&self) -> Option<usize> {
        self.active.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether a server has another clock than ours, and none has the same: then ours may be wrong.
    pub(super) fn clock_is_doubtful(&self) -> bool {
        let agree = |link: &Arc<Link>| *link.clocks_agree.lock();
        let all: Vec<_> = self.links.iter().filter_map(agree).collect();
        !all.is_empty() && !all.contains(&true)
    }

    /// Is done when a server's clock agrees with ours that did not before, or the other way round.
    pub(super) async fn clocks_compared(&self) {
        self.clocks_compared.notified().await;
    }

    /// What [`push`](super::push) holds while it waits for an answer, and whoever takes counts over awaits.
    pub(super) const fn answers(&self) -> &RwLock<()> {
        &self.answers
    }

    pub(super) fn dropped(&self, reports: u64) {
        self.reports_dropped.fetch_add(reports, Ordering::Relaxed);
    }

    /// Own reports that were dropped since the start, because no server took them.
    #[must_use]
    pub fn reports_dropped(&self) -> u64 {
        self.reports_dropped.load(Ordering::Relaxed)
    }

    /// Whether nobody is followed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Seconds since the counts here were as a server has them, or came nearer by an update, or since the daemon began; none
    /// without links. That a server is alive says nothing of its counts.
    #[must_use]
    pub fn staleness(&self) -> Option<u64> {
        let began = self.began.elapsed().as_secs();
        let age = |link: &Arc<Link>| link.fresh.lock().map_or(began, |fresh| fresh.elapsed().as_secs());
        self.links.iter().map(age).min()
    }

    /// All of them, for people.
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

    /// A server that is down for days has a line for each of a few reasons, however they take turns; when it fails again later, it has one again.
    #[test]
    fn a_dead_server_is_logged_once_for_each_reason() {
        let link = Link::new("https://counts.example.org:8721");
        let logged =
            || link.problems.lock()[Flow::Updates as usize].as_ref().map(|problem| problem.logged.len());
        for n in 0..100 {
            link.fails(Flow::Updates, ["refused", "timeout"][n % 2].to_owned());
        }
        assert_eq!(logged(), Some(2));
        (0..100).for_each(|n| link.fails(Flow::Updates, n.to_string()));
        assert_eq!(logged(), Some(MOST_REASONS));
        // Another flow that fails by the same has no line of its own.
        link.fails(Flow::Reports, "timeout".to_owned());
        assert_eq!(
            link.problems.lock()[Flow::Reports as usize].as_ref().map(|problem| problem.logged.len()),
            Some(0)
        );
        // It is over with the flow that has the line, and told again when it comes again.
        link.works(Flow::Updates);
        assert!(!link.is_failing(Flow::Reports));
        link.fails(Flow::Updates, "timeout".to_owned());
        assert_eq!(logged(), Some(1));
    }
}
