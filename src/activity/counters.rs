// SPDX-License-Identifier: GPL-3.0-or-later
//! The counters of a daemon.

use super::connections::Connections;
use super::histogram::Histogram;
use super::interfaces::Interfaces;
use super::load::Load;
use super::mailings::{Mailing, Seen, StoredMailing, Table};
use super::policies::Policies;
use super::recent::{Recent, Record, Ring};
use super::relays::{LikelyRelay, Relays};
use super::spans::{HOURS, MINUTES, Spans};
use super::tasks::Tasks;
use super::traps::{TrapStatus, WantedByTrap};
use super::user_reports::UserReports;
use super::webhook::Webhook;
use bulkmark_policy::{AccountStatus, Accounts, Action, Held, Limits, Sent, Standing, TrapResult, Verdict};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Kinds that are counted by time.
const KINDS: usize = Verdict::ALL.len();

/// The number of messages with one verdict, action and reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageCount {
    /// The verdict.
    pub verdict: Verdict,
    /// The action.
    pub action: Action,
    /// See [`Judged::reason`].
    pub reason: &'static str,
    /// Their number.
    pub count: u64,
}

/// The result of judging a message.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The action taken.
    pub action: Action,
    /// Why it was not judged; for bulk, the kind of count that reached its threshold; empty if it is clean.
    pub reason: &'static str,
    /// The reason why bulk or spam was only marked although no white list has it, if so.
    pub held: Option<Held>,
    /// The action that was only rehearsed, if so.
    pub would: Option<Action>,
    /// Signatures that were reported for it.
    pub signatures: usize,
    /// The time from its end to the verdict.
    pub time: Duration,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// All counters of a daemon.
#[derive(Debug)]
pub struct Activity {
    /// Connections of the MTA to a milter, of clients to a server.
    pub connections: Arc<Connections>,
    /// Requests at a milter's other interfaces.
    pub interfaces: Interfaces,
    /// The load of a server by streams.
    pub load: Arc<Load>,
    /// The permanent tasks of the daemon, and how often each was restarted.
    pub tasks: Arc<Tasks>,
    /// The durations of verdicts.
    pub judging: Histogram,
    /// Messages by verdict, action and reason.
    messages: Mutex<BTreeMap<(usize, usize, &'static str), u64>>,
    signatures: AtomicU64,
    held: AtomicU64,
    /// Messages by rehearsed action.
    rehearsed: [AtomicU64; Action::ALL.len()],
    spared: AtomicU64,
    allowed: AtomicU64,
    canaries: AtomicU64,
    /// Expiry of the server's certificate in seconds since 1970; 0 if there is none.
    certificate_expiry: AtomicU64,
    /// Failed reloads, and successful ones.
    reloads: [AtomicU64; 2],
    reload_failed: AtomicBool,
    /// Time of the last successful reload, in seconds since 1970; 0 if there was none.
    reloaded_at: AtomicU64,
    log_lines_dropped: fn() -> u64,
    /// Messages of the last day by verdict; on a server the first kind has reported signatures.
    pub minutes: Spans<KINDS>,
    /// The same for the last month.
    pub hours: Spans<KINDS>,
    /// Outbound mail by account.
    accounts: Mutex<Accounts>,
    alerts: AtomicU64,
    traps: Mutex<TrapStatus>,
    relays: Mutex<Relays>,
    /// Results of user reports.
    pub user_reports: UserReports,
    /// Results of messages by policy.
    pub policies: Policies,
    /// Posts to the webhook.
    pub webhook: Webhook,
    /// Which data of messages are kept beside counts.
    pub wanted: Record,
    recent: Ring,
    bulk: Table,
}

impl Activity {
    /// Creates the counters of a new daemon. The logger counts dropped lines itself.
    #[must_use]
    pub fn new(log_lines_dropped: fn() -> u64, record: Record) -> Arc<Self> {
        Arc::new(Self {
            connections: Arc::default(),
            interfaces: Interfaces::default(),
            load: Arc::default(),
            tasks: Arc::default(),
            judging: Histogram::default(),
            messages: Mutex::default(),
            signatures: AtomicU64::new(0),
            held: AtomicU64::new(0),
            rehearsed: Default::default(),
            spared: AtomicU64::new(0),
            allowed: AtomicU64::new(0),
            canaries: AtomicU64::new(0),
            certificate_expiry: AtomicU64::new(0),
            reloads: Default::default(),
            reload_failed: AtomicBool::new(false),
            reloaded_at: AtomicU64::new(0),
            log_lines_dropped,
            minutes: Spans::new(60, MINUTES),
            hours: Spans::new(3600, HOURS),
            accounts: Mutex::default(),
            alerts: AtomicU64::new(0),
            traps: Mutex::default(),
            relays: Mutex::default(),
            user_reports: UserReports::default(),
            policies: Policies::default(),
            webhook: Webhook::default(),
            wanted: record,
            recent: Ring::default(),
            bulk: Table::new(record),
        })
    }

    /// Whether data of messages are kept beside counts.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.wanted.verdicts
    }

    /// Whether subjects may be kept.
    #[must_use]
    pub fn keeps_subjects(&self) -> bool {
        self.wanted.subjects
    }

    /// Keeps the data that the page shows of a message, if they are wanted. Returns the name of its mailing.
    pub fn record(&self, recent: Recent, bulk: Option<&Seen<'_>>) -> Option<String> {
        if !self.is_recording() {
            return None;
        }
        let mailing = bulk.map(|seen| self.bulk.add(seen, &recent));
        self.recent.push(Recent { mailing: mailing.clone(), ..recent });
        mailing
    }

    /// Returns the last verdicts, the latest first.
    #[must_use]
    pub fn recent(&self) -> Vec<Recent> {
        self.recent.list()
    }

    /// Returns the `most` present bulk mailings with the highest counts.
    #[must_use]
    pub fn bulk(&self, most: usize, now: u64) -> Vec<Mailing> {
        self.bulk.top(most, now)
    }

    /// Returns the present bulk mailings in the form stored over a restart.
    #[must_use]
    pub fn stored_mailings(&self, now: u64) -> Vec<StoredMailing> {
        self.bulk.stored(now)
    }

    /// Restores the bulk mailings from before a restart, if the page shows any.
    pub fn restore_mailings(&self, stored: Vec<StoredMailing>) {
        if self.is_recording() {
            self.bulk.restore(stored);
        }
    }

    /// Counts signatures that a client reported to a server.
    pub fn reported(&self, signatures: u64, now: u64) {
        self.minutes.add(0, signatures, now);
        self.hours.add(0, signatures, now);
    }

    /// Adds outbound mail of an account; returns its standing. `now` is in seconds since 1970.
    pub fn account_sent(&self, name: &str, sent: Sent, limits: Limits, now: u64) -> Standing {
        let standing = self.accounts.lock().sent(name, sent, limits, now);
        self.alerts.fetch_add(u64::from(standing.must_notify), Ordering::Relaxed);
        standing
    }

    /// Returns the number of accounts that sent outbound mail lately, and of those over their limit.
    #[must_use]
    pub fn accounts(&self, now: u64) -> (usize, usize) {
        self.accounts.lock().numbers(now)
    }

    /// Returns `most` accounts that sent bulk lately, those over their limit first.
    #[must_use]
    pub fn busiest_accounts(&self, most: usize, now: u64) -> Vec<AccountStatus> {
        self.accounts.lock().list(most, now)
    }

    /// Returns how often an account was reported to be over its limit.
    #[must_use]
    pub fn account_alerts(&self) -> u64 {
        self.alerts.load(Ordering::Relaxed)
    }

    /// Restores the accounts' mail from before a restart.
    pub fn restore_accounts(&self, accounts: Accounts) {
        *self.accounts.lock() = accounts;
    }

    /// Passes the accounts to `act`, which may store them.
    pub fn with_accounts<T>(&self, act: impl FnOnce(&Accounts) -> T) -> T {
        act(&self.accounts.lock())
    }

    /// Counts a judged message of this client, with a sender of this domain.
    pub fn came_from(&self, client: IpAddr, domain: &str) {
        self.relays.lock().came(client, domain);
    }

    /// Returns clients that may be your own mail servers in front of this one.
    #[must_use]
    pub fn likely_relays(&self) -> Vec<LikelyRelay> {
        self.relays.lock().likely()
    }

    /// Counts the result of a message to a trap.
    pub fn trap_sprung(&self, result: TrapResult) {
        self.traps.lock().sprung(result);
    }

    /// Counts a message to this trap that an entry of a white list wants, at a time in seconds since 1970.
    pub fn trap_wanted(&self, trap: &str, entry: String, now: u64) {
        self.traps.lock().wanted(trap, entry, now);
    }

    /// Returns the results of messages to traps.
    #[must_use]
    pub fn traps(&self) -> TrapStatus {
        self.traps.lock().clone()
    }

    /// Returns the number of messages to traps by result.
    #[must_use]
    pub fn trap_messages(&self) -> Vec<(&'static str, u64)> {
        let messages = self.traps.lock().messages.clone();
        let count = |result: TrapResult| messages.get(result.as_str()).copied().unwrap_or_default();
        TrapResult::ALL.iter().map(|&result| (result.as_str(), count(result))).collect()
    }

    /// Restores the traps that got whitelisted mail before a restart.
    pub fn restore_traps(&self, wanted: BTreeMap<String, WantedByTrap>) {
        self.traps.lock().restore(wanted);
    }

    /// Counts a judged message.
    pub fn judged(&self, message: &Judged) {
        let key = (message.verdict as usize, message.action as usize, message.reason);
        *self.messages.lock().entry(key).or_default() += 1;
        self.signatures.fetch_add(message.signatures as u64, Ordering::Relaxed);
        match message.held {
            Some(Held::Sources | Held::Messages) => self.held.fetch_add(1, Ordering::Relaxed),
            Some(Held::Correspondent) => self.spared.fetch_add(1, Ordering::Relaxed),
            Some(Held::Allowed) => self.allowed.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        if let Some(would) = message.would {
            self.rehearsed[would as usize].fetch_add(1, Ordering::Relaxed);
        }
        self.judging.add(message.time);
        self.minutes.add(message.verdict as usize, 1, message.now);
        self.hours.add(message.verdict as usize, 1, message.now);
    }

    /// Counts a message that the policy of this name decided.
    pub fn decided_by(&self, policy: &str, message: &Judged) {
        self.policies.add(policy, message.verdict, message.action, message.would);
    }

    /// Announces that messages of this verdict may come for this reason, so that metrics have it before the first.
    pub fn expect(&self, verdict: Verdict, reason: &'static str) {
        self.messages.lock().entry((verdict as usize, Action::Mark as usize, reason)).or_default();
    }

    /// Counts a canary, which is not counted as mail.
    pub fn canary(&self) {
        self.canaries.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of canaries.
    #[must_use]
    pub fn canaries(&self) -> u64 {
        self.canaries.load(Ordering::Relaxed)
    }

    /// Sets the expiry of the certificate in force, in seconds since 1970.
    pub fn certificate_expires(&self, at: Option<u64>) {
        self.certificate_expiry.store(at.unwrap_or_default(), Ordering::Relaxed);
    }

    /// Returns the expiry of the certificate in force, if there is one.
    #[must_use]
    pub fn certificate_expiry(&self) -> Option<u64> {
        Some(self.certificate_expiry.load(Ordering::Relaxed)).filter(|&at| at > 0)
    }

    /// Counts a reload.
    pub fn reloaded(&self, well: bool, now: u64) {
        self.reloads[usize::from(well)].fetch_add(1, Ordering::Relaxed);
        self.reload_failed.store(!well, Ordering::Relaxed);
        if well {
            self.reloaded_at.store(now, Ordering::Relaxed);
        }
    }

    /// Whether the last reload, if there was one, succeeded.
    #[must_use]
    pub fn is_reloaded(&self) -> bool {
        !self.reload_failed.load(Ordering::Relaxed)
    }

    /// Returns the time of the last successful reload, in seconds since 1970; none if there was none since the start.
    #[must_use]
    pub fn reloaded_at(&self) -> Option<u64> {
        Some(self.reloaded_at.load(Ordering::Relaxed)).filter(|&at| at > 0)
    }

    /// Returns messages by verdict, action and reason, including those that are only expected.
    #[must_use]
    pub fn messages(&self) -> Vec<MessageCount> {
        let messages = self.messages.lock();
        let counts = messages.iter().map(|(&(verdict, action, reason), &count)| MessageCount {
            verdict: Verdict::ALL[verdict],
            action: Action::ALL[action],
            reason,
            count,
        });
        counts.collect()
    }

    /// Returns the number of signatures that messages reported.
    #[must_use]
    pub fn signatures(&self) -> u64 {
        self.signatures.load(Ordering::Relaxed)
    }

    /// Returns the amount of bulk that was only marked because its count comes from too few networks or messages.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the number of messages by rehearsed action.
    #[must_use]
    pub fn rehearsed(&self) -> Vec<(Action, u64)> {
        let count = |action: Action| (action, self.rehearsed[action as usize].load(Ordering::Relaxed));
        Action::ALL.into_iter().filter(|&action| action != Action::Mark).map(count).collect()
    }

    /// Returns the amount of bulk and spam that was only marked because a recipient had written to its sender.
    #[must_use]
    pub fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }

    /// Returns the amount of bulk and spam that was only marked because the administrator allowed its mailing.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Returns the number of successful reloads, or of failed ones.
    #[must_use]
    pub fn reloads(&self, well: bool) -> u64 {
        self.reloads[usize::from(well)].load(Ordering::Relaxed)
    }

    /// Returns the number of log lines lost because the log daemon was too slow.
    #[must_use]
    pub fn log_lines_dropped(&self) -> u64 {
        (self.log_lines_dropped)()
    }
}
