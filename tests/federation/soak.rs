// SPDX-License-Identifier: GPL-3.0-or-later
//! Hours of a federation: two servers that are peers, and four milters at a steady rate, while daemons are killed and restarted and disks
//! fill; halfway every program is replaced by a newer one. Memory, descriptors, files and disk space of each daemon must not grow, and in
//! the end all holders count exactly.
//!
//! `make soak` runs it for two hours; the test suite leaves it out.

use bulkmark_testing::ends::Ends;
use bulkmark_testing::holders::{body_of, counts, verify};
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::process::resident;
use bulkmark_testing::random::Random;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, program, status, wait_until};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SERVERS: usize = 2;
const MILTERS: usize = 4;

/// The connections of a mail server to its milter.
const SESSIONS: usize = 4;

/// The number of different messages; small enough for exact counts in filters for a million, and large enough that none comes near
/// a cell's maximum.
const LETTERS: usize = 5000;

/// The number of events during the run, and of measurements.
const EVENTS: u32 = 40;
const SAMPLES: u32 = 120;

/// The growth from the second quarter to the last that passes as noise: a fraction, and an absolute allowance in kilobytes or pieces.
const NOISE: f64 = 0.2;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A daemon of the federation.
struct Member {
    name: String,
    site: Site,
    /// Its command and configuration.
    command: &'static str,
    running: RwLock<Option<Daemon>>,
}

impl Member {
    fn start(&self, program: &str) -> Daemon {
        let config = self.site.path(&format!("{}.toml", self.command));
        self.site.spawn_by(Command::new(program).args([self.command, "--config"]).arg(config)).listening()
    }

    /// Stops it, by SIGKILL or by a signal that it can handle, and starts a program in its place.
    fn again(&self, kill: bool, program: &str) {
        let mut running = self.running.write().unwrap();
        let daemon = running.take().unwrap();
        if kill {
            daemon.kill()
        } else {
            self.ends(daemon);
        }
        *running = Some(self.start(program));
    }

    /// Ends it by a signal that it can handle; if it fails, its last lines say why.
    fn ends(&self, daemon: Daemon) {
        let log = daemon.log.clone();
        let status = daemon.terminate();
        let lines = log.lines();
        let last = lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n");
        assert!(status.success(), "{}: {status}; its last lines:\n{last}", self.name);
    }

    fn sample(&self) -> Option<Sample> {
        let running = self.running.read().unwrap();
        let daemon = running.as_ref()?;
        let files = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).ok()?.count();
        let state: Vec<_> = fs::read_dir(self.site.path("state")).ok()?.flatten().collect();
        let sizes =
            state.iter().filter(|file| file.file_name() != FILL).filter_map(|file| file.metadata().ok());
        let kilobytes = sizes.map(|file| file.blocks() / 2).sum::<u64>();
        Some([resident(daemon), files as u64, state.len() as u64, kilobytes])
    }
}

/// Resident kilobytes, descriptors, files in the state directory, their kilobytes.
type Sample = [u64; 4];
const NAMES: [&str; 4] = ["memory_kb", "descriptors", "files", "disk_kb"];
const ALLOWED: [f64; 4] = [16_384.0, 16.0, 4.0, 32_768.0];

/// Servers with peers keep all updates for days (docs/sizing.md): of each message, so many bytes at most where an update has few.
const KEPT_OF_A_MESSAGE: f64 = 100.0;

/// The file that fills a disk.
const FILL: &str = "fill";

#[test]
#[ignore = "takes hours: make soak"]
fn nothing_grows_and_every_count_is_exact() {
    let duration = Duration::from_secs(from_environment("SOAK_SECONDS", 7200));
    let rate = from_environment("SOAK_RATE", 200);
    let new = program();
    let old = std::env::var("SOAK_FROM").unwrap_or_else(|_| new.to_owned());
    let (servers, milters, mounts) = federation();
    let members: Vec<_> = servers.iter().chain(&milters).collect();
    for member in &members {
        *member.running.write().unwrap() = Some(member.start(&old));
    }
    println!(
        "{MILTERS} milters at {rate} messages a second each, for {} s; from {old} to {new}",
        duration.as_secs()
    );
    let reported: Vec<_> = (0..LETTERS).map(|_| AtomicUsize::new(0)).collect();
    let done = AtomicBool::new(false);
    let samples = std::thread::scope(|scope| {
        for (milter, seed) in milters.iter().flat_map(|milter| [milter; SESSIONS]).zip(100..) {
            let (done, reported) = (&done, &reported);
            scope.spawn(move || send(milter, rate, seed, done, reported));
        }
        let measuring = scope.spawn(|| measure(&members, duration, &done));
        let end = Ends(&done);
        trouble(&members, duration, &mounts, [&old, new]);
        drop(end);
        measuring.join().unwrap()
    });
    write_curves(&members, &samples);
    let expected: Vec<_> = reported.iter().map(|times| times.load(Relaxed)).collect();
    let (sum, seconds) = (expected.iter().sum::<usize>(), duration.as_secs_f64());
    println!("{sum} messages were counted, {:.0} a second and milter", sum as f64 / seconds / MILTERS as f64);
    exact(&servers, &milters, &expected);
    for member in &members {
        member.ends(member.running.write().unwrap().take().unwrap());
    }
    print!("{}", verify(members.iter().map(|member| &member.site)).unwrap_or_else(|e| panic!("{e}")));
    let grown = growth(&members, &samples, sum as u64);
    assert!(grown.is_empty(), "{}", grown.join("\n"));
}

/// Servers and milters, not yet started, and the small disks of the first of each.
fn federation() -> (Vec<Member>, Vec<Member>, Vec<(usize, Mount)>) {
    let servers = Server::peers("");
    let sites: Vec<_> = (0..MILTERS)
        .map(|i| {
            let entry = |at: usize| servers[at % SERVERS].entry(&format!("mx{i}"), "report");
            let mut site = milter(&[entry(i), entry(i + 1)]);
            site.extra += "\n[log]\ntarget = \"stderr\"\nmessages = \"none\"\n";
            site.config();
            site
        })
        .collect();
    servers.iter().for_each(|server| drop(server.config()));
    let disk = |site: &Site| Mount::new(&site.path("state"), "size=1g");
    // A mount would hide their clients and tokens, which are in the state directory already, so they move.
    let mounts = [(0, &servers[0].site), (SERVERS, &sites[0])].into_iter().filter_map(|(member, site)| {
        let kept: Vec<_> = fs::read_dir(site.path("state"))
            .map(|files| {
                files.flatten().map(|file| (file.file_name(), fs::read(file.path()).unwrap())).collect()
            })
            .unwrap_or_default();
        let mount = disk(site)?;
        kept.iter().for_each(|(name, bytes)| fs::write(site.path("state").join(name), bytes).unwrap());
        Some((member, mount))
    });
    let mounts = mounts.collect();
    let member = |command: &'static str| {
        move |(i, site)| Member { name: format!("{command}{i}"), site, command, running: RwLock::new(None) }
    };
    let servers = servers.map(|server| server.site).into_iter().enumerate().map(member("server")).collect();
    (servers, sites.into_iter().enumerate().map(member("milter")).collect(), mounts)
}

/// Sends letters to a milter at its share of the rate, and counts each that was reported. A daemon that is replaced first finishes its
/// message, so the outcome of each message is known.
fn send(milter: &Member, rate: u64, seed: u64, done: &AtomicBool, reported: &[AtomicUsize]) {
    let mut random = Random::new(seed);
    let each = Duration::from_secs_f64(SESSIONS as f64 / rate as f64);
    let mut next = Instant::now();
    while !done.load(Relaxed) {
        let running = milter.running.read().unwrap();
        let mut client = session(running.as_ref().unwrap());
        // Few per connection, so that others have their turn.
        for _ in 0..4 {
            let n = random.below(LETTERS);
            let answer = client.message(&Mail::raw(&letter(n)));
            if answer.count().is_some() {
                reported[n].fetch_add(1, Relaxed);
            } else {
                assert!(answer.header().starts_with("unknown; reason=ledger"), "{}", answer.header());
            }
        }
        drop(client);
        drop(running);
        // If it falls behind the rate, it does not catch up in a burst.
        next = (next + 4 * each).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Kills, restarts and fills disks, one after the other, and replaces all programs halfway.
fn trouble(members: &[&Member], duration: Duration, mounts: &[(usize, Mount)], [old, new]: [&str; 2]) {
    let (began, mut random) = (Instant::now(), Random::new(7));
    let mut done = [0; 3];
    for event in 1..=EVENTS {
        let at = duration * event / (EVENTS + 1);
        std::thread::sleep((began + at).saturating_duration_since(Instant::now()));
        let current = if event > EVENTS / 2 { new } else { old };
        match event % 4 {
            _ if event == EVENTS / 2 => {
                // Servers first, as docs/upgrading.md advises.
                members.iter().for_each(|member| member.again(false, new));
                println!("{:.0} s: all programs were replaced", began.elapsed().as_secs_f64());
            }
            0 if !mounts.is_empty() => {
                let (member, _) = mounts[random.below(mounts.len())];
                fill(&members[member].site.path("state"));
                done[2] += 1;
            }
            1 => {
                members[random.below(members.len())].again(false, current);
                done[1] += 1;
            }
            _ => {
                members[random.below(members.len())].again(true, current);
                done[0] += 1;
            }
        }
    }
    std::thread::sleep((began + duration).saturating_duration_since(Instant::now()));
    println!("{} kills, {} restarts, {} times a full disk", done[0], done[1], done[2]);
}

/// Fills the disk for some seconds.
fn fill(state: &Path) {
    let (path, block) = (state.join(FILL), vec![0; 1 << 20]);
    let mut file = fs::File::create(&path).unwrap();
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    std::thread::sleep(Duration::from_secs(5));
    fs::remove_file(path).unwrap();
}

/// Measures all daemons at regular intervals. A daemon that is down is measured the next time.
fn measure(members: &[&Member], duration: Duration, done: &AtomicBool) -> Vec<Vec<Option<Sample>>> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    while !done.load(Relaxed) {
        samples.push(members.iter().map(|member| member.sample()).collect());
        let next = began + duration * samples.len() as u32 / SAMPLES;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    samples
}

/// Writes the curves as a table for a spreadsheet, with a column for each daemon.
fn write_curves(members: &[&Member], samples: &[Vec<Option<Sample>>]) {
    let Ok(path) = std::env::var("SOAK_CURVES") else { return };
    let mut text = "sample".to_owned();
    for (member, name) in members.iter().flat_map(|member| NAMES.map(|name| (member, name))) {
        write!(text, "\t{}_{name}", member.name).unwrap();
    }
    for (n, row) in samples.iter().enumerate() {
        write!(text, "\n{n}").unwrap();
        for value in row.iter().flat_map(|sample| sample.map_or([None; 4], |values| values.map(Some))) {
            write!(text, "\t{}", value.map_or_else(String::new, |value| value.to_string())).unwrap();
        }
    }
    fs::write(path, text + "\n").unwrap();
}

/// The measures whose median grew from the second quarter to the last, by more than noise and what servers keep of the messages between.
fn growth(members: &[&Member], samples: &[Vec<Option<Sample>>], messages: u64) -> Vec<String> {
    let quarter = samples.len() / 4;
    let kept = KEPT_OF_A_MESSAGE / 1024.0 * (messages / 2) as f64;
    let mut grown = Vec::new();
    for (i, member) in members.iter().enumerate() {
        for (measure, name) in NAMES.iter().enumerate() {
            let median = |range: &[Vec<Option<Sample>>]| {
                let mut values: Vec<_> = range.iter().filter_map(|row| Some(row[i]?[measure])).collect();
                values.sort_unstable();
                values[values.len() / 2]
            };
            let (before, after) = (median(&samples[quarter..2 * quarter]), median(&samples[3 * quarter..]));
            println!("{} {name}: {before}, in the end {after}", member.name);
            let kept = if *name == "disk_kb" && member.command == "server" { kept } else { 0.0 };
            if after as f64 > before as f64 * (1.0 + NOISE) + ALLOWED[measure] + kept {
                grown.push(format!("{} {name} grew from {before} to {after}", member.name));
            }
        }
    }
    grown
}

/// Waits until both servers count exactly, and every milter has sent and received all.
fn exact(servers: &[Member], milters: &[Member], expected: &[usize]) {
    let (began, signatures) = (Instant::now(), (0..LETTERS).map(body_of).collect::<Vec<_>>());
    for server in servers {
        wait_until(&server.name, || {
            let found = counts(&server.site.path("server.sock"), &signatures).map_err(|e| e.to_string())?;
            let wrong: Vec<_> = found
                .iter()
                .zip(expected)
                .filter(|&(&found, &expected)| found as usize != expected)
                .collect();
            if wrong.is_empty() {
                Ok(())
            } else {
                Err(format!("{} wrong: {:?}", wrong.len(), &wrong[..wrong.len().min(9)]))
            }
        });
    }
    for member in milters {
        wait_until(&member.name, || {
            let status = status(&member.site);
            let good = status["ledger"]["spool"] == 0 && status["links"][0]["behind"] == 0;
            if good { Ok(()) } else { Err(status.to_string()) }
        });
    }
    println!("all counts were exact {:.1} s after the last message", began.elapsed().as_secs_f64());
}
