//! A federation under fire: three servers, each the peer of both others, and six milters, of which four are own clients with two
//! upstream servers each, and two are partners; daemons are killed all the time, and connections are cut off, held up and
//! repeated. Halfway one of the partners is removed with its counts. In the end every holder counts every signature exactly as
//! often as own clients reported it, and as far as the partner that is left may.
//!
//! `make exactness` runs it with 200,000 reports and 50 kills; the test suite with fewer.

mod common;

use common::letters::letter;
use common::milter::{Mail, session};
use common::proxy::Proxy;
use common::random::Random;
use common::server::{Server, milter};
use common::{BULKMARK, Daemon, Site, status, wait_longer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
const MILTERS: usize = 6;

/// The milters that are partners, and of these the one that is removed.
const PARTNERS: std::ops::Range<usize> = 4..6;
const REMOVED: usize = 5;

/// What a partner brings to a signature at most.
const INFLUENCE: usize = 5;

/// Different messages; so few that their counts are exact in filters for a million.
const LETTERS: usize = 300;

/// Messages that a milter gets between two chances to be killed.
const BURST: usize = 5;

/// How long everything may take to heal.
const HEALING: Duration = Duration::from_secs(120);

fn from_environment(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// The signatures of all letters.
fn signatures(site: &Site) -> Vec<String> {
    let files: Vec<_> = (0..LETTERS)
        .map(|n| {
            let path = site.path(&format!("{n}.eml"));
            std::fs::write(&path, letter(n)).unwrap();
            path
        })
        .collect();
    let output = Command::new(BULKMARK).arg("signature").args(files).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let body = text.lines().filter(|line| line.contains("\tbody\t"));
    let signatures: Vec<_> = body.map(|line| line.rsplit('\t').next().unwrap().to_owned()).collect();
    assert_eq!(signatures.len(), LETTERS);
    signatures
}

/// What a server counts.
fn counts(server: &Server, signatures: &[String]) -> Option<Vec<usize>> {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).ok()?;
    let mut reader = BufReader::new(&stream);
    let mut counts = Vec::new();
    for signature in signatures {
        write!(&stream, "GET /v1/check?signature={signature} HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let answer: serde_json::Value = serde_json::from_slice(&body).ok()?;
        counts.push(usize::try_from(answer["count"].as_u64()?).unwrap());
    }
    Some(counts)
}

#[test]
fn every_holder_counts_exactly() {
    let mut servers = [(); SERVERS]
        .map(|()| Server::new("anonymous-reading = true\nlimits = { checks-per-minute = 10000000 }"));
    let proxies: Vec<_> =
        servers.iter().zip(1..).map(|(server, seed)| Proxy::new(server.port, seed)).collect();
    let by_proxy = |i: usize| format!("http://127.0.0.1:{}", proxies[i].port);
    for i in 0..SERVERS {
        let peers = [(i + 1) % SERVERS, (i + 2) % SERVERS]
            .map(|peer| servers[peer].entry_by(&by_proxy(peer), &format!("server{i}"), "peer"));
        servers[i].extra += &format!("\npeer = [{}]", peers.join(", "));
    }
    let milters: Vec<_> = (0..MILTERS)
        .map(|i| {
            let entry = |at: usize| {
                servers[at % SERVERS].entry_by(&by_proxy(at % SERVERS), &format!("mx{i}"), "report")
            };
            match PARTNERS.contains(&i) {
                false => milter(&[entry(i), entry(i + 1)]),
                // The limit is one at each server.
                true => {
                    let server = &servers[i % SERVERS];
                    let token = server.client(&[
                        "add",
                        "--partner",
                        &format!("mx{i}"),
                        "--quota",
                        "1",
                        "--rate",
                        "1000000",
                    ]);
                    std::fs::write(server.site.path(&format!("mx{i}")), token).unwrap();
                    let token = server.site.path(&format!("mx{i}"));
                    let url = by_proxy(i % SERVERS);
                    milter(&[format!("{{ url = \"{url}\", token-file = \"{}\" }}", token.display())])
                }
            }
        })
        .collect();
    let signatures = signatures(&milters[0]);
    let running_servers: Vec<_> = servers.iter().map(|server| Mutex::new(Some(server.start()))).collect();
    let running_milters: Vec<_> = milters.iter().map(|site| Mutex::new(Some(site.start()))).collect();

    let began = Instant::now();
    let (expected, killed) = fire(&servers, &milters, &running_servers, &running_milters);
    proxies.iter().for_each(Proxy::behave);
    let harm = |what: fn(&common::proxy::Harm) -> &AtomicUsize| -> usize {
        proxies.iter().map(|proxy| what(&proxy.harm).load(Ordering::Relaxed)).sum()
    };
    println!(
        "{} reports in {:.0} s, {} kills; connections cut: {}, delayed: {}, repeated: {}",
        expected.iter().sum::<usize>(),
        began.elapsed().as_secs_f64(),
        killed,
        harm(|harm| &harm.cut),
        harm(|harm| &harm.delayed),
        harm(|harm| &harm.repeated)
    );

    wait_for_exactness(&servers, &milters[..REMOVED], &signatures, &expected);
    // Not only those signatures: all cells of all eight.
    for running in running_milters.iter().chain(&running_servers) {
        assert!(running.lock().unwrap().take().unwrap().terminate().success());
    }
    verify(servers.iter().map(|server| &server.site).chain(&milters[..REMOVED]));
}

/// Sends the reports, and kills daemons meanwhile. Returns how often each letter is to be counted, and the number of kills.
fn fire(
    servers: &[Server],
    milters: &[Site],
    running_servers: &[Mutex<Option<Daemon>>],
    running_milters: &[Mutex<Option<Daemon>>],
) -> (Vec<usize>, usize) {
    let reports = from_environment("BULKMARK_REPORTS", 6000);
    let kills = from_environment("BULKMARK_KILLS", 12);
    let pause = Duration::from_millis(from_environment("BULKMARK_KILL_PAUSE", 300) as u64);
    let reported: Vec<Vec<_>> =
        (0..MILTERS).map(|_| (0..LETTERS).map(|_| AtomicUsize::new(0)).collect()).collect();
    let (left, killed) = (AtomicUsize::new(reports), AtomicUsize::new(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let senders: Vec<_> = running_milters
            .iter()
            .zip(&reported)
            .zip(100..)
            .map(|((running, reported), seed)| {
                let (left, killed) = (&left, &killed);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    // To the end of the reports, and of the kills, so that none of the two is without the other.
                    while left.load(Ordering::Relaxed) > 0 || killed.load(Ordering::Relaxed) < kills {
                        burst(running.lock().unwrap().as_ref().unwrap(), &mut random, reported, left);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut random = Random::new(7);
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(pause);
                let victim = random.below(SERVERS + MILTERS);
                match victim.checked_sub(SERVERS) {
                    None => again(&running_servers[victim], || servers[victim].start()),
                    Some(i) => again(&running_milters[i], || milters[i].start()),
                }
                if killed.fetch_add(1, Ordering::Relaxed) == kills / 2 {
                    servers[REMOVED % SERVERS].client(&["remove", "--with-counts", &format!("mx{REMOVED}")]);
                }
            }
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let times = |milter: usize, letter: usize| reported[milter][letter].load(Ordering::Relaxed);
    let expected = |letter| {
        let own: usize = (0..PARTNERS.start).map(|milter| times(milter, letter)).sum();
        let partners = PARTNERS.filter(|&milter| milter != REMOVED);
        own + partners.map(|milter| times(milter, letter).min(INFLUENCE)).sum::<usize>()
    };
    ((0..LETTERS).map(expected).collect(), killed.into_inner())
}

/// Waits until all servers count exactly, and all milters know what they know.
fn wait_for_exactness(servers: &[Server], milters: &[Site], signatures: &[String], expected: &[usize]) {
    let healing = Instant::now();
    for server in servers {
        wait_longer(HEALING, "a server", || {
            let found = counts(server, signatures).ok_or("it does not answer")?;
            let wrong: Vec<_> =
                found.iter().zip(expected).filter(|(found, expected)| found != expected).collect();
            if wrong.is_empty() { Ok(()) } else { Err(format!("counted and expected: {wrong:?}")) }
        });
    }
    for site in milters {
        wait_longer(HEALING, "a milter", || {
            let status = status(site);
            let good = status["ledger"]["spool"] == 0 && status["links"][0]["behind"] == 0;
            if good { Ok(()) } else { Err(status.to_string()) }
        });
    }
    println!("all counts were exact {:.1} s after the last report", healing.elapsed().as_secs_f64());
}

/// Compares the ledgers of these sites.
fn verify<'a>(sites: impl Iterator<Item = &'a Site>) {
    let output = Command::new(BULKMARK)
        .args(["ledger", "verify"])
        .args(sites.map(|site| site.path("state")))
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    print!("{text}");
    assert!(output.status.success(), "{text}");
}

/// Messages of random letters to random numbers of recipients, each of which is one report.
fn burst(milter: &Daemon, random: &mut Random, reported: &[AtomicUsize], left: &AtomicUsize) {
    let mut client = session(milter);
    for _ in 0..BURST {
        let times = 1 + random.below(20);
        let taken =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(times)));
        let times = times.min(taken.unwrap());
        if times == 0 {
            return;
        }
        let n = random.below(LETTERS);
        let mut mail = Mail::raw(&letter(n));
        mail.recipients = (0..times).map(|i| format!("recipient{i}@example.net")).collect();
        client.message(&mail);
        reported[n].fetch_add(times, Ordering::Relaxed);
    }
}

/// Kills a daemon and starts it again.
fn again(running: &Mutex<Option<Daemon>>, start: impl FnOnce() -> Daemon) {
    let mut running = running.lock().unwrap();
    running.take().unwrap().kill();
    *running = Some(start());
}
