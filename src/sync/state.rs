// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of the connections to other servers, for people.

use crate::ledger::now;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One server that this machine talks to.
#[derive(Debug, Default)]
pub struct Link {
    url: String,
    received: AtomicU64,
    sent: AtomicU64,
    /// When something came from it last, in seconds since 1970; zero for never.
    heard: AtomicU64,
    /// Whether its clock and ours agreed when they were compared last.
    clocks_agree: Mutex<Option<bool>>,
    error: Mutex<Option<String>>,
}

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
    /// What was wrong last; none while it works.
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
        self.heard.store(now(), Ordering::Relaxed);
    }

    pub(super) fn set_clocks_agree(&self, agree: bool) {
        *self.clocks_agree.lock().unwrap_or_else(PoisonError::into_inner) = Some(agree);
    }

    /// Seconds since something came; since 1970 when nothing ever did.
    fn silence(&self) -> u64 {
        now().saturating_sub(self.heard.load(Ordering::Relaxed))
    }

    /// Says what is wrong, once for each thing, or that nothing is any more.
    pub(super) fn report(&self, problem: Option<String>) {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        match (&problem, &*error) {
            (Some(new), Some(old)) if new == old => (),
            (Some(new), _) => log::warn!("{}: {new}", self.url),
            (None, Some(_)) => log::info!("{}: it answers again", self.url),
            (None, None) => (),
        }
        *error = problem;
    }
}

/// All links of a daemon.
#[derive(Debug, Default)]
pub struct Links {
    links: Vec<Arc<Link>>,
    /// One more than the number of the one whose updates are followed; zero while none is.
    active: AtomicUsize,
    /// Whether all are followed, as a server does with its peers.
    all: bool,
    /// When the daemon began, in seconds since 1970.
    began: u64,
    /// Own reports that no server took.
    reports_dropped: AtomicU64,
}

impl Links {
    /// To these addresses, of which one is followed or `all`.
    #[must_use]
    pub fn new(urls: &[&str], all: bool) -> Self {
        let links = urls.iter().map(|url| Arc::new(Link::new(url))).collect();
        Self { links, active: AtomicUsize::new(0), all, began: now(), reports_dropped: AtomicU64::new(0) }
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
        let agree = |link: &Arc<Link>| *link.clocks_agree.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = self.links.iter().filter_map(agree).collect();
        !all.is_empty() && !all.contains(&true)
    }

    pub(super) fn dropped(&self, reports: u64) {
        self.reports_dropped.fetch_add(reports, Ordering::Relaxed);
    }

    /// Own reports that were dropped since the start, because no server took them.
    #[must_use]
    pub fn reports_dropped(&self) -> u64 {
        self.reports_dropped.load(Ordering::Relaxed)
    }

    /// Whether these are peers of a server; else they are upstream of a milter.
    #[must_use]
    pub fn are_peers(&self) -> bool {
        self.all
    }

    /// Seconds since any server said anything, or since the daemon began; none without links.
    #[must_use]
    pub fn staleness(&self) -> Option<u64> {
        let began = now().saturating_sub(self.began);
        self.links.iter().map(|link| link.silence().min(began)).min()
    }

    /// All of them, for people.
    #[must_use]
    pub fn status(&self) -> Vec<LinkStatus> {
        let status = |(i, link): (usize, &Arc<Link>)| LinkStatus {
            url: link.url.clone(),
            active: self.all || Some(i) == self.active(),
            behind: None,
            heard_seconds_ago: Some(link.silence()).filter(|_| link.heard.load(Ordering::Relaxed) > 0),
            bytes_in: link.received.load(Ordering::Relaxed),
            bytes_out: link.sent.load(Ordering::Relaxed),
            error: link.error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        self.links.iter().enumerate().map(status).collect()
    }
}
