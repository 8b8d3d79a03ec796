// SPDX-License-Identifier: GPL-3.0-or-later
//! The loop over the socket: takes what is there, asks the ledger once for all of it, and answers.

use super::super::access::may_ask;
use super::accounts::{Accounts, CLOCK, Signed, Unsigned};
use super::answer::{Counts, Denied, NEVER_COUNTED, PONG, Told, write};
use super::rate::Rates;
use super::replay::{Replays, Seen};
use super::request::{ANONYMOUS, MOST, Op, Request};
use crate::activity::{Done, Interface};
use crate::interfaces::settings::{PyzorSettings, Tally};
use crate::judging::{CountOnce, PyzorDigest, PyzorReporter, Refused, Service, digest_counts, take_pyzor};
use crate::net::{Address, network_of};
use arc_swap::ArcSwap;
use bulkmark_counts::Side;
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

/// Requests that are answered together at most: the first one waits until the last was read.
const TOGETHER: usize = 32;

/// The same where a server may have to be asked, over a network.
const FAR_TOGETHER: usize = 256;

/// Questions to a server at a time. When so many are on their way, the next one is for more requests together.
const FAR: usize = 8;

/// Reports that are being counted at a time; more are dropped, as a network drops them.
const REPORTS: usize = 256;

/// How long nothing is tried after the socket failed.
const PAUSE: Duration = Duration::from_millis(100);

/// An interface that is bound.
pub(in crate::interfaces) struct Context {
    service: Arc<Service>,
    settings: PyzorSettings,
    accounts: ArcSwap<Accounts>,
    socket: UdpSocket,
    at: SocketAddr,
    reports: Arc<Semaphore>,
    replays: Mutex<Replays>,
    /// When it was bound, in seconds since 1970.
    since: u64,
}

/// A request that waits for what the ledger knows of its digest.
struct Waiting {
    digest: PyzorDigest,
    is_info: bool,
    back: Back,
}

/// Where an answer goes.
struct Back {
    to: SocketAddr,
    thread: String,
    /// Bytes of the request.
    asked: usize,
}

/// What is to be done for a request.
enum Task {
    Tell(Told),
    Look(PyzorDigest, bool),
    Count(Reported),
    /// It came before, and is answered when that is.
    Nothing,
}

/// What is to be counted.
struct Reported {
    side: Side,
    digests: Vec<PyzorDigest>,
    /// By what it is known if it comes again, and when that was signed.
    signed: Option<(Signed, u64)>,
}

impl Context {
    /// Binds it.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::interfaces) async fn bind(
        address: &Address,
        settings: &PyzorSettings,
        accounts: Accounts,
        service: &Arc<Service>,
    ) -> io::Result<Self> {
        let Address::Tcp(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
        let socket = UdpSocket::bind(&**address).await?;
        let at = socket.local_addr()?;
        Ok(Self {
            service: Arc::clone(service),
            settings: settings.clone(),
            accounts: ArcSwap::from_pointee(accounts),
            socket,
            at,
            reports: Arc::new(Semaphore::new(REPORTS)),
            replays: Mutex::default(),
            since: bulkmark_ledger::now(),
        })
    }

    /// Reads the accounts and the access file again; they stay as they are when that fails.
    fn reload(&self) {
        let PyzorSettings { accounts_file, access_file, .. } = &self.settings;
        if accounts_file.is_none() && access_file.is_none() {
            return;
        }
        match Accounts::load(accounts_file.as_deref(), access_file.as_deref()) {
            Ok(accounts) => {
                tell_faults(&accounts);
                self.accounts.store(Arc::new(accounts));
                log::info!("interfaces.pyzor: the accounts were read anew");
            }
            Err(why) => log::error!("interfaces.pyzor: {why}; the accounts stay as they were"),
        }
    }

    /// Where it is, for people.
    pub(in crate::interfaces) fn address(&self) -> String {
        self.at.to_string()
    }

    /// Whether only this machine can reach it.
    pub(in crate::interfaces) fn is_local(&self) -> bool {
        self.at.ip().to_canonical().is_loopback()
    }

    fn add(&self, done: Done) {
        self.service.activity.interfaces.add(Interface::Pyzor, done);
    }

    fn is_counted(&self, digest: PyzorDigest) -> bool {
        !digest.is_meaningless() && !self.settings.uncounted.contains(&digest)
    }

    /// What is to be done, in the order in which the reference server looks at a request.
    fn task(&self, request: &Request<'_>, now: u64) -> Result<Task, Denied> {
        let accounts = self.accounts.load();
        let signed = accounts.verify(request, now)?;
        if !request.is_of_this_version()? {
            return Err(Denied::Version);
        }
        let op =
            Op::of(request.op).filter(|op| accounts.may(request.user(), *op)).ok_or(Denied::Forbidden)?;
        let look = |is_info| {
            Ok(match request.digest()? {
                None => Task::Tell(Told::Done),
                Some(digest) if self.is_counted(digest) => Task::Look(digest, is_info),
                Some(_) if is_info => Task::Tell(Told::Info(NEVER_COUNTED)),
                Some(_) => Task::Tell(Told::Counts(NEVER_COUNTED)),
            })
        };
        let count = |side| {
            let mut digests = request.digests()?;
            digests.retain(|digest| self.is_counted(*digest));
            if digests.is_empty() {
                return Ok(Task::Tell(Told::Done));
            }
            Ok(match signed.map(|signed| self.see(signed, now)).transpose()? {
                // A network may deliver a datagram twice, too.
                Some(Seen::Before) => Task::Tell(Told::Done),
                Some(Seen::UnderWay) => Task::Nothing,
                Some(Seen::New) | None => Task::Count(Reported { side, digests, signed }),
                Some(Seen::Full) => return Err(Denied::Busy),
            })
        };
        match op {
            Op::Ping => Ok(Task::Tell(Told::Done)),
            Op::Pong => Ok(Task::Tell(request.digest()?.map_or(Told::Done, |_| Told::Counts(PONG)))),
            Op::Check => look(false),
            Op::Info => look(true),
            Op::Report => count(Side::Spam),
            Op::Whitelist => count(Side::NotSpam),
        }
    }

    /// Whether something that was signed at this time came before. What came before the start is not known.
    fn see(&self, (signature, time): (Signed, u64), now: u64) -> Result<Seen, Denied> {
        if self.settings.count == Tally::Reports && time < self.since {
            return Err(Unsigned::Time.into());
        }
        Ok(self.replays.lock().see(signature, now))
    }

    fn send(&self, answer: &mut Vec<u8>, told: Result<Told, Denied>, back: &Back) {
        if let Err(why) = told {
            log::debug!("pyzor: a request from {} was refused: {why}", back.to.ip());
        }
        write(answer, told, &back.thread, back.asked);
        // Where there is no room for it, it is lost, as the network loses them.
        if !answer.is_empty()
            && let Err(e) = self.socket.try_send_to(answer, back.to)
        {
            log::debug!("pyzor: an answer to {} was not sent: {e}", back.to.ip());
        }
    }

    /// Looks at one datagram: answers at once what needs no ledger, and has reports counted.
    fn take(
        self: &Arc<Self>,
        datagram: &[u8],
        from: SocketAddr,
        now: u64,
        answer: &mut Vec<u8>,
    ) -> Option<Waiting> {
        if datagram.len() > MOST {
            self.add(Done::Refused);
            return None;
        }
        let request = Request::read(datagram);
        let back = Back { to: from, thread: request.thread.to_owned(), asked: datagram.len() };
        match self.task(&request, now) {
            Err(why) => {
                self.add(Done::Refused);
                self.send(answer, Err(why), &back);
            }
            Ok(Task::Tell(told)) => {
                self.add(Done::Asked);
                self.send(answer, Ok(told), &back);
            }
            Ok(Task::Look(digest, is_info)) => return Some(Waiting { digest, is_info, back }),
            Ok(Task::Nothing) => (),
            Ok(Task::Count(reported)) => {
                let by = match request.user() {
                    ANONYMOUS => network_reporter(from.ip()),
                    name => PyzorReporter::Account(name.to_owned()),
                };
                self.count(reported, by, back);
            }
        }
        None
    }

    /// Has a report counted beside the loop: that takes as long as the disk does.
    fn count(self: &Arc<Self>, reported: Reported, by: PyzorReporter, back: Back) {
        let Ok(permit) = Arc::clone(&self.reports).try_acquire_owned() else {
            self.settle(&reported, false);
            return self.add(Done::TimedOut);
        };
        let context = Arc::clone(self);
        drop(tokio::spawn(async move {
            let counted = context.counted(&reported, &by).await;
            drop(permit);
            let told = match counted {
                Ok(true) => Ok((Done::Nominated, Told::Done)),
                Ok(false) => Ok((Done::Asked, Told::Done)),
                Err(why) => Err(why),
            };
            context.add(told.map_or(Done::Refused, |(done, _)| done));
            context.send(&mut Vec::new(), told.map(|(_, told)| told), &back);
        }));
    }

    async fn counted(&self, reported: &Reported, by: &PyzorReporter) -> Result<bool, Denied> {
        let once = self.once(reported, bulkmark_ledger::now());
        let each = once != CountOnce::Reporter;
        let mut result = Ok(false);
        let mut is_counted = false;
        for &digest in &reported.digests {
            match take_pyzor(&self.service, digest, (by, reported.side), once).await {
                Ok(counted) => is_counted |= counted,
                Err(Refused::TooMany) => result = Err(Denied::TooMany),
                Err(why) => {
                    log::info!("pyzor: a report is not counted: {why}");
                    result = Err(Denied::Unavailable);
                }
            }
            if result.is_err() {
                break;
            }
        }
        // Where each report counts, what was counted in part would be counted twice.
        self.settle(reported, result.is_ok() || is_counted && each);
        result.map(|_| is_counted)
    }

    /// What of this counts once. A report whose time is not over yet can come again after a restart, and is remembered on disk.
    fn once(&self, reported: &Reported, now: u64) -> CountOnce {
        match (self.settings.count, reported.signed) {
            (Tally::Reporters, _) => CountOnce::Reporter,
            (Tally::Reports, Some((signature, time))) if time >= now || time <= self.since + CLOCK => {
                CountOnce::Signed(signature)
            }
            (Tally::Reports, _) => CountOnce::Report,
        }
    }

    fn settle(&self, reported: &Reported, is_taken: bool) {
        if let Some((signed, _)) = &reported.signed {
            self.replays.lock().settle(signed, is_taken);
        }
    }

    /// Answers all that wait with one question to the ledger.
    async fn answer(&self, waiting: &[Waiting], answer: &mut Vec<u8>) {
        let digests: Vec<PyzorDigest> = waiting.iter().map(|waiting| waiting.digest).collect();
        let counts = digest_counts(&self.service, &digests).await.unwrap_or_default();
        for (at, Waiting { is_info, back, .. }) in waiting.iter().enumerate() {
            let told = counts.get(at).map(|&[count, whitelisted]| {
                let counts = Counts { count: count.into(), whitelisted: whitelisted.into() };
                if *is_info { Told::Info(counts) } else { Told::Counts(counts) }
            });
            self.add(if told.is_some() { Done::Asked } else { Done::TimedOut });
            self.send(answer, told.ok_or(Denied::Unavailable), back);
        }
    }
}

/// Who somebody without an account is. A process of this machine may take any address of the loopback, so all of these are one.
fn network_reporter(ip: IpAddr) -> PyzorReporter {
    let is_here = ip.to_canonical().is_loopback();
    let network = if is_here { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { network_of(ip) };
    PyzorReporter::Network { network, is_here }
}

/// Has the log say what is wrong with the files.
pub(in crate::interfaces) fn tell_faults(accounts: &Accounts) {
    accounts.faults().iter().for_each(|fault| log::warn!("{fault}"));
}

/// Answers until `end` is done.
pub(in crate::interfaces) async fn serve(context: Arc<Context>, end: impl Future<Output = ()>) {
    let mut rates = Rates::new(context.settings.max_rate);
    // One byte more than is taken, to see what is longer.
    let (mut piece, mut answer, mut waiting) = (vec![0; MOST + 1], Vec::new(), Vec::new());
    let is_far = context.service.asks.is_some();
    let (together, far) = (if is_far { FAR_TOGETHER } else { TOGETHER }, Arc::new(Semaphore::new(FAR)));
    let mut end = std::pin::pin!(end);
    let mut reloads = context.service.reloads();
    loop {
        let ready = tokio::select! {
            ready = context.socket.readable() => ready,
            // The sender lives as long as the service.
            _ = reloads.changed() => {
                context.reload();
                continue;
            }
            () = &mut end => return,
        };
        if let Err(e) = ready {
            log::warn!("pyzor: the socket failed: {e}");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let now = bulkmark_ledger::now();
        let read = Instant::now();
        for _ in 0..together {
            let (size, from) = match context.socket.try_recv_from(&mut piece) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // An answer before could not be delivered; that says nothing of what comes.
                Err(e) => {
                    log::debug!("pyzor: nothing was received: {e}");
                    break;
                }
            };
            if !may_ask(Some(from.ip()), &context.settings.networks) || !rates.admits(from.ip(), read) {
                context.add(Done::Refused);
                continue;
            }
            waiting.extend(context.take(&piece[..size], from, now, &mut answer));
        }
        if !waiting.is_empty() && is_far {
            // Nobody else waits for what a server is asked. The semaphore is never closed.
            let permit = Arc::clone(&far).acquire_owned().await;
            let (context, waiting) = (Arc::clone(&context), std::mem::take(&mut waiting));
            drop(tokio::spawn(async move {
                context.answer(&waiting, &mut Vec::new()).await;
                drop(permit);
            }));
        } else if !waiting.is_empty() {
            context.answer(&waiting, &mut answer).await;
            waiting.clear();
        }
    }
}
