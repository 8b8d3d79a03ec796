// SPDX-License-Identifier: GPL-3.0-or-later
//! The accounts of the Pyzor interface: signatures, changes that a reload applies, and errors about invalid files.

use crate::pyzor::{DIGEST, address, answered, counts, files, open, socket};
use bulkmark_testing::{Site, program};
use sha1::{Digest as _, Sha1};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::SystemTime;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// A request signed by a user with this key at this time.
fn signed(op: &str, who: (&str, &str), time: u64, thread: u32) -> String {
    signed_of(op, &[DIGEST], who, time, thread)
}

/// The same for these digests.
fn signed_of(op: &str, digests: &[&str], (user, key): (&str, &str), time: u64, thread: u32) -> String {
    let digests: String = digests.iter().map(|digest| format!("Op-Digest: {digest}\n")).collect();
    let text = format!("Op: {op}\n{digests}Thread: {thread}\nPV: 2.1\nUser: {user}\nTime: {time}");
    let key = hex(&Sha1::digest(format!("{user}:{key}")));
    let mut hash = Sha1::new();
    hash.update(Sha1::digest(&text));
    hash.update(format!(":{time}:{key}"));
    format!("{text}\nSig: {}\n\n", hex(&hash.finalize()))
}

const ANNA: (&str, &str) = ("anna", "0a0b0c");

/// A signed request counts once, even if each report counts; and one signed before the start is not taken for new.
#[test]
fn what_is_sent_again_counts_once() {
    let mut site = Site::new("");
    let keys = format!("{}count = \"reports\"\n", files(&site));
    let (daemon, at) = open(&mut site, &keys);
    let from = socket("127.0.0.1", at);
    let report = signed("report", ANNA, now(), 2000);
    for _ in 0..5 {
        assert!(answered(&from, report.as_bytes()).starts_with("Code: 200\n"));
    }
    // Unsigned lines do not make it another request.
    let again = report.replace("\n\n", "\nno header\n\n");
    assert!(answered(&from, again.as_bytes()).starts_with("Code: 200\n"));
    assert_eq!(counts(at, DIGEST), "Count: 1\nWL-Count: 0\n\n");
    assert!(answered(&from, signed("report", ANNA, now(), 2001).as_bytes()).starts_with("Code: 200\n"));
    assert!(answered(&from, signed("whitelist", ANNA, now(), 2002).as_bytes()).starts_with("Code: 200\n"));
    assert_eq!(counts(at, DIGEST), "Count: 2\nWL-Count: 1\n\n");
    // Two may have arrived by the network at once.
    let old = signed("report", ANNA, now() - 100, 2003);
    assert!(
        answered(&from, old.as_bytes()).contains("Timestamp not within allowed range."),
        "before the start"
    );
    drop(daemon);
    let check = signed("check", ANNA, now() - 100, 2004);
    let daemon = site.start();
    let line = daemon.log.wait_for(0, "the interface pyzor is at ");
    let at = line.split("the interface pyzor is at ").nth(1).unwrap().trim().parse().unwrap();
    let from = socket("127.0.0.1", at);
    assert!(answered(&from, check.as_bytes()).starts_with("Code: 200\n"), "who only asks adds nothing");
    assert_eq!(counts(at, DIGEST), "Count: 2\nWL-Count: 1\n\n");
}

/// A client's clock is ahead: its signed request is sent again after a restart, while its time is still in the future, and after that.
#[test]
fn a_clock_ahead_counts_once_over_a_restart() {
    let mut site = Site::new("");
    let keys = format!("{}count = \"reports\"\n", files(&site));
    let (daemon, at) = open(&mut site, &keys);
    let report = signed("report", ANNA, now() + 200, 2000);
    let send = |at, report: &str| {
        assert!(answered(&socket("127.0.0.1", at), report.as_bytes()).starts_with("Code: 200\n"));
        counts(at, DIGEST)
    };
    assert_eq!(send(at, &report), "Count: 1\nWL-Count: 0\n\n");
    assert!(daemon.terminate().success());
    let daemon = site.start();
    let at = address(&daemon);
    assert_eq!(send(at, &report), "Count: 1\nWL-Count: 0\n\n");
    assert_eq!(send(at, &signed("report", ANNA, now() + 200, 2001)), "Count: 2\nWL-Count: 0\n\n");
}

/// Newcomers, which includes all unknown clients, raise a count no further than their common weight; while few users are trusted that is ten
/// times the threshold of spam, or max-newcomers of `user-reports.trust` if that is more. Further ones still get a success code.
#[test]
fn newcomers_stop_at_their_bound() {
    for (bound, expected) in [("1.0", 40), ("12.0", 48)] {
        let mut site = Site::new(&format!(
            "[thresholds]\nspam = 1\n[user-reports]\ntrust = {{ max-newcomers = {bound} }}\n"
        ));
        let keys = files(&site);
        let users: Vec<String> = (1..=60).map(|n| format!("user{n}")).collect();
        let accounts: String = users.iter().map(|user| format!("{user} : 0a0b0c\n")).collect();
        fs::write(site.path("pyzord.passwd"), accounts).unwrap();
        fs::write(site.path("pyzord.access"), "check : anonymous : allow\nall : all : allow\n").unwrap();
        let (_daemon, at) = open(&mut site, &keys);
        let from = socket("127.0.0.1", at);
        for user in &users {
            let answer = answered(&from, signed("report", (user, "0a0b0c"), now(), 2000).as_bytes());
            assert!(answer.starts_with("Code: 200\nDiag: OK\n"), "{user}: {answer}");
        }
        assert_eq!(
            counts(at, DIGEST),
            format!("Count: {expected}\nWL-Count: 0\n\n"),
            "max-newcomers = {bound}"
        );
    }
}

/// A signed report that was refused can be sent again: it is no replay.
#[test]
fn what_was_not_taken_is_no_replay() {
    let mut site = Site::new("");
    let keys = files(&site);
    let (_daemon, at) = open(&mut site, &keys);
    let from = socket("127.0.0.1", at);
    // No user may report more than 2,000 times a day, repetitions included.
    let all: Vec<String> = (0..16).map(|n| format!("{n:x}{}", &DIGEST[1..])).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for thread in 2000..2125 {
        let report = signed_of("report", &all, ANNA, now(), thread);
        assert!(answered(&from, report.as_bytes()).starts_with("Code: 200\n"), "{thread}");
    }
    let other = DIGEST.replace('8', "0");
    let report = signed_of("report", &[&other], ANNA, now(), 3000);
    for _ in 0..3 {
        let answer = answered(&from, report.as_bytes());
        assert!(answer.starts_with("Code: 403\n"), "{answer}");
    }
    assert_eq!(counts(at, &other), "Count: 0\nWL-Count: 0\n\n");
}

/// Invalid signatures and times.
#[test]
fn what_is_not_signed_so_is_refused() {
    let mut site = Site::new("");
    let keys = files(&site);
    let (_daemon, at) = open(&mut site, &keys);
    let from = socket("127.0.0.1", at);
    let (good, time) = (signed("report", ANNA, now(), 2000), now());
    let last = good.trim_end().chars().last().unwrap();
    let other = if last == '0' { '1' } else { '0' };
    let wrong = [
        format!("{}{other}\n\n", &good.trim_end()[..good.trim_end().len() - 1]),
        good.replace("Thread: 2000", "Thread: 2001"),
        good.replace("Op: report", "Op: whitelist"),
        signed("report", ("anna", "0d0e"), time, 2000),
        good.replace("Sig: ", "Sig: 00"),
        good.split("Sig: ").next().unwrap().to_owned(),
    ];
    for request in wrong {
        let answer = answered(&from, request.as_bytes());
        assert!(
            answer.starts_with("Code: 401\n") && answer.contains("Invalid signature."),
            "{request}: {answer}"
        );
    }
    for time in [0, time - 400, time + 400, u64::from(u32::MAX), u64::MAX] {
        let answer = answered(&from, signed("report", ANNA, time, 2000).as_bytes());
        assert!(answer.contains("Timestamp not within allowed range."), "{time}: {answer}");
    }
    let answer = answered(&from, signed("report", ("bert", "0a0b0c"), time, 2000).as_bytes());
    assert!(answer.contains("Unknown user."), "{answer}");
    assert_eq!(counts(at, DIGEST), "Count: 0\nWL-Count: 0\n\n");
}

/// A reload applies changed accounts and rights, and keeps the old ones if a file is gone; no restart is needed.
#[test]
fn accounts_are_read_again_at_a_reload() {
    let mut site = Site::new("");
    let keys = files(&site);
    let (daemon, at) = open(&mut site, &keys);
    let from = socket("127.0.0.1", at);
    let ping = |(user, key)| answered(&from, signed("ping", (user, key), now(), 2000).as_bytes());
    assert!(ping(ANNA).starts_with("Code: 200\n") && ping(("bert", "0d0e")).starts_with("Code: 401\n"));
    let reload = |expected: &str| {
        let skip = daemon.log.lines().len();
        daemon.signal("HUP");
        daemon.log.wait_for(skip, expected);
    };
    fs::write(site.path("pyzord.passwd"), "bert : 0d0e\nnonsense\n").unwrap();
    fs::write(site.path("pyzord.access"), "ping : bert : allow\n").unwrap();
    reload("interfaces.pyzor: the accounts were read again");
    daemon.log.wait_for(0, "passwd:2: passed over; expected USER : KEY");
    assert!(ping(ANNA).starts_with("Code: 401\n"), "the account is gone");
    assert!(ping(("bert", "0d0e")).starts_with("Code: 200\n"));
    let check = signed("check", ("bert", "0d0e"), now(), 2000);
    assert!(answered(&from, check.as_bytes()).starts_with("Code: 403\n"));
    fs::rename(site.path("pyzord.access"), site.path("away")).unwrap();
    reload("access: No such file or directory (os error 2); the accounts stay as they were");
    assert!(ping(("bert", "0d0e")).starts_with("Code: 200\n"));
}

/// `config check` and `doctor` report errors in the files, each with its line, and keys that others can read.
#[test]
fn faults_are_told_with_their_lines() {
    let mut site = Site::new("");
    let keys = files(&site);
    let (_daemon, _) = open(&mut site, &keys);
    let run = |command: &[&str]| {
        let mut command_line = Command::new(program());
        if command == ["doctor"] {
            command_line.args(["doctor", "--config"]).arg(site.config());
        } else {
            command_line.args(command).arg(site.config());
        }
        let output = command_line.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let mode = |bits| fs::set_permissions(site.path("pyzord.passwd"), Permissions::from_mode(bits)).unwrap();
    mode(0o640);
    let of_interfaces = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.contains("passwd") || line.contains("access"))
            .map(str::to_owned)
            .collect()
    };
    let faultless = [run(&["config", "check"]), run(&["doctor"])];
    assert!(of_interfaces(&faultless[0]).is_empty(), "{}", faultless[0]);
    assert!(of_interfaces(&faultless[1]).iter().all(|line| line.starts_with("ok ")), "{}", faultless[1]);
    fs::write(site.path("pyzord.passwd"), "anna : 0a0b0c\n\nbert 0d0e\n").unwrap();
    let access =
        "check : anonymous : allow\nreport : Bert : allow\nchekc : anna : allow\nping : anna : yes\n";
    fs::write(site.path("pyzord.access"), access).unwrap();
    mode(0o644);
    for text in [run(&["config", "check"]), run(&["doctor"])] {
        for expected in [
            "passwd:3: passed over; expected USER : KEY",
            "access:2: there is no account \"bert\"",
            "access:3: there is no operation \"chekc\"",
            "access:4: passed over; expected OPERATIONS : USERS : allow, or deny",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let is_told =
            text.lines().any(|line| line.to_lowercase().contains("everybody") && line.contains("passwd"));
        assert!(is_told, "{text}");
    }
    fs::write(site.path("pyzord.passwd"), "# nobody yet\n").unwrap();
    assert!(!run(&["config", "check"]).contains("everybody"), "there is no key to be read");
    fs::remove_file(site.path("pyzord.passwd")).unwrap();
    let text = run(&["config", "check"]);
    assert!(text.contains("interfaces.pyzor.home") && text.contains("cannot read"), "{text}");
}
