// SPDX-License-Identifier: GPL-3.0-or-later
//! The page's values, in sections of JSON that change at different times: all of them once, or the changed ones as server-sent events.

use crate::activity::{Activity, HOURS, MINUTES};
use crate::control::{Daemon, DaemonStatus};
use crate::net::{Sender, own_name, streamed};
use arc_swap::ArcSwap;
use axum::body::Body;
use bulkmark_counts::{MailingSummary, OverviewFilter};
use bulkmark_ledger::now;
use bulkmark_policy::Verdict;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify};

/// Greatest age of data from the ledger and other servers: each query costs the ledger some milliseconds, and the other servers a request.
const STATUS_AGE: Duration = Duration::from_secs(5);

/// Pages that follow at a time: half of all connections, so that the other half remains for single requests.
const FOLLOWERS: usize = 32;

/// One part in so many of the ledger's time may be spent on user reports, for which it searches through all votes.
const SHARE: u32 = 100;

/// Only mailings reported within so many seconds are shown.
const REPORTED_WITHIN: u64 = 7 * 86_400;

/// Mailings in the JSON; the page shows the first of them, and all on request.
const TOP: usize = 50;

/// The time between two checks for changes.
const INTERVAL: Duration = Duration::from_secs(2);

/// The source of the page's values.
pub(super) struct Snapshots {
    pub(super) daemon: Arc<Daemon>,
    pub(super) threshold: Box<dyn Fn() -> u32 + Send + Sync>,
    pub(super) config: Arc<ArcSwap<Value>>,
    status: Mutex<Option<(Instant, Option<DaemonStatus>)>>,
    /// The user reports, and the time of the next query for them.
    user_reports: Mutex<Option<(Instant, Value)>>,
    /// The following pages, the oldest first.
    followers: parking_lot::Mutex<VecDeque<Arc<Notify>>>,
}

impl Snapshots {
    pub(super) fn new(
        daemon: Arc<Daemon>,
        threshold: Box<dyn Fn() -> u32 + Send + Sync>,
        config: Arc<ArcSwap<Value>>,
    ) -> Self {
        let followers = parking_lot::Mutex::default();
        Self {
            daemon,
            threshold,
            config,
            status: Mutex::new(None),
            user_reports: Mutex::new(None),
            followers,
        }
    }

    /// Adds a following page and returns a notice for it to end. Beyond the limit the oldest one ends: nobody who opens as many as possible can
    /// keep the page or metrics from others, and a browser comes back by itself.
    fn follow(&self) -> Arc<Notify> {
        let (end, mut followers) = (Arc::new(Notify::new()), self.followers.lock());
        followers.push_back(Arc::clone(&end));
        while followers.len() > FOLLOWERS {
            if let Some(oldest) = followers.pop_front() {
                oldest.notify_one();
            }
        }
        end
    }

    fn leave(&self, end: &Arc<Notify>) {
        self.followers.lock().retain(|other| !Arc::ptr_eq(other, end));
    }

    fn activity(&self) -> &Activity {
        &self.daemon.activity
    }

    /// Returns all sections by name. The present minute is apart from the minutes before, which change once a minute.
    pub(super) async fn sections(&self) -> [(&'static str, Value); 11] {
        let now = now();
        [
            ("overview", self.overview()),
            ("status", self.status().await),
            ("minutes", self.minutes(now)),
            ("minute", self.minute(now)),
            ("hours", self.hours(now)),
            ("hour", self.hour(now)),
            ("bulk", json!(self.activity().bulk(TOP, now))),
            ("recent", json!(self.activity().recent())),
            ("config", Value::clone(&self.config.load())),
            ("user-reports", self.user_reports(now).await),
            ("policies", json!(self.activity().policies.status())),
        ]
    }

    /// Returns the values that change with every message.
    fn overview(&self) -> Value {
        let activity = self.activity();
        let classes = activity.judging.cumulative();
        let judged = classes.last().map_or(0, |&(_, count)| count);
        json!({
            "role": self.daemon.name,
            "version": env!("CARGO_PKG_VERSION"),
            "available": self.daemon.ailment().is_none(),
            "host": self.host(),
            "recording": activity.is_recording(),
            "clients": activity.wanted.clients,
            "recipients": activity.wanted.recipients,
            "started": now().saturating_sub(self.daemon.uptime()),
            "connections": activity.connections.open(),
            "judged": judged,
            "judging-seconds": activity.judging.seconds(),
            "reloads-failed": activity.reloads(false),
            "log-lines-dropped": activity.log_lines_dropped(),
            "reports-dropped": self.daemon.links.reports_dropped(),
            "pause": self.daemon.in_force().pause,
        })
    }

    /// Returns the name of this machine from the configuration, or else from the system.
    fn host(&self) -> String {
        let config = self.config.load();
        own_name(config["hostname"].as_str().unwrap_or_default())
    }

    /// Returns the data of `bulkmark status`, and of the disk; null while the ledger is not available.
    async fn status(&self) -> Value {
        let mut known = self.status.lock().await;
        if known.as_ref().is_none_or(|(at, _)| at.elapsed() >= STATUS_AGE) {
            let status = self.daemon.status(Some((self.threshold)())).await.ok();
            *known = Some((Instant::now(), status));
        }
        let status = known.as_ref().and_then(|(_, status)| status.as_ref());
        json!({ "threshold": (self.threshold)(), "disk": self.daemon.disk(), "daemon": status })
    }

    /// Returns the reports of users and traps here without their reporters, the most recently reported mailing first. Null while the ledger is
    /// not available.
    async fn user_reports(&self, now: u64) -> Value {
        let ledger = &self.daemon.ledger;
        if self.daemon.is_server() || !ledger.has_user_reports() {
            return json!([]);
        }
        let mut known = self.user_reports.lock().await;
        if let Some((_, value)) = known.as_ref().filter(|(until, _)| Instant::now() < *until) {
            return value.clone();
        }
        let began = Instant::now();
        let asked = OverviewFilter { since: now.saturating_sub(REPORTED_WITHIN), reporter: None, now };
        let mailings = ledger.overview(asked).await.map(|overview| overview.mailings).unwrap_or_default();
        let shown: Vec<&MailingSummary> = mailings.iter().rev().take(TOP).collect();
        let value = json!(shown);
        *known = Some((began + STATUS_AGE.max(began.elapsed() * SHARE), value.clone()));
        value
    }

    /// The counts of the day before the present minute.
    fn minutes(&self, now: u64) -> Value {
        let series = self.kinds().into_iter().enumerate().map(|(i, name)| {
            let mut counts = self.last(i, MINUTES, now);
            counts.pop();
            json!({ "name": name, "counts": counts })
        });
        json!({ "end": now / 60 * 60, "series": series.collect::<Value>() })
    }

    /// The counts of the present minute, kinds in the same order.
    fn minute(&self, now: u64) -> Value {
        let counts: Value = (0..self.kinds().len()).map(|i| self.last(i, 1, now)[0]).collect();
        json!({ "at": now / 60 * 60, "counts": counts })
    }

    /// The counts of the month before the present hour.
    fn hours(&self, now: u64) -> Value {
        let series = self.kinds().into_iter().enumerate().map(|(i, name)| {
            let mut counts = self.activity().hours.last(i, HOURS, now);
            counts.pop();
            json!({ "name": name, "counts": counts })
        });
        json!({ "end": now / 3600 * 3600, "series": series.collect::<Value>() })
    }

    /// The counts of the present hour, kinds in the same order.
    fn hour(&self, now: u64) -> Value {
        let counts: Value =
            (0..self.kinds().len()).map(|i| self.activity().hours.last(i, 1, now)[0]).collect();
        json!({ "at": now / 3600 * 3600, "counts": counts })
    }

    fn last(&self, kind: usize, most: usize, now: u64) -> Vec<u64> {
        self.activity().minutes.last(kind, most, now)
    }

    /// Returns the names of the kinds counted by minutes: verdicts of a milter, signatures of a server.
    fn kinds(&self) -> Vec<String> {
        if self.daemon.is_server() {
            vec!["signatures".to_owned()]
        } else {
            Verdict::ALL.map(|verdict| verdict.to_string()).to_vec()
        }
    }
}

/// Sends all sections, and then the changed ones, until nobody reads.
pub(super) fn events(snapshots: Arc<Snapshots>) -> Body {
    let (sink, body) = streamed(Vec::new());
    let end = snapshots.follow();
    tokio::spawn(async move {
        tokio::select! {
            () = send(&snapshots, &sink) => (),
            () = end.notified() => (),
        }
        snapshots.leave(&end);
    });
    body
}

async fn send(snapshots: &Snapshots, sink: &Sender) {
    let mut sent: HashMap<&str, Value> = HashMap::new();
    let mut tick = tokio::time::interval(INTERVAL);
    loop {
        tick.tick().await;
        // If nothing changed, a comment shows whether anybody still reads.
        let mut text = String::from(":\n\n");
        for (name, value) in snapshots.sections().await {
            if sent.get(name) != Some(&value) {
                // JSON has no line breaks, so one line holds all of it.
                text += &format!("event: {name}\ndata: {value}\n\n");
                sent.insert(name, value);
            }
        }
        if sink.send(text.as_bytes()).await.is_err() {
            return;
        }
    }
}
