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
use super::words::Words;
use bulkmark_policy::{AccountStatus, Accounts, Action, Held, Limits, Sent, Standing, TrapResult, Verdict};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Kinds that are counted by time.
const KINDS: usize = Verdict::ALL.len();

/// How many messages had one verdict, action and reason.
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

/// What became of a message.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// What was found.
    pub verdict: Verdict,
    /// What was done.
    pub action: Action,
    /// Why it was not judged; of bulk, which kind of count has reached its threshold; empty for what is clean.
    pub reason: &'static str,
    /// Why it was only marked though it is bulk or spam that nobody wants, if so.
    pub held: Option<Held>,
    /// What would have been done, where that is only rehearsed.
    pub would: Option<Action>,
    /// Signatures that were reported for it.
    pub signatures: usize,
    /// The time from its end to the verdict.
    pub time: Duration,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// What a daemon did.
#[derive(Debug)]
pub struct Activity {
    /// Of the MTA to a milter, of clients to a server.
    pub connections: Arc<Connections>,
    /// What others ask of a milter.
    pub interfaces: Interfaces,
    /// What a server's readers take.
    pub load: Arc<Load>,
    /// What the daemon does all the time, and how often that ended.
    pub tasks: Arc<Tasks>,
    /// How long verdicts took.
    pub judging: Histogram,
    /// By verdict, action and reason.
    messages: Mutex<BTreeMap<(usize, usize, &'static str), u64>>,
    signatures: AtomicU64,
    held: AtomicU64,
    /// By action.
    rehearsed: [AtomicU64; Action::ALL.len()],
    spared: AtomicU64,
    allowed: AtomicU64,
    canaries: AtomicU64,
    /// Of the server's certificate; 0 where there is none.
    certificate_expiry: AtomicU64,
    /// Those that failed, and those that did not.
    reloads: [AtomicU64; 2],
    reload_failed: AtomicBool,
    /// In seconds since 1970; 0: there was none.
    reloaded_at: AtomicU64,
    log_lines_dropped: fn() -> u64,
    /// Messages of a day by verdict at a milter; at a server the first has signatures of reports.
    pub minutes: Spans<KINDS>,
    /// The same of a month.
    pub hours: Spans<KINDS>,
    /// What accounts sent that send outbound mail.
    accounts: Mutex<Accounts>,
    alerts: AtomicU64,
    traps: Mutex<TrapStatus>,
    relays: Mutex<Relays>,
    /// What became of user reports.
    pub words: Words,
    /// What became of messages by policy.
    pub policies: Policies,
    /// What is kept of messages beside counts.
    pub wanted: Record,
    recent: Ring,
    bulk: Table,
}

impl Activity {
    /// Of a daemon that begins. The log knows itself which lines it dropped.
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
            words: Words::default(),
            policies: Policies::default(),
            wanted: record,
            recent: Ring::default(),
            bulk: Table::new(record),
        })
    }

    /// Whether more than counts is wanted.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.wanted.verdicts
    }

    /// Whether subjects may be kept.
    #[must_use]
    pub fn keeps_subjects(&self) -> bool {
        self.wanted.subjects
    }

    /// Keeps what the page shows of a message, if it is wanted.
    pub fn record(&self, recent: Recent, bulk: Option<&Seen<'_>>) {
        if self.is_recording() {
            let mailing = bulk.map(|seen| self.bulk.add(seen, &recent));
            self.recent.push(Recent { mailing, ..recent });
        }
    }

    /// The last verdicts, the last one first.
    #[must_use]
    pub fn recent(&self) -> Vec<Recent> {
        self.recent.list()
    }

    /// What is bulk now: so many with the highest counts.
    #[must_use]
    pub fn bulk(&self, most: usize, now: u64) -> Vec<Mailing> {
        self.bulk.top(most, now)
    }

    /// The mailings that are bulk now, as they are kept over a restart.
    #[must_use]
    pub fn stored_mailings(&self, now: u64) -> Vec<StoredMailing> {
        self.bulk.stored(now)
    }

    /// Takes up the mailings that were bulk before a restart, if the page shows any.
    pub fn take_up_mailings(&self, stored: Vec<StoredMailing>) {
        if self.is_recording() {
            self.bulk.take_up(stored);
        }
    }

    /// Counts signatures that a client reported to a server.
    pub fn reported(&self, signatures: u64, now: u64) {
        self.minutes.add(0, signatures, now);
        self.hours.add(0, signatures, now);
    }

    /// An account sent outbound mail; how it stands now. `now` is in seconds since 1970.
    pub fn account_sent(&self, name: &str, what: Sent, limits: Limits, now: u64) -> Standing {
        let standing = self.accounts.lock().sent(name, what, limits, now);
        self.alerts.fetch_add(u64::from(standing.must_notify), Ordering::Relaxed);
        standing
    }

    /// How many accounts sent outbound mail lately, and how many of them are over their limit.
    #[must_use]
    pub fn accounts(&self, now: u64) -> (usize, usize) {
        self.accounts.lock().numbers(now)
    }

    /// So many accounts that sent bulk lately, those over their limit first.
    #[must_use]
    pub fn busiest_accounts(&self, most: usize, now: u64) -> Vec<AccountStatus> {
        self.accounts.lock().list(most, now)
    }

    /// How often an account was told to be over its limit.
    #[must_use]
    pub fn account_alerts(&self) -> u64 {
        self.alerts.load(Ordering::Relaxed)
    }

    /// Takes up what accounts had sent before a restart.
    pub fn take_up_accounts(&self, accounts: Accounts) {
        *self.accounts.lock() = accounts;
    }

    /// Does something with what accounts sent, for example store it.
    pub fn with_accounts<T>(&self, act: impl FnOnce(&Accounts) -> T) -> T {
        act(&self.accounts.lock())
    }

    /// A message that is judged came from this client, of a sender of this domain.
    pub fn came_from(&self, client: IpAddr, domain: &str) {
        self.relays.lock().came(client, domain);
    }

    /// Clients that may be mail servers of one's own in front of this one.
    #[must_use]
    pub fn likely_relays(&self) -> Vec<LikelyRelay> {
        self.relays.lock().likely()
    }

    /// A trap got a message, and made this of it.
    pub fn trap_sprung(&self, result: TrapResult) {
        self.traps.lock().sprung(result);
    }

    /// This trap got a message that an entry of a white list wants, at a time in seconds since 1970.
    pub fn trap_wanted(&self, trap: &str, entry: String, now: u64) {
        self.traps.lock().wanted(trap, entry, now);
    }

    /// What traps made of mail.
    #[must_use]
    pub fn traps(&self) -> TrapStatus {
        self.traps.lock().clone()
    }

    /// Messages to traps, by what was made of them.
    #[must_use]
    pub fn trap_messages(&self) -> Vec<(&'static str, u64)> {
        let messages = self.traps.lock().messages.clone();
        let count = |result: TrapResult| messages.get(result.as_str()).copied().unwrap_or_default();
        TrapResult::ALL.iter().map(|&result| (result.as_str(), count(result))).collect()
    }

    /// Takes up which traps got mail that a white list wants before a restart.
    pub fn take_up_traps(&self, wanted: BTreeMap<String, WantedByTrap>) {
        self.traps.lock().take_up(wanted);
    }

    /// Counts a message.
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

    /// The policy of this name decided this of a message.
    pub fn decided_by(&self, policy: &str, message: &Judged) {
        self.policies.add(policy, message.verdict, message.action, message.would);
    }

    /// Messages of this verdict may come for this reason, so that they are told before the first.
    pub fn expect(&self, verdict: Verdict, reason: &'static str) {
        self.messages.lock().entry((verdict as usize, Action::Mark as usize, reason)).or_default();
    }

    /// Counts a canary, which is no mail.
    pub fn canary(&self) {
        self.canaries.fetch_add(1, Ordering::Relaxed);
    }

    /// Canaries that came.
    #[must_use]
    pub fn canaries(&self) -> u64 {
        self.canaries.load(Ordering::Relaxed)
    }

    /// The certificate in force expires then, in seconds since 1970.
    pub fn certificate_expires(&self, at: Option<u64>) {
        self.certificate_expiry.store(at.unwrap_or_default(), Ordering::Relaxed);
    }

    /// When the certificate in force expires, if there is one.
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

    /// Whether the configuration in force is the one that was last to be read: no reload failed since.
    #[must_use]
    pub fn is_reloaded(&self) -> bool {
        !self.reload_failed.load(Ordering::Relaxed)
    }

    /// When a reload last went well, in seconds since 1970; none: not since the start.
    #[must_use]
    pub fn reloaded_at(&self) -> Option<u64> {
        Some(self.reloaded_at.load(Ordering::Relaxed)).filter(|&at| at > 0)
    }

    /// Messages by verdict, action and reason: those that there were, and those that are expected.
    #[must_use]
    pub fn messages(&self) -> Vec<MessageCount> {
        let messages = self.messages.lock();
        let told = messages.iter().map(|(&(verdict, action, reason), &count)| MessageCount {
            verdict: Verdict::ALL[verdict],
            action: Action::ALL[action],
            reason,
            count,
        });
        told.collect()
    }

    /// Signatures that messages reported.
    #[must_use]
    pub fn signatures(&self) -> u64 {
        self.signatures.load(Ordering::Relaxed)
    }

    /// Bulk that was only marked since its count comes from too few networks or messages.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Messages whose action was only rehearsed, by that action.
    #[must_use]
    pub fn rehearsed(&self) -> Vec<(Action, u64)> {
        let count = |action: Action| (action, self.rehearsed[action as usize].load(Ordering::Relaxed));
        Action::ALL.into_iter().filter(|&action| action != Action::Mark).map(count).collect()
    }

    /// Bulk and spam that was only marked since a recipient had written to its sender.
    #[must_use]
    pub fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }

    /// Bulk and spam that was only marked since the administrator allowed its mailing.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    /// How many reloads went well, or did not.
    #[must_use]
    pub fn reloads(&self, well: bool) -> u64 {
        self.reloads[usize::from(well)].load(Ordering::Relaxed)
    }

    /// Log lines that the log daemon was too slow for.
    #[must_use]
    pub fn log_lines_dropped(&self) -> u64 {
        (self.log_lines_dropped)()
    }
}
