// SPDX-License-Identifier: GPL-3.0-or-later
//! A federation under fire: three servers, each a peer of both others, and six milters. Four of them are own clients with two upstream
//! servers each, two are partners. Daemons are killed all the time; connections are cut off, delayed and repeated. Halfway one partner is
//! removed with its counts. In the end every holder counts every signature exactly: all reports of own clients, and those of the remaining
//! partner within its influence. The same holds for user reports and their withdrawals.
//!
//! `make exactness` runs it with 200,000 reports and 50 kills; the test suite with fewer.

use bulkmark_testing::ends::Ends;
use bulkmark_testing::holders::{body, body_of, counts, verify};
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::proxy::Proxy;
use bulkmark_testing::random::Random;
use bulkmark_testing::reports::report;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, crlf, status, wait_until};
use bulkmark_types::{FederationKey, Signature, UNIT, nomination, revocation};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
const MILTERS: usize = 6;

/// The milters that are partners; one of them is removed.
const PARTNERS: std::ops::Range<usize> = 4..6;
const REMOVED: usize = 5;

/// The influence of a partner.
const INFLUENCE: usize = 5;

/// The number of different messages; small enough for exact counts in filters for a million.
const LETTERS: usize = 300;

/// Messages that a milter gets between two chances to be killed.
const BURST: usize = 5;

/// The users of a milter; about one message in `SPOKEN` gets a user report.
const USERS: usize = 4;
const SPOKEN: usize = 6;

/// Letters that users report as spam and withdraw. The notes have one signature each; users report them for and against, so that some
/// revocations meet others' nominations.
const CALLED: usize = LETTERS / 4;
const NOTES: usize = 8;

/// The most reports of one user for one message, as they alternate between spam and not spam.
const MOST_WORDS: usize = 8;

/// Every user's report has full weight.
const USER_REPORTS: &str = "\n[user-reports]\ntrust = { new-reporter = 1.0, max-newcomers = 1000.0 }\n";

fn from_environment(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

#[test]
fn every_holder_counts_exactly() {
    let mut servers = [(); SERVERS].map(|()| Server::new(""));
    let proxies: Vec<_> =
        servers.iter().zip(1..).map(|(server, seed)| Proxy::new(server.port, seed)).collect();
    let by_proxy = |i: usize| format!("http://127.0.0.1:{}", proxies[i].port);
    for i in 0..SERVERS {
        let peers = [(i + 1) % SERVERS, (i + 2) % SERVERS]
            .map(|peer| servers[peer].entry_by(&by_proxy(peer), &format!("server{i}"), "peer"));
        servers[i].extra += &format!("\npeer = [{}]", peers.join(", "));
    }
    let mut milters: Vec<_> = (0..MILTERS)
        .map(|i| {
            let entry = |at: usize| {
                servers[at % SERVERS].entry_by(&by_proxy(at % SERVERS), &format!("mx{i}"), "report")
            };
            match PARTNERS.contains(&i) {
                false => milter(&[entry(i), entry(i + 1)]),
                // The limit at each server is one.
                true => milter(&[partner(&servers[i % SERVERS], i, &by_proxy(i % SERVERS))]),
            }
        })
        .collect();
    milters.iter_mut().for_each(|site| site.extra += USER_REPORTS);
    let signatures = what_is_counted();
    let running_servers: Vec<_> = servers.iter().map(|server| Mutex::new(Some(server.start()))).collect();
    let running_milters: Vec<_> = milters.iter().map(|site| Mutex::new(Some(site.start()))).collect();

    let began = Instant::now();
    let (expected, against, killed) = fire(&servers, &milters, &running_servers, &running_milters);
    proxies.iter().for_each(Proxy::behave);
    let harm = |what: fn(&bulkmark_testing::proxy::Harm) -> &AtomicUsize| -> usize {
        proxies.iter().map(|proxy| what(&proxy.harm).load(Ordering::Relaxed)).sum()
    };
    println!(
        "{} reports and {} of people ({against} of them against others) in {:.0} s, {} kills; connections cut: {}, delayed: {}, repeated: {}",
        expected[..LETTERS].iter().sum::<usize>(),
        expected[LETTERS..].iter().sum::<usize>().div_ceil(UNIT as usize),
        began.elapsed().as_secs_f64(),
        killed,
        harm(|harm| &harm.cut),
        harm(|harm| &harm.delayed),
        harm(|harm| &harm.repeated)
    );
    assert!(against > 0, "nobody revoked what others nominated");

    wait_for_exactness(&servers, &milters[..REMOVED], &signatures, &expected);
    // Compares all cells of all eight ledgers, not only those of these signatures.
    for running in running_milters.iter().chain(&running_servers) {
        assert!(running.lock().unwrap().take().unwrap().terminate().success());
    }
    let sites = servers.iter().map(|server| &server.site).chain(&milters[..REMOVED]);
    print!("{}", verify(sites).unwrap_or_else(|difference| panic!("{difference}")));
}

/// The `upstream` entry of a partner's milter, with this address.
fn partner(server: &Server, i: usize, url: &str) -> String {
    let name = format!("mx{i}");
    let token = server.client(&["add", "--partner", &name, "--quota", "1", "--rate", "1000000"]);
    let file = server.site.path(&name);
    std::fs::write(&file, token).unwrap();
    format!("{{ url = \"{url}\", token-file = \"{}\" }}", file.display())
}

/// The signatures of the letters, and those of user reports for and against each message.
fn what_is_counted() -> Vec<Signature> {
    let bodies: Vec<_> = (0..LETTERS).map(body_of).collect();
    let spoken = (0..LETTERS).map(|n| body(&spoken(n)));
    let nominations = spoken.map(|of| nomination(&FederationKey::public(), of));
    let said: Vec<_> = nominations.clone().chain(nominations.map(revocation)).collect();
    [bodies, said].concat()
}

/// The n-th message that users report: a letter or a note.
fn spoken(n: usize) -> Vec<u8> {
    if n < CALLED { letter(n) } else { note(n) }
}

/// A message that is too short to resemble another.
fn note(n: usize) -> Vec<u8> {
    crlf(&format!("Subject: x\n\nnote{n} one{n} two{n} three{n} four{n} five{n} six{n} seven{n}\n"))
}

/// Sends the reports and kills daemons meanwhile. Returns the expected count of each letter, the number of revocations against others'
/// nominations, and the number of kills.
fn fire(
    servers: &[Server],
    milters: &[Site],
    running_servers: &[Mutex<Option<Daemon>>],
    running_milters: &[Mutex<Option<Daemon>>],
) -> (Vec<usize>, usize, usize) {
    let reports = from_environment("BULKMARK_REPORTS", 6000);
    let kills = from_environment("BULKMARK_KILLS", 12);
    let pause = Duration::from_millis(from_environment("BULKMARK_KILL_PAUSE", 300) as u64);
    let reported: Vec<Vec<_>> =
        (0..MILTERS).map(|_| (0..3 * LETTERS).map(|_| AtomicUsize::new(0)).collect()).collect();
    let (left, killed, against) = (AtomicUsize::new(reports), AtomicUsize::new(0), AtomicUsize::new(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let senders: Vec<_> = running_milters
            .iter()
            .zip(&reported)
            .zip(milters)
            .zip(100..)
            .map(|(((running, reported), site), seed)| {
                let (left, killed, against, done) = (&left, &killed, &against, &done);
                scope.spawn(move || {
                    let (mut random, mut words) = (Random::new(seed), HashMap::new());
                    let mut opinions = HashMap::new();
                    // Runs until both the reports and the kills are done, so that neither happens without the other.
                    let is_enough =
                        || left.load(Ordering::Relaxed) == 0 && killed.load(Ordering::Relaxed) >= kills;
                    while !is_enough() && !done.load(Ordering::Relaxed) {
                        let running = running.lock().unwrap();
                        burst(running.as_ref().unwrap(), &mut random, reported, left);
                        match random.below(2 * SPOKEN) {
                            0 => report_again(site, &mut random, &mut words, reported),
                            1 => contend(site, &mut random, &mut opinions, (reported, against)),
                            _ => (),
                        }
                        drop(running);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let (_end, mut random) = (Ends(&done), Random::new(7));
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
        let _end = Ends(&done);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
    let times = |milter: usize, letter: usize| reported[milter][letter].load(Ordering::Relaxed);
    let expected = |letter| {
        let own: usize = (0..PARTNERS.start).map(|milter| times(milter, letter)).sum();
        let partners = PARTNERS.filter(|&milter| milter != REMOVED);
        own + partners.map(|milter| times(milter, letter).min(INFLUENCE)).sum::<usize>()
    };
    ((0..3 * LETTERS).map(expected).collect(), against.into_inner(), killed.into_inner())
}

/// Waits until all servers count exactly and all milters have the servers' counts.
fn wait_for_exactness(servers: &[Server], milters: &[Site], signatures: &[Signature], expected: &[usize]) {
    let healing = Instant::now();
    for server in servers {
        wait_until("a server", || {
            let found = counts(&server.site.path("server.sock"), signatures).map_err(|e| e.to_string())?;
            let wrong: Vec<_> = found
                .iter()
                .zip(expected)
                .filter(|&(&found, &expected)| found as usize != expected)
                .collect();
            if wrong.is_empty() { Ok(()) } else { Err(format!("counted and expected: {wrong:?}")) }
        });
    }
    for site in milters {
        wait_until("a milter", || {
            let status = status(site);
            let good = status["ledger"]["spool"] == 0 && status["links"][0]["behind"] == 0;
            if good { Ok(()) } else { Err(status.to_string()) }
        });
    }
    println!("all counts were exact {:.1} s after the last report", healing.elapsed().as_secs_f64());
}

/// Sends random letters to random numbers of recipients; each recipient is one report.
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

/// A user reports a letter as spam, repeats that, or withdraws it. Adds to the expected counts of nominations and revocations in
/// `reported`.
fn report_again(
    site: &Site,
    random: &mut Random,
    words: &mut HashMap<(usize, usize), bool>,
    reported: &[AtomicUsize],
) {
    let (user, n) = (random.below(USERS), random.below(CALLED));
    let (back, field) = match words.get(&(user, n)) {
        None => (false, "counted"),
        Some(false) if random.below(2) == 0 => (true, "taken-back"),
        Some(_) => (random.below(2) == 0, "known"),
    };
    if words.get(&(user, n)) == Some(&true) && !back || field == "known" && back {
        // This would be a new report.
        return;
    }
    let user_name = user.to_string();
    let told = [if back { &["forget"][..] } else { &[] }, &["--user", &user_name]].concat();
    let answer = report(site, &told, &letter(n));
    // Signatures that letters share may already be known or taken back; the body's signature belongs to this letter only.
    let is_so = answer[field].as_u64().is_some_and(|signatures| signatures > 0);
    assert!(answer["refused"].is_null() && is_so, "{field}: {answer}");
    if field != "known" {
        let of = if back { 2 * LETTERS } else { LETTERS };
        reported[of + n].fetch_add(UNIT as usize, Ordering::Relaxed);
        words.insert((user, n), back);
    }
}

/// Kills a daemon and starts it again.
fn again(running: &Mutex<Option<Daemon>>, start: impl FnOnce() -> Daemon) {
    let mut running = running.lock().unwrap();
    running.take().unwrap().kill();
    *running = Some(start());
}

/// A user's opinion of a note: the weight that remains, in units, and the number of reports.
type Opinion = (i64, usize);

/// A user reports a note as spam or as not spam, whatever others report. Adds the weight in the milter's answer to the note's nomination or
/// revocation in `reported`; a revocation cannot exceed the nominations of others.
fn contend(
    site: &Site,
    random: &mut Random,
    opinions: &mut HashMap<(usize, usize), Opinion>,
    (reported, against): (&[AtomicUsize], &AtomicUsize),
) {
    let (user, n, is_spam) = (random.below(USERS), CALLED + random.below(NOTES), random.below(3) > 0);
    let (stands, words) = opinions.entry((user, n)).or_default();
    let user_name = user.to_string();
    let side = if is_spam { "--spam" } else { "--not-spam" };
    let answer = report(site, &["--user", &user_name, side], &note(n));
    assert!(answer["refused"].is_null() && answer["signatures"] == 1, "{answer}");
    let of = |field: &str| answer[field] == 1;
    let units = answer["weight"].as_f64().unwrap() * f64::from(UNIT);
    let sign = if is_spam { 1 } else { -1 };
    match stands.signum() * sign {
        1 => return assert!(of("known"), "{answer}"),
        _ if *words == MOST_WORDS => return assert!(of("too-often"), "{answer}"),
        -1 => assert!(of("taken-back") && units == stands.abs() as f64, "{stands}: {answer}"),
        // A revocation without nominations has no weight.
        _ if !is_spam && of("weightless") => return,
        _ => assert!(of("counted") && (1.0..=f64::from(UNIT)).contains(&units), "{answer}"),
    }
    if !is_spam && *stands == 0 {
        against.fetch_add(1, Ordering::Relaxed);
    }
    *stands = if *stands == 0 { sign * units as i64 } else { 0 };
    *words += 1;
    let of = if is_spam { LETTERS } else { 2 * LETTERS };
    reported[of + n].fetch_add(units as usize, Ordering::Relaxed);
}
