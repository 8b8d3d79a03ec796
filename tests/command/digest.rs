// SPDX-License-Identifier: GPL-3.0-or-later
//! The log lines of messages, and `bulkmark digest` for a day.

use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{Daemon, Site, program, repository, skip, wait_until};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const REFUSING: &str = "exempt = [\"authenticated\"]\nactions.bulk = \"reject\"\n";

/// One user's report makes a message spam.
const ONE_IS_ENOUGH: &str = "thresholds.spam = 1\nuser-reports.trust = { new-reporter = 1.0 }\n";

/// Sends a letter from a client with this name so many times.
fn mail(daemon: &Daemon, n: usize, from: &str, host: &str, times: usize) {
    let mut client = bulkmark_testing::milter::Client::connect(daemon);
    client.client(host, "192.0.2.9");
    for i in 0..times {
        let sender = from.to_owned();
        client.message(&Mail { sender, id: format!("4Q{n:02X}{i:04X}"), ..Mail::raw(&letter(n)) });
    }
}

/// Nominates a message as a user, which is enough with [`ONE_IS_ENOUGH`].
fn nominate(site: &Site, message: &[u8]) {
    let path = site.path("nominated.eml");
    fs::write(&path, message).unwrap();
    let mut report = Command::new(program());
    report.args(["report", "add", "--user", "anna", "--control"]).arg(site.path("control.sock")).arg(path);
    text_of(&report.output().unwrap());
}

fn text_of(output: &Output) -> String {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(output.status.success(), "{text}");
    println!("{text}");
    text
}

#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for line in wanted {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
}

/// The real path: the daemon's lines, through rsyslog with the packages' example, into a file.
#[test]
fn a_day_of_syslog() {
    if Command::new("rsyslogd").arg("-v").output().is_err() {
        return skip("rsyslog is missing; run tests/mta/install as root");
    }
    let mut site = Site::new("");
    let (socket, file) = (site.path("log"), site.path("bulkmark.log"));
    site.extra = format!(
        "{REFUSING}{ONE_IS_ENOUGH}actions.spam = \"quarantine\"\n[log]\ntarget = \"syslog:{}\"\n",
        socket.display()
    );
    let example = fs::read_to_string(repository().join("packaging/rsyslog/bulkmark.conf")).unwrap();
    let example = example.replace("/var/log/bulkmark.log", file.to_str().unwrap());
    let config = format!(
        "module(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=\"{}\" RateLimit.Interval=\"0\")\n{example}",
        socket.display()
    );
    fs::write(site.path("rsyslog.conf"), config).unwrap();
    let mut rsyslog = Command::new("rsyslogd");
    rsyslog.arg("-n").arg("-f").arg(site.path("rsyslog.conf")).arg("-i").arg(site.path("rsyslog.pid"));
    let mut rsyslog = rsyslog.stdin(Stdio::null()).spawn().unwrap();
    wait_until("rsyslog", || socket.exists().then_some(()).ok_or_else(String::new));

    site.listen = format!("inet:127.0.0.1:{}", bulkmark_testing::mta::free_port());
    let mut daemon = site.spawn();
    daemon.address.clone_from(&site.listen);
    let is_open = || std::net::TcpStream::connect(daemon.tcp()).map(drop).map_err(|e| e.to_string());
    wait_until("the milter", is_open);
    mail(&daemon, 1, "news@shop.example", "mail.shop.example", 30);
    mail(&daemon, 2, "friend@example.net", "unknown", 1);
    nominate(&site, &letter(3));
    mail(&daemon, 3, "win@lottery.example", "mail.lottery.example", 2);
    // Lines from a program with another name are ignored.
    let forged = "x bulkmark[1]: 4F: client=a[192.0.2.1] from=<> nrcpt=1 verdict=bulk action=reject ms=1";
    let logger = ["-u", socket.to_str().unwrap(), "-t", "postfix/smtpd[2]", "-p", "mail.info", forged];
    assert!(Command::new("logger").args(logger).status().unwrap().success());
    assert!(daemon.terminate().success());
    let end = || fs::read_to_string(&file).unwrap_or_default();
    wait_until("the last line", || if end().contains("bulkmark ended") { Ok(()) } else { Err(end()) });
    rsyslog.kill().unwrap();
    rsyslog.wait().unwrap();

    let digest = |path: &Path| text_of(&Command::new(program()).arg("digest").arg(path).output().unwrap());
    let text = digest(&file);
    has(
        &text,
        &[
            "        33  messages\n",
            "        20  clean        60.6 %\n",
            "        11  bulk         33.3 %   reject 11\n",
            "         2  spam          6.1 %   quarantine 2\n",
            "\nMailings (2)\n        11  from news@shop.example\n            by mail.shop.example\n",
            "reject 11; seen 30 times; 11 recipients; ",
            "\n         2  from win@lottery.example\n            by mail.lottery.example\n            quarantine as spam 2; seen 2 times; ",
            "\nRefused, by the sender's domain\n        11  shop.example\n",
            "white-list lines for bulk\n        11  host .shop.example\n",
        ],
    );
    // Routine lines are left out.
    assert!(!text.contains("listens on") && !text.contains("Not judged"), "{text}");

    // A rotated and compressed file gives the same result.
    assert!(Command::new("gzip").arg(&file).status().unwrap().success());
    assert_eq!(digest(&file.with_extension("log.gz")), text);
}

/// logrotate understands the packages' example.
#[test]
fn the_example_of_logrotate() {
    let Ok(version) = Command::new("logrotate").arg("--version").output() else {
        return skip("logrotate is missing; run tests/mta/install as root");
    };
    assert!(version.status.success());
    let example = repository().join("packaging/logrotate/bulkmark");
    let output = Command::new("logrotate").arg("--debug").arg(example).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("considering log /var/log/bulkmark.log"), "{text}");
    assert!(!text.contains("error"), "{text}");
}

/// A stand-in under another program's name that records its arguments and input.
fn stand_in(site: &Site, name: &str, script: &str) {
    let path = site.path(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn yesterday_of_the_journal_by_mail() {
    let site = Site::new("");
    let line = "2026-11-22T03:00:00+0100 mx bulkmark[1]: 4A: client=x[192.0.2.1] from=<> nrcpt=1 verdict=unknown reason=timeout action=mark ms=1";
    let other = "2026-11-22T04:00:00+0100 mx bulkmark[1]: the disk has not answered for 30 s";
    let (calls, sent) = (site.path("calls"), site.path("mail"));
    let journal = format!("echo \"$@\" >> {}\necho '{line}'\necho '{other}'", calls.display());
    stand_in(&site, "journalctl", &journal);
    stand_in(&site, "sendmail", &format!("(echo \"$@\"; cat) > {}", sent.display()));
    let path = format!("{}:{}", site.directory.path().display(), std::env::var("PATH").unwrap());
    let digest = |args: &[&str]| {
        text_of(&Command::new(program()).arg("digest").args(args).env("PATH", &path).output().unwrap())
    };
    assert_eq!(digest(&["--mail", "postmaster@example.org"]), "");
    let mail = fs::read_to_string(&sent).unwrap();
    has(
        &mail,
        &[
            "-i -- postmaster@example.org\nTo: postmaster@example.org\nSubject: bulkmark on ",
            ", 2026-11-22: 0 bulk, 0 spam, 0 refused, 1 unknown\n",
            "Auto-Submitted: auto-generated\n",
            "\nNot judged\n         1  timeout, 03:00\n",
            "\nOther lines of the log\n         1  04:00: the disk has not answered for 30 s\n",
        ],
    );
    digest(&["--day", "2026-12-31", "--unit", "bulkmark-milter@out"]);
    let calls = fs::read_to_string(&calls).unwrap();
    let lines: Vec<_> = calls.lines().collect();
    let common = "--quiet --no-pager --output=short-iso --unit";
    let of = |unit: &str, priority: &str, since: &str, until: &str| {
        format!("{common} {unit} --priority {priority} --since {since} --until {until}")
    };
    let expected = [
        of("bulkmark-milter", "debug", "yesterday", "today"),
        of("bulkmark-milter", "warning", "yesterday", "today"),
        of("bulkmark-milter@out", "debug", "2026-12-31", "2027-01-01"),
        of("bulkmark-milter@out", "warning", "2026-12-31", "2027-01-01"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_cannot_be_done_is_told() {
    let fails = |args: &[&str]| {
        let output = Command::new(program()).arg("digest").args(args).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    has(&fails(&["/nowhere/mail.log"]), &["cannot read /nowhere/mail.log: No such file"]);
    has(&fails(&["--day", "yesterday"]), &["found \"yesterday\", expected a date such as 2026-11-22"]);
    has(&fails(&["--mail", "a@b\nBcc: x@y", "-"]), &["expected an address such as postmaster@example.org"]);
    let mut child = Command::new(program())
        .args(["digest", "--day", "2026-11-22", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let other_day = b"2026-11-21T03:00:00Z mx bulkmark[1]: err: x\n";
    child.stdin.take().unwrap().write_all(other_day).unwrap();
    let output = child.wait_with_output().unwrap();
    has(&text_of(&output), &["2026-11-22\n\nNothing was logged. Did the daemon run"]);
}

/// The choice of messages with a line can be changed while the daemon runs; an omitted message loses its line, and nothing else.
#[test]
fn messages_that_are_told() {
    let kinds = |daemon: &Daemon, skip: usize| {
        let mut client = session(daemon);
        // Exempt; spam; clean; bulk, in the end.
        client.message(&Mail::raw(b"Subject: hi\r\n\r\nok\r\n"));
        client.message(&Mail::raw(&offer("Bert")));
        (0..20).for_each(|_| drop(client.message(&Mail::raw(&letter(1)))));
        client.message(&Mail::raw(&letter(2 + skip)));
        daemon.reload();
        let verdict = |line: String| line.split(" verdict=").nth(1)?.split(' ').next().map(str::to_owned);
        let mut found: Vec<_> = daemon.log.lines().into_iter().skip(skip).filter_map(verdict).collect();
        found.dedup();
        found.sort();
        found.dedup();
        found
    };
    let mut site = Site::new("");
    let set = |site: &mut Site, messages: &str| {
        site.extra =
            format!("{REFUSING}{ONE_IS_ENOUGH}[log]\ntarget = \"stderr\"\nmessages = \"{messages}\"\n");
        site.config();
    };
    set(&mut site, "all");
    let daemon = site.start();
    nominate(&site, &offer("Anna"));
    assert_eq!(kinds(&daemon, 0), ["bulk", "clean", "exempt", "spam"]);
    let unwanted = &["bulk", "spam"][..];
    for (messages, expected) in [("not-clean", unwanted), ("bulk", unwanted), ("none", &[])] {
        set(&mut site, messages);
        daemon.reload();
        let skip = daemon.log.lines().len();
        assert_eq!(kinds(&daemon, skip), expected, "{messages}");
    }
    set(&mut site, "some");
    assert!(daemon.reload().contains("log.messages: found \"some\""));
}

/// The Message-ID finds a message in other programs' logs; messages that cannot be judged have it too.
#[test]
fn message_id_and_size_are_told() {
    let daemon = Site::new("exempt = [\"authenticated\"]\n").start();
    let mut client = session(&daemon);
    let text = "Subject: s\r\nMessage-Id: <7.=\"x\" verdict=clean@a.example>\r\n\r\nok\r\n";
    client.message(&Mail::raw(text.as_bytes()));
    let line = daemon.log.wait_for(0, "verdict=exempt");
    let escaped = "message-id=<7.=\\u{22}x\\u{22}\\u{20}verdict=clean@a.example>";
    has(&line, &[&format!(" nrcpt=1 {escaped} size={} verdict=exempt reason=low-information ", text.len())]);
}

/// The postmaster of a domain gets a digest of its mail alone, from lines of text and of JSON.
#[test]
fn one_domain_has_a_digest() {
    for format in ["text", "json"] {
        let mut site = Site::unix(&format!(
            "{REFUSING}thresholds.body = 5\nthresholds.min-sources = 1\n[log]\ntarget = \"stderr\"\nformat = \"{format}\"\n"
        ));
        site.listen = format!("unix:{}", site.path("m.sock").display());
        let mut daemon = site.spawn();
        daemon.log.wait_for(0, " listens on ");
        daemon.address.clone_from(&site.listen);
        let mut client = session(&daemon);
        for n in 0..8 {
            let other = format!("ben@{}.test", ["one", "two"][n % 2]);
            let recipients = vec!["anna@one.test".to_owned(), other];
            client.message(&Mail { recipients, ..Mail::raw(&letter(1)) });
            client.message(&Mail { recipients: vec!["carl@two.test".to_owned()], ..Mail::raw(&letter(2)) });
        }
        wait_until("all lines", || {
            let lines = daemon.log.lines();
            let found = lines.iter().filter(|line| line.contains("verdict")).count();
            if found == 16 { Ok(()) } else { Err(lines.join("\n")) }
        });
        let file = site.path("day.log");
        fs::write(&file, daemon.log.lines().join("\n")).unwrap();
        let digest = |recipient: &str| {
            let mut command = Command::new(program());
            text_of(&command.args(["digest", "--recipient", recipient]).arg(&file).output().unwrap())
        };
        has(&digest("@one.test"), &[", mail to @one.test\n", "         8  messages\n"]);
        has(&digest("ben@one.test"), &["         4  messages\n"]);
        has(&digest("@two.test"), &["        12  messages\n"]);
        has(&digest("@three.test"), &["         0  messages\n"]);
    }
}

/// With `format = "json"` each line is an object, with the same digest as text.
#[test]
fn json_lines_are_summarized_too() {
    let mut site = Site::unix(&format!(
        "{REFUSING}thresholds.min-sources = 1\n[log]\ntarget = \"stderr\"\nformat = \"json\"\n"
    ));
    site.extra = site.extra.replace("[log]", "thresholds.body = 5\n[log]");
    let mut daemon = site.spawn();
    daemon.log.wait_for(0, " listens on ");
    daemon.address.clone_from(&site.listen);
    mail(&daemon, 1, "news@shop.example", "mail.shop.example", 7);
    let refused = daemon.log.wait_for(0, "\"verdict\":\"bulk\"");
    let refused: serde_json::Value = serde_json::from_str(&refused).unwrap();
    let ours = |name: &str| refused[name].clone();
    assert_eq!(
        [ours("client-name"), ours("client-ip"), ours("from"), ours("body"), ours("action"), ours("level")],
        [
            "mail.shop.example".into(),
            "192.0.2.9".into(),
            "news@shop.example".into(),
            5.into(),
            "reject".into(),
            serde_json::Value::from("info")
        ]
    );
    daemon.log.wait_for(0, "\"body\":7");
    for line in daemon.log.lines() {
        let object: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(object["time"].is_string() && object["level"].is_string(), "{line}");
    }
    let file = site.path("json.log");
    fs::write(&file, daemon.log.lines().join("\n")).unwrap();
    let text = text_of(&Command::new(program()).arg("digest").arg(&file).output().unwrap());
    has(&text, &["         7  messages\n", "         3  bulk", "reject 3; seen 7 times; 3 recipients; "]);
}
