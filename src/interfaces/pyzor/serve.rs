// SPDX-License-Identifier: GPL-3.0-or-later
//! The loop over the socket: reads all waiting requests, asks the ledger once for all of them, and answers.

use super::super::access::may_ask;
use super::accounts::{Accounts, CLOCK, Signed, Unsigned};
use super::answer::{Counts, Denied, NEVER_COUNTED, PONG, Reply, write};
use super::rate::Rates;
use super::replay::{Replays, Seen};
use super::request::{ANONYMOUS, MOST, Op, Request};
use crate::activity::{Done, Interface};
use crate::interfaces::settings::{CountUnit, PyzorSettings};
use crate::judging::{CountOnce, PyzorDigest, PyzorReporter, Refused, Service, digest_counts, take_pyzor};
use crate::net::{Address, network_of};
use arc_swap::ArcSwap;
use bulkmark_counts::Side;
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

/// The most requests that are answered together: the first one waits until the last was read.
const BATCH: usize = 32;

/// The same if a server may have to be asked, over a network.
const REMOTE_BATCH: usize = 256;

/// The most concurrent questions to a server. When there are so many, the next question is for more requests together.
const REMOTE_QUESTIONS: usize = 8;

/// The most reports that are counted concurrently; more are dropped, as a network drops them.
const REPORTS: usize = 256;

/// The most requests of an address in a second.
const RATE: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);

/// The pause after the socket failed.
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
    /// The time when it was bound, in seconds since 1970.
    since: u64,
}

/// A request that waits for the counts of its digest.
struct Waiting {
    digest: PyzorDigest,
    is_info: bool,
    back: Back,
}

/// The destination of an answer.
struct Back {
    to: SocketAddr,
    thread: String,
    /// The size of the request, in bytes.
    asked: usize,
}

/// The work for a request.
enum Task {
    Answer(Reply),
    LookUp(PyzorDigest, bool),
    Count(Reported),
    /// It is a repetition, and is answered with the first one.
    Nothing,
}

/// A report to count.
struct Reported {
    side: Side,
    digests: Vec<PyzorDigest>,
    /// The signature by which a repetition is recognized, and its time.
    signed: Option<(Signed, u64)>,
}

impl Context {
    /// Binds the interface.
    ///
    /// # Errors
    /// The system's error.
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

    /// Reads the accounts and the access file again; the old ones stay in force if that fails.
    fn reload(&self) {
        let Some(home) = self.settings.home.as_deref() else { return };
        match Accounts::load(Some(home)) {
            Ok(accounts) => {
                log_faults(&accounts);
                self.accounts.store(Arc::new(accounts));
                log::info!("interfaces.pyzor: the accounts were read again");
            }
            Err(why) => log::error!("interfaces.pyzor: {why}; the accounts stay as they were"),
        }
    }

    /// Its address, for the log.
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

    /// The work for a request, checked in the order of the reference server.
    fn task(&self, request: &Request<'_>, now: u64) -> Result<Task, Denied> {
        let accounts = self.accounts.load();
        let signed = accounts.verify(request, now)?;
        if !request.is_of_this_version()? {
            return Err(Denied::Version);
        }
        let op =
            Op::of(request.op).filter(|op| accounts.may(request.user(), *op)).ok_or(Denied::Forbidden)?;
        let look_up = |is_info| {
            Ok(match request.digest()? {
                None => Task::Answer(Reply::Done),
                Some(digest) if self.is_counted(digest) => Task::LookUp(digest, is_info),
                Some(_) if is_info => Task::Answer(Reply::Info(NEVER_COUNTED)),
                Some(_) => Task::Answer(Reply::Counts(NEVER_COUNTED)),
            })
        };
        let count = |side| {
            let mut digests = request.digests()?;
            digests.retain(|digest| self.is_counted(*digest));
            if digests.is_empty() {
                return Ok(Task::Answer(Reply::Done));
            }
            Ok(match signed.map(|signed| self.see(signed, now)).transpose()? {
                // A network may also deliver a datagram twice.
                Some(Seen::Before) => Task::Answer(Reply::Done),
                Some(Seen::UnderWay) => Task::Nothing,
                Some(Seen::New) | None => Task::Count(Reported { side, digests, signed }),
                Some(Seen::Full) => return Err(Denied::Busy),
            })
        };
        match op {
            Op::Ping => Ok(Task::Answer(Reply::Done)),
            Op::Pong => Ok(Task::Answer(request.digest()?.map_or(Reply::Done, |_| Reply::Counts(PONG)))),
            Op::Check => look_up(false),
            Op::Info => look_up(true),
            Op::Report => count(Side::Spam),
            Op::Whitelist => count(Side::NotSpam),
        }
    }

    /// Whether something that was signed at this time is a repetition. Requests before the start are unknown.
    fn see(&self, (signature, time): (Signed, u64), now: u64) -> Result<Seen, Denied> {
        if self.settings.count == CountUnit::Reports && time < self.since {
            return Err(Unsigned::Time.into());
        }
        Ok(self.replays.lock().see(signature, now))
    }

    fn send(&self, answer: &mut Vec<u8>, reply: Result<Reply, Denied>, back: &Back) {
        if let Err(why) = reply {
            log::debug!("pyzor: a request from {} was refused: {why}", back.to.ip());
        }
        write(answer, reply, &back.thread, back.asked);
        // Without room it is lost, as the network loses them.
        if !answer.is_empty()
            && let Err(e) = self.socket.try_send_to(answer, back.to)
        {
            log::debug!("pyzor: an answer to {} was not sent: {e}", back.to.ip());
        }
    }

    /// Handles one datagram: answers at once if this needs no ledger, and counts reports.
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
            Ok(Task::Answer(reply)) => {
                self.add(Done::Asked);
                self.send(answer, Ok(reply), &back);
            }
            Ok(Task::LookUp(digest, is_info)) => return Some(Waiting { digest, is_info, back }),
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

    /// Counts a report in another task, since that takes as long as the disk does.
    fn count(self: &Arc<Self>, reported: Reported, by: PyzorReporter, back: Back) {
        let Ok(permit) = Arc::clone(&self.reports).try_acquire_owned() else {
            self.settle(&reported, false);
            return self.add(Done::TimedOut);
        };
        let context = Arc::clone(self);
        drop(tokio::spawn(async move {
            let counted = context.counted(&reported, &by).await;
            drop(permit);
            let reply = match counted {
                Ok(true) => Ok((Done::Nominated, Reply::Done)),
                Ok(false) => Ok((Done::Asked, Reply::Done)),
                Err(why) => Err(why),
            };
            context.add(reply.map_or(Done::Refused, |(done, _)| done));
            context.send(&mut Vec::new(), reply.map(|(_, reply)| reply), &back);
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
        // If each report counts, a partly counted one would count twice when repeated.
        self.settle(reported, result.is_ok() || is_counted && each);
        result.map(|_| is_counted)
    }

    /// The unit of this report that counts once. A report whose time is not over yet can be repeated after a restart, and is remembered on
    /// disk.
    fn once(&self, reported: &Reported, now: u64) -> CountOnce {
        match (self.settings.count, reported.signed) {
            (CountUnit::Reporters, _) => CountOnce::Reporter,
            (CountUnit::Reports, Some((signature, time))) if time >= now || time <= self.since + CLOCK => {
                CountOnce::Signed(signature)
            }
            (CountUnit::Reports, _) => CountOnce::Report,
        }
    }

    fn settle(&self, reported: &Reported, is_taken: bool) {
        if let Some((signed, _)) = &reported.signed {
            self.replays.lock().settle(signed, is_taken);
        }
    }

    /// Answers all waiting requests with one question to the ledger.
    async fn answer(&self, waiting: &[Waiting], answer: &mut Vec<u8>) {
        let digests: Vec<PyzorDigest> = waiting.iter().map(|waiting| waiting.digest).collect();
        let counts = digest_counts(&self.service, &digests).await.unwrap_or_default();
        for (at, Waiting { is_info, back, .. }) in waiting.iter().enumerate() {
            let reply = counts.get(at).map(|&[count, whitelisted]| {
                let counts = Counts { count: count.into(), whitelisted: whitelisted.into() };
                if *is_info { Reply::Info(counts) } else { Reply::Counts(counts) }
            });
            self.add(if reply.is_some() { Done::Asked } else { Done::TimedOut });
            self.send(answer, reply.ok_or(Denied::Unavailable), back);
        }
    }
}

/// The reporter of a request without an account. A local process can use any loopback address, so all of these are one.
fn network_reporter(ip: IpAddr) -> PyzorReporter {
    let is_here = ip.to_canonical().is_loopback();
    let network = if is_here { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { network_of(ip) };
    PyzorReporter::Network { network, is_here }
}

/// Logs the faults of the files.
pub(in crate::interfaces) fn log_faults(accounts: &Accounts) {
    accounts.faults().iter().for_each(|fault| log::warn!("{fault}"));
}

/// Answers until `end` is done.
pub(in crate::interfaces) async fn serve(context: Arc<Context>, end: impl Future<Output = ()>) {
    let mut rates = Rates::new(RATE);
    // One byte more than accepted, to detect longer ones.
    let (mut piece, mut answer, mut waiting) = (vec![0; MOST + 1], Vec::new(), Vec::new());
    let is_remote = context.service.asks.is_some();
    let (batch, questions) =
        (if is_remote { REMOTE_BATCH } else { BATCH }, Arc::new(Semaphore::new(REMOTE_QUESTIONS)));
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
        for _ in 0..batch {
            let (size, from) = match context.socket.try_recv_from(&mut piece) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // An earlier answer could not be delivered; later requests are not affected.
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
        if !waiting.is_empty() && is_remote {
            // Other requests do not wait for the server's answer. The semaphore is never closed.
            let permit = Arc::clone(&questions).acquire_owned().await;
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
