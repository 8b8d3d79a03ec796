// SPDX-License-Identifier: GPL-3.0-or-later
//! Checks at the Pyzor interface, and at `pyzord`.

use crate::load::daemon::{Daemon, cpu};
use crate::load::milter::Session;
use crate::load::within;
use crate::pyzord::Pyzord;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Reported digests, and digests to check: one in ten was reported.
const REPORTED: u64 = 2_000;
const ASKED: u64 = 10 * REPORTED;

/// The length of a measurement.
const WHILE: Duration = Duration::from_secs(4);

/// Clients at a time, each with a socket.
const CLIENTS: usize = 4;

/// After this time an answer counts as lost.
const LOST: Duration = Duration::from_secs(1);

/// The pattern of a client's requests.
#[derive(Clone, Copy)]
struct Way {
    /// Requests without an answer yet.
    open: usize,
    /// The pause after an answer before the next request.
    pause: Duration,
}

/// The maximum rate.
const ALL: Way = Way { open: 32, pause: Duration::ZERO };

/// A quarter of that in the queue, and so about a quarter of the wait.
const MANY: Way = Way { open: 8, ..ALL };

/// One after the other, some thousands a second by all clients.
const SOME: Way = Way { open: 1, pause: Duration::from_micros(300) };

/// Checks a second that come whether or not earlier ones were answered: the rate that the interface must handle on one processor.
const OFFERED: u32 = 100_000;

/// Requests of one socket that may still get an answer, by as many threads.
const THREADS: usize = 50_000;

/// The first of them: all have five digits.
const THREAD: usize = 10_000;

/// The server under test.
struct Asked<'a> {
    name: &'a str,
    pid: u32,
    at: &'a str,
}

pub(crate) fn run() {
    println!("pyzor: {CLIENTS} clients check digests, of which one in ten was reported");
    println!(
        "{:<40} {:>9} {:>9} {:>11} {:>8} {:>8} {:>6}",
        "by", "checks", "checks/s", "per CPU-s", "p50 ms", "p99 ms", "lost"
    );
    let daemon =
        Daemon::start("unix", "[interfaces.pyzor]\nlisten = \"127.0.0.1:0\"\ncount = \"reports\"\n", 1);
    let interface =
        Asked { name: "the interface", pid: daemon.pid(), at: daemon.interfaces.first().expect("interface") };
    report(interface.at);
    match Pyzord::start() {
        Ok(pyzord) => beside(&interface, &pyzord),
        Err(why) => {
            for (what, way) in [("all it takes", ALL), ("8 at a time of each", MANY), ("some", SOME)] {
                row(&interface, what, way);
            }
            println!("pyzord: SKIPPED: {why}");
        }
    }
    offered(&interface);
    let counts_mail = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (daemon, counts_mail) = (&daemon, &counts_mail);
            scope.spawn(move || mail(daemon, client, counts_mail));
        }
        row(&interface, "some, while it counts mail", SOME);
        counts_mail.store(false, Ordering::Relaxed);
    });
}

/// In turn, none always behind the other.
fn beside(interface: &Asked<'_>, pyzord: &Pyzord) {
    report(&pyzord.address);
    let pyzord = Asked { name: &pyzord.name, pid: pyzord.pid(), at: &pyzord.address };
    // More would be lost before a client gives up.
    let few = Way { open: 4, ..ALL };
    let turns = [(interface, ALL), (&pyzord, few), (&pyzord, few), (interface, ALL)];
    let [first, second, third, fourth] = turns.map(|(asked, way)| row(asked, "all it takes", way));
    println!("the interface to pyzord, checks per CPU-s: {:.0}", (first + fourth) / (second + third));
    row(interface, "8 at a time of each", MANY);
    for asked in [interface, &pyzord] {
        row(asked, "some", SOME);
    }
}

/// Sends mail that is counted through the milter's socket, below the maximum rate.
fn mail(daemon: &Daemon, client: usize, goes_on: &AtomicBool) {
    let mut session = Session::open(&daemon.address);
    let mut n = client << 32;
    while goes_on.load(Ordering::Relaxed) {
        session.message(n, 2_000);
        n += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn digest(n: u64) -> String {
    format!("{:040x}", u128::from(n + 1) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn request(op: &str, n: u64, thread: usize) -> Vec<u8> {
    let (digest, signature) = (digest(n), "0".repeat(40));
    let spec = if op == "report" { "Op-Spec: 20,3,60,3\n" } else { "" };
    let time =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    format!(
        "Op: {op}\nOp-Digest: {digest}\n{spec}Thread: {thread}\nPV: 2.1\nUser: anonymous\nTime: {time}\nSig: {signature}\n\n"
    )
    .into_bytes()
}

/// A client: a socket, and the unanswered requests with their times and digests.
struct Client {
    socket: UdpSocket,
    open: Vec<Option<(Instant, u64)>>,
    /// The thread id of the first request.
    thread: usize,
}

impl Client {
    fn new(at: &str, open: usize) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        socket.connect(at).expect("connect");
        socket.set_read_timeout(Some(LOST)).expect("timeout");
        Self { socket, open: vec![None; open], thread: 1024 }
    }

    fn send(&mut self, op: &str, n: u64, place: usize) {
        let request = request(op, n, self.thread + place);
        self.open[place] = Some((Instant::now(), n));
        self.socket.send(&request).expect("send");
    }

    /// Receives an answer, blocking if the socket does: its request, latency and digest. None if it was lost.
    fn receive(&mut self) -> Option<(usize, Duration, u64, bool)> {
        let mut answer = [0; 2048];
        let read = self.socket.recv(&mut answer).ok()?;
        let text = std::str::from_utf8(&answer[..read]).expect("text");
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        assert_eq!(field("Code: "), Some("200"), "{text}");
        let place =
            field("Thread: ").and_then(|thread| thread.parse::<usize>().ok()).expect("thread") - self.thread;
        let (at, n) = self.open[place].take().expect("asked");
        Some((place, at.elapsed(), n, field("Count: ").is_some_and(|count| count != "0")))
    }
}

/// Reports the known digests.
fn report(at: &str) {
    let mut client = Client::new(at, 1);
    for n in 0..REPORTED {
        client.send("report", n * 10, 0);
        client.receive().expect("answer");
    }
}

/// Checks for a while; returns the number of checks for each CPU second.
fn row(asked: &Asked<'_>, what: &str, way: Way) -> f64 {
    let (before, began) = (cpu(asked.pid), Instant::now());
    let lost = AtomicUsize::new(0);
    let check = |n| check(asked.at, way, 7919 * n, &lost);
    let mut latencies: Vec<Duration> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS as u64).map(|n| scope.spawn(move || check(n))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("client")).collect()
    });
    let times = (began.elapsed().as_secs_f64(), cpu(asked.pid) - before);
    print(&format!("{}, {what}", asked.name), &mut latencies, times, lost.into_inner());
    latencies.len() as f64 / times.1
}

/// Prints the results of checks: the number of answers, answers a second and a CPU second, the latency, and the number of lost ones.
fn print(what: &str, latencies: &mut [Duration], (wall, seconds): (f64, f64), lost: usize) {
    let checks = latencies.len() as f64;
    println!(
        "{what:<40} {checks:>9} {:>9.0} {:>11.0} {:>8.2} {:>8.2} {lost:>6}",
        checks / wall,
        checks / seconds,
        within(latencies, 0.5),
        within(latencies, 0.99),
    );
}

/// Checks at a constant rate, from one thread that never sleeps and so takes a whole processor. Latencies are from the scheduled time: if the
/// client or the interface was late, the wait counts.
fn offered(asked: &Asked<'_>) {
    let mut requests: Vec<Vec<u8>> = (0..ASKED).map(|n| request("check", n, THREAD)).collect();
    let at = String::from_utf8_lossy(&requests[0]).find("Thread: ").expect("thread") + "Thread: ".len();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::new(asked.at, THREADS)).collect();
    for client in &mut clients {
        client.thread = THREAD;
        client.socket.set_nonblocking(true).expect("nonblocking");
    }
    let (before, began) = (cpu(asked.pid), Instant::now());
    let (mut latencies, mut lost, mut sent) = (Vec::new(), 0, 0usize);
    let due = |sent: usize| began + WHILE.mul_f64(sent as f64 / (f64::from(OFFERED) * WHILE.as_secs_f64()));
    let all = (f64::from(OFFERED) * WHILE.as_secs_f64()) as usize;
    while sent < all || began.elapsed() < WHILE + LOST {
        if sent < all && Instant::now() >= due(sent) {
            let (place, n) = (sent / CLIENTS % THREADS, sent as u64 % ASKED);
            let request = &mut requests[usize::try_from(n).expect("few")];
            request[at..at + 5].copy_from_slice(format!("{}", THREAD + place).as_bytes());
            let client = &mut clients[sent % CLIENTS];
            lost += usize::from(client.open[place].replace((due(sent), n)).is_some());
            // If the buffer is full, it is lost.
            let _ = client.socket.send(request);
            sent += 1;
        }
        for client in &mut clients {
            if let Some((_, took, n, is_known)) = client.receive() {
                assert_eq!(is_known, n % 10 == 0, "of digest {n}");
                latencies.push(took);
            }
        }
        if sent == all && latencies.len() + lost >= all {
            break;
        }
    }
    let (wall, seconds) = (began.elapsed().as_secs_f64(), cpu(asked.pid) - before);
    lost += clients.iter().flat_map(|client| &client.open).filter(|open| open.is_some()).count();
    print(&format!("{}, {OFFERED} a second", asked.name), &mut latencies, (wall, seconds), lost);
    println!("at {OFFERED} a second the interface takes {:.0} % of a processor", 100.0 * seconds / wall);
}

fn check(at: &str, way: Way, first: u64, lost: &AtomicUsize) -> Vec<Duration> {
    let (mut client, mut latencies, mut next) = (Client::new(at, way.open), Vec::new(), first);
    let mut ask = |client: &mut Client, place| {
        next += 1;
        client.send("check", next % ASKED, place);
    };
    (0..way.open).for_each(|place| ask(&mut client, place));
    let began = Instant::now();
    while began.elapsed() < WHILE {
        if let Some((place, took, n, is_known)) = client.receive() {
            assert_eq!(is_known, n % 10 == 0, "of digest {n}");
            latencies.push(took);
            if !way.pause.is_zero() {
                std::thread::sleep(way.pause);
            }
            ask(&mut client, place);
        } else {
            let places: Vec<usize> = (0..way.open).filter(|&place| client.open[place].is_some()).collect();
            lost.fetch_add(places.len(), Ordering::Relaxed);
            // A late answer must not be taken for another one.
            client = Client::new(at, way.open);
            (0..way.open).for_each(|place| ask(&mut client, place));
        }
    }
    latencies
}
