// SPDX-License-Identifier: GPL-3.0-or-later
//! Admission of requests: authentication and rates.

use super::clients::{Client, Clients, ClientsError, Role};
use super::limits::{Checks, Principal};
use super::made_up::{MadeUp, Verdict};
use super::refused_requests::RefusedRequests;
use super::registration::{NotRegistered, Registration, RegistrationRequest, UNAPPROVED};
use super::seen::{Seen, sum_of_unapproved};
use super::settings::Settings;
use super::under_way::under_way;
use crate::control::ClientStatus;
use crate::net::{Caller, Paid, Rate};
use arc_swap::ArcSwap;
use axum::http::{HeaderMap, header};
use bulkmark_ledger::now;
use bulkmark_types::{Signature, remote_text};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Reports that a client may always send at once: one batch.
const WHOLE_BATCH: NonZeroU32 = const { NonZeroU32::new(8192).unwrap() };
const _: () = assert!(WHOLE_BATCH.get() as usize == bulkmark_sync::wire::MAX_REPORTS);

/// How long a use of a token counts as recent; longer than the interval of checks.
const LATELY: Duration = Duration::from_secs(180);

/// Reasons for refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("a token is needed: Authorization: Bearer TOKEN")]
    NoToken,
    #[error("the token is not valid")]
    Token,
    #[error(
        "the token has expired; ask the server's operator to extend it (bulkmark client set --expires 90d NAME)"
    )]
    Expired,
    #[error("the token is not valid, and neither were many others from this address; try again in a minute")]
    Blocked,
    #[error("this client may only read")]
    Role,
    #[error(
        "the server's operator has not approved this client yet (bulkmark client approve); its reports wait, and it may read"
    )]
    Unapproved,
    #[error("this client may read metrics and nothing else")]
    OnlyMetrics,
    #[error("metrics need a client with the role \"metrics\"")]
    NoMetrics,
    #[error("more reports a second than this client may send; try again later")]
    Rate,
    #[error(
        "the signatures of this client are made up; it is slowed down, and nothing is taken of it if that goes on"
    )]
    Slowed,
    #[error(
        "the signatures of this client are made up; nothing is taken of it until its server's administrator gives it another token"
    )]
    MadeUp,
    #[error("more checks than this client or address may make in a minute; try again later")]
    Checks,
    #[error("more lists of orders than a client may send in a minute; try again later")]
    Orders,
    #[error("this client has as many connections as it may have")]
    Connections,
    #[error("this client or address has as many streams as it may have")]
    Streams,
}

impl Refused {
    /// Whether the client sent or asked more than it may.
    const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::Rate | Self::Slowed | Self::Checks | Self::Orders | Self::Connections | Self::Streams
        )
    }
}

/// Identifies a version of the file, which is always replaced and never changed in place.
type Stamp = (u64, u64, i64, i64);

fn stamp_of(directory: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let file = directory.join(super::clients::FILE_NAME).metadata().ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}

/// Holds a client to its rate.
struct Meter {
    rate: NonZeroU32,
    limit: Rate,
    paid: Paid,
}

pub(super) struct Gate {
    clients: ArcSwap<Clients>,
    /// The directory of their file, and the version that was read.
    directory: PathBuf,
    stamp: Mutex<Option<Stamp>>,
    anonymous_reading: bool,
    pub(super) registration: Registration,
    /// Reports a second of a client without its own rate.
    rate: NonZeroU32,
    made_up: MadeUp,
    pub(super) refused_requests: RefusedRequests,
    checks: Checks,
    /// The meters by client.
    meters: Mutex<HashMap<String, Meter>>,
    activity: Mutex<HashMap<String, Seen>>,
    /// Clients that were removed together with their counts, and when that was noticed.
    withdrawn: Mutex<HashMap<String, Instant>>,
    /// Notified when clients or tokens change.
    changed: watch::Sender<()>,
}

impl Gate {
    pub(super) fn new(settings: &Settings) -> Result<Self, ClientsError> {
        let Settings { state_dir: directory, anonymous_reading, registration, limits, .. } = settings.clone();
        let stamp = Mutex::new(stamp_of(&directory));
        Ok(Self {
            clients: ArcSwap::from_pointee(Clients::load(&directory)?),
            directory,
            stamp,
            anonymous_reading,
            registration,
            rate: limits.rate,
            made_up: MadeUp::default(),
            refused_requests: RefusedRequests::new(limits.failed_attempts),
            checks: Checks::new(limits.checks_per_minute),
            meters: Mutex::default(),
            activity: Mutex::default(),
            withdrawn: Mutex::default(),
            changed: watch::Sender::new(()),
        })
    }

    /// Reads the clients again when their file changed, so that additions, new tokens and removals apply at once.
    fn refresh(&self) {
        let stamp = stamp_of(&self.directory);
        let mut known = self.stamp.lock();
        if *known == stamp {
            return;
        }
        *known = stamp;
        match Clients::load(&self.directory) {
            Ok(clients) => {
                // Requests wait for these locks, and there may be many clients.
                let known: HashSet<&str> = clients.list().iter().map(|client| &*client.name).collect();
                self.meters.lock().retain(|name, _| name == UNAPPROVED || known.contains(&**name));
                self.activity.lock().retain(|name, _| known.contains(&**name));
                let before = self.clients.load();
                // The use of a token does not change a client.
                let all = |clients: &Clients| -> HashMap<String, Client> {
                    clients.list().iter().map(|client| (client.name.clone(), client.grant())).collect()
                };
                let (before, after) = (all(&before), all(&clients));
                self.made_up.keep(|name| before.get(name) == after.get(name));
                log::info!("the clients were changed; there are {} now", clients.list().len());
                self.clients.store(Arc::new(clients));
                self.changed.send_replace(());
            }
            Err(e) => log::error!("{e}; the old clients stay in force"),
        }
    }

    /// Subscribes to changes of clients and tokens.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Records that a client has just sent a request.
    fn touch(&self, client: &str) {
        self.note(client, |seen| seen.last_seen = Some(Instant::now()));
    }

    /// Whether a client's token still allows reading. Open streams call it regularly, so it also counts as a request.
    pub(super) fn may_still_read(&self, name: &str, token: &str) -> bool {
        let clients = self.clients.load();
        let may_read = clients.authenticate(token).is_some_and(|client| {
            client.name == name && client.role != Role::Metrics && !client.is_expired(now())
        });
        if may_read {
            self.touch(name);
        }
        may_read
    }

    /// Returns the clients that were removed together with their counts. They are returned for some time, since reports may still be on
    /// their way.
    pub(super) fn withdrawn(&self) -> Vec<String> {
        self.refresh();
        let clients = self.clients.load();
        under_way(clients.withdrawn(), &mut self.withdrawn.lock(), Instant::now())
    }

    /// Returns all clients.
    pub(super) fn all(&self) -> Arc<Clients> {
        self.refresh();
        self.clients.load_full()
    }

    /// Whether any client is a peer.
    pub(super) fn has_peers(&self) -> bool {
        self.refresh();
        self.clients.load().list().iter().any(|client| client.role == Role::Peer)
    }

    /// Returns all clients with their activity.
    pub(super) fn status(&self) -> Vec<ClientStatus> {
        self.refresh();
        let activity = self.activity.lock();
        let (none, now) = (Seen::default(), now());
        let status = |client: &Client| {
            let seen = activity.get(&client.name).unwrap_or(&none);
            seen.status(client, self.made_up.refused(&client.name), now)
        };
        let clients = self.clients.load();
        let (approved, others): (Vec<_>, Vec<_>) =
            clients.list().iter().partition(|client| client.is_approved());
        let mut all: Vec<_> = approved.into_iter().map(status).collect();
        all.extend(sum_of_unapproved(others.into_iter().map(status)));
        all
    }

    fn note(&self, client: &str, change: impl FnOnce(&mut Seen)) {
        let mut activity = self.activity.lock();
        match activity.get_mut(client) {
            Some(activity) => change(activity),
            None => change(activity.entry(client.to_owned()).or_default()),
        }
    }

    /// Records a counted batch.
    pub(super) fn counted(&self, client: &str, signatures: usize) {
        self.note(client, |seen| seen.counted(signatures as u64, now()));
    }

    /// Records the program of a client, if its request names one.
    pub(super) fn note_program(&self, client: &str, headers: &HeaderMap) {
        if let Some(program) = headers.get(header::USER_AGENT).and_then(|program| program.to_str().ok()) {
            self.note(client, |seen| seen.note_program(program));
        }
    }

    /// Records a refusal, and logs each reason once in a while. `by_limit` is true if the client sent or asked more than it may.
    pub(super) fn refused(&self, client: &str, why: &str, by_limit: bool) {
        // It may quote the client.
        let why = remote_text(why);
        self.note(client, |seen| {
            for line in seen.refusals.note(&why, Instant::now()) {
                log::info!("client {client} is refused: {line}");
            }
            seen.refused(why, by_limit);
        });
    }

    /// Admits a reader; none for an anonymous one, if everybody may read.
    pub(super) fn reader(&self, token: Option<&str>, caller: &Caller) -> Result<Option<Client>, Refused> {
        if token.is_none() && self.anonymous_reading {
            return Ok(None);
        }
        let client = self.client(token, caller)?;
        if client.role == Role::Metrics {
            return Err(self.refuse(&client, Refused::OnlyMetrics));
        }
        Ok(Some(client))
    }

    /// Admits a reader of the metrics.
    pub(super) fn scraper(&self, token: Option<&str>, caller: &Caller) -> Result<(), Refused> {
        let client = self.client(token, caller)?;
        if client.role == Role::Metrics { Ok(()) } else { Err(self.refuse(&client, Refused::NoMetrics)) }
    }

    /// Registers and stores a site. Returns its name and token. Costs one write of the file of clients, which has a bounded number of such
    /// sites; a refused site costs one pass over the clients. No site registers while the reports of removed ones are withdrawn: it would
    /// end that.
    pub(super) fn register(
        &self,
        request: &RegistrationRequest,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<Result<(String, String), NotRegistered>, ClientsError> {
        self.refresh();
        if let Err(why) = self.clients.load().may_register(request, from, now) {
            return Ok(Err(why));
        }
        let done = Clients::edit(&self.directory, |clients| match self.is_withdrawing(clients) {
            true => Ok(Err(NotRegistered::Withdrawn)),
            false => clients.register(request, from, now),
        })?;
        self.refresh();
        Ok(done)
    }

    /// Whether the reports of all unapproved sites are withdrawn now, or will be.
    fn is_withdrawing(&self, clients: &Clients) -> bool {
        let due = under_way(clients.withdrawn(), &mut self.withdrawn.lock(), Instant::now());
        due.iter().any(|name| name == UNAPPROVED)
    }

    /// Whether the reports of all unapproved sites were withdrawn for as long as some could be on their way.
    fn has_withdrawn(&self, clients: &Clients) -> bool {
        clients.withdrawn().iter().any(|name| name == UNAPPROVED) && !self.is_withdrawing(clients)
    }

    /// Stores the use of tokens by unapproved sites and the end of their withdrawal, and removes lapsed sites.
    pub(super) fn tidy_registrations(&self, now: u64) -> Result<(), ClientsError> {
        self.refresh();
        let used: Vec<String> = {
            let (clients, activity) = (self.clients.load(), self.activity.lock());
            let last_seen = |name: &str| activity.get(name)?.last_seen;
            let is_used = |name: &str| last_seen(name).is_some_and(|at| at.elapsed() < LATELY);
            clients.unapproved().map(|(client, _)| client.name.clone()).filter(|name| is_used(name)).collect()
        };
        let clients = self.clients.load();
        if !clients.is_due(&used, now) && !self.has_withdrawn(&clients) {
            return Ok(());
        }
        Clients::edit(&self.directory, |clients| {
            // Otherwise each start would withdraw them again, and nobody could register meanwhile.
            if self.has_withdrawn(clients) {
                clients.end_withdrawal();
            }
            clients.note_used(&used, now);
            Ok(())
        })
    }

    fn refuse(&self, client: &Client, why: Refused) -> Refused {
        self.refused(&client.name, &why.to_string(), why.is_limit());
        why
    }

    /// Admits a client that may report.
    pub(super) fn reporter(&self, token: Option<&str>, caller: &Caller) -> Result<Client, Refused> {
        let client = self.client(token, caller)?;
        if client.role != Role::Report {
            return Err(self.refuse(&client, Refused::Role));
        }
        if !client.is_approved() && self.registration != Registration::Open {
            return Err(self.refuse(&client, Refused::Unapproved));
        }
        Ok(client)
    }

    fn client(&self, token: Option<&str>, caller: &Caller) -> Result<Client, Refused> {
        let token = token.ok_or(Refused::NoToken)?;
        self.refresh();
        let clients = self.clients.load();
        // A valid token is accepted regardless of other attempts from its address.
        let Some(client) = clients.authenticate(token).cloned() else {
            let too_many = self.refused_requests.try_token(caller.ip);
            return Err(if too_many { Refused::Blocked } else { Refused::Token });
        };
        self.touch(&client.name);
        if client.is_expired(now()) {
            return Err(self.refuse(&client, Refused::Expired));
        }
        // Any number of sites may register, so they count by their addresses, as strangers do.
        if client.is_approved() && caller.connection.is_known_as(&client.name).is_err() {
            return Err(self.refuse(&client, Refused::Connections));
        }
        Ok(client)
    }

    /// Checks the rate of single questions.
    pub(super) fn admit_check(&self, client: Option<&Client>, principal: &Principal) -> Result<(), Refused> {
        if self.checks.admit(principal) {
            return Ok(());
        }
        Err(self.refuse_any(client, Refused::Checks))
    }

    /// Refuses a request, and records it if it is a client's.
    pub(super) fn refuse_any(&self, client: Option<&Client>, why: Refused) -> Refused {
        match client {
            Some(client) => self.refuse(client, why),
            None => why,
        }
    }

    /// Checks whether the signatures of a batch look like hashes of messages. `chance` selects the sample.
    pub(super) fn admit_signatures(
        &self,
        client: &Client,
        batch: &[(Signature, u32)],
        chance: usize,
    ) -> Result<(), Refused> {
        let name = &client.name;
        match self.made_up.judge(name, batch, chance, Instant::now()) {
            Verdict::Good => Ok(()),
            Verdict::Slowed => Err(Refused::Slowed),
            Verdict::Refused => Err(Refused::MadeUp),
            Verdict::Strange(odd, strikes) => {
                log::error!(
                    "the client {name} reports signatures that are made up ({strikes} of 3): {odd}. It is slowed down, and refused \
                     after the third; bulkmark client rotate {name} lets it report again"
                );
                Ok(())
            }
        }
    }

    /// Checks a client's rate of reports. A batch without any counts as one report: it takes a commit.
    pub(super) fn admit(&self, client: &Client, reports: usize) -> Result<(), Refused> {
        let reports = u32::try_from(reports).unwrap_or(u32::MAX).max(1);
        let rate = client.rate.unwrap_or(self.rate);
        let new = || {
            // One whole batch must fit, however low the rate.
            let limit = Rate::new(rate, Duration::from_secs(1), rate.max(WHOLE_BATCH));
            Meter { rate, limit, paid: Paid::default() }
        };
        let mut meters = self.meters.lock();
        let meter = meters.entry(client.counts_as().to_owned()).or_insert_with(new);
        if meter.rate != rate {
            *meter = new();
        }
        let is_admitted = meter.limit.admits(&mut meter.paid, reports, Instant::now());
        if is_admitted { Ok(()) } else { Err(Refused::Rate) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::clients::Grant;
    use crate::server::settings::Limits;
    use crate::server::under_way::UNDER_WAY;

    fn gate(directory: &Path) -> Gate {
        let settings = Settings {
            address: String::new(),
            anonymous_reading: false,
            registration: Registration::Open,
            limits: Limits::default(),
            state_dir: directory.to_owned(),
        };
        Gate::new(&settings).unwrap()
    }

    /// A site that registers right after the removal of all others, before anybody noticed that, does not save their reports.
    #[test]
    fn a_new_site_ends_no_withdrawal() {
        let directory = tempfile::tempdir().unwrap();
        let gate = gate(directory.path());
        let request = RegistrationRequest { name: "mx".to_owned(), contact: String::new() };
        let register = || gate.register(&request, None, 1_800_000_000).unwrap();
        register().unwrap();
        Clients::edit(directory.path(), |clients| Ok(clients.remove_unapproved())).unwrap();
        assert_eq!(register(), Err(NotRegistered::Withdrawn));
        assert_eq!(gate.withdrawn(), [UNAPPROVED]);
        let long_ago = Instant::now().checked_sub(UNDER_WAY).unwrap();
        gate.withdrawn.lock().insert(UNAPPROVED.to_owned(), long_ago);
        assert!(register().is_ok() && gate.withdrawn().is_empty());
    }

    /// The withdrawal ends once: a later start neither repeats it nor closes the registration again.
    #[test]
    fn a_restart_repeats_no_withdrawal_that_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        Clients::edit(directory.path(), |clients| Ok(clients.remove_unapproved())).unwrap();
        let running = gate(directory.path());
        assert_eq!(running.withdrawn(), [UNAPPROVED]);
        running.tidy_registrations(1_800_000_000).unwrap();
        assert_eq!(gate(directory.path()).withdrawn(), [UNAPPROVED], "reports are still on their way");
        let long_ago = Instant::now().checked_sub(UNDER_WAY).unwrap();
        running.withdrawn.lock().insert(UNAPPROVED.to_owned(), long_ago);
        running.tidy_registrations(1_800_000_000).unwrap();
        let request = RegistrationRequest { name: "mx".to_owned(), contact: String::new() };
        assert!(gate(directory.path()).register(&request, None, 1_800_000_000).unwrap().is_ok());
    }

    /// A batch without reports takes a commit as others do, so it counts for the rate.
    #[test]
    fn empty_batches_have_a_rate() {
        let directory = tempfile::tempdir().unwrap();
        let grant = Grant { rate: NonZeroU32::new(1), ..Grant::default() };
        Clients::edit(directory.path(), |clients| clients.add("isp", grant)).unwrap();
        let gate = gate(directory.path());
        let client = gate.clients.load().list()[0].clone();
        assert!((0..100_000).any(|_| gate.admit(&client, 0) == Err(Refused::Rate)));
    }
}
