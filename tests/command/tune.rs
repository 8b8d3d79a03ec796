// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark tune`: its results for archives that are written here.

use bulkmark_ledger::FILE_NAME;
use bulkmark_testing::Site;
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, session};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A Monday.
const BEGIN: u64 = 1_790_553_600;

const DAY: u64 = 86_400;

/// A directory for archives.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("bulkmark-test-").tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and its directories.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(bulkmark_testing::program());
        command.arg("tune").args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// The JSON output.
    fn tune(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {printed}"))
    }
}

/// A date in the form of mail.
fn date(time: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(time);
    httpdate::fmt_http_date(time).replace("GMT", "+0000")
}

/// A text with words that no other number has.
fn text(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let letters = (0..6u32).map(|i| char::from(b'a' + (state >> (20 + 5 * i) & 15) as u8));
        letters.collect::<String>()
    };
    (0..80).map(|i| if i % 12 == 11 { word() + "\n" } else { word() + " " }).collect()
}

/// A message that arrived at that time.
fn mail(time: u64, from: &str, more: &str, text: &str) -> String {
    let date = date(time);
    format!("Received: from a by mx; {date}\nFrom: <{from}>\n{more}Subject: News of {from}\n\n{text}\n")
}

/// Messages as one mbox.
fn mbox<'a>(mails: impl IntoIterator<Item = &'a String>) -> String {
    let quoted = |mail: &String| mail.replace("\n>From ", "\n>>From ").replace("\nFrom ", "\n>From ");
    mails.into_iter().map(|mail| format!("From x Mon Sep 28 00:00:00 2026\n{}\n", quoted(mail))).collect()
}

/// The row of a threshold.
fn row(report: &Value, threshold: u64) -> &Value {
    let rows = report["thresholds"].as_array().unwrap();
    rows.iter().find(|row| row["threshold"] == threshold).unwrap()
}

fn lines(report: &Value, standing: &str) -> Vec<String> {
    let proposals = report["proposals"].as_array().unwrap().iter().filter(|p| p["standing"] == standing);
    proposals.map(|p| p["line"].as_str().unwrap().to_owned()).collect()
}

/// The same letter in all forms of archives, once with a line that an mbox must quote: one body with this count.
#[test]
fn all_forms_of_archives() {
    let place = Place::new();
    let text = format!("{}\n\nFrom here on it is quoted\n\n>From there too\n", text(1));
    let copies: Vec<_> = (0..20).map(|i| mail(BEGIN + i, "a@x.test", "", &text)).collect();
    place.write("mbox", mbox(&copies[0..3]));
    place.write("crlf.mbox", mbox(&copies[3..5]).replace('\n', "\r\n"));
    place.write("maildir/cur/1:2,S", &copies[5]);
    place.write("maildir/new/2", &copies[6]);
    place.write("maildir/tmp/3", &copies[7]);
    place.write("maildir/.Old/cur/4", &copies[8]);
    place.write("maildir/.Old/new/5", &copies[9]);
    place.write("maildir/dovecot-uidlist", "3 V1 N2\n");
    place.write("tmp/deep/below/6.eml", &copies[10]);
    place.write("7.eml", &copies[11]);
    // Circles, and paths that are given twice.
    symlink("..", place.path("maildir/.Old/up")).unwrap();
    symlink("nowhere", place.path("tmp/dangling")).unwrap();
    let report = place.tune(&["mbox", "crlf.mbox", "maildir", "tmp", "7.eml", "7.eml", "tmp/deep"]);
    let archive = &report["archive"];
    assert_eq!((&archive["messages"], &archive["counted"]), (&11.into(), &11.into()), "{report}");
    assert_eq!(archive["no_mail"], 1, "{report}");
    let clusters = report["clusters"].as_array().unwrap();
    assert_eq!(clusters.len(), 1, "{report}");
    assert_eq!((&clusters[0]["count"], &clusters[0]["same_body"]), (&11.into(), &10.into()), "{report}");
    assert_eq!(row(&report, 10)["body"], 2);
    let unreadable = report["unreadable"].as_array().unwrap();
    assert_eq!(unreadable.len(), 1, "{report}");
    assert_eq!(unreadable[0]["path"], "tmp/dangling");
}

/// The fifth in time is the only one that reaches 5, wherever it is. The last Received field is the topmost one.
#[test]
fn messages_count_in_the_order_of_their_time() {
    let place = Place::new();
    let copy = |time| mail(BEGIN + time, "a@x.test", "", &text(1));
    let older = format!("Received: by x; {}\n", date(BEGIN - DAY));
    let dated = |mail: String| mail.replace("From:", &format!("{older}From:"));
    place.write("spam.mbox", mbox(&[dated(copy(50))]));
    place.write("ham.mbox", mbox(&[copy(40), copy(10), dated(copy(30)), copy(20)]));
    let report = place.tune(&["--spam", "spam.mbox", "--ham", "ham.mbox"]);
    assert_eq!(report["archive"]["labels"], serde_json::json!({"none": 0, "ham": 4, "spam": 1}));
    let fifth = row(&report, 5);
    assert_eq!(fifth["labels"], serde_json::json!({"none": 0, "ham": 0, "spam": 1}), "{report}");
    assert_eq!(
        (&report["archive"]["first"], &report["archive"]["last"]),
        (&"2026-09-28T00:00:10Z".into(), &"2026-09-28T00:00:50Z".into())
    );
}

/// A message with a future time, or none, gets its file's time.
#[test]
fn a_message_without_a_time_has_that_of_its_file() {
    let place = Place::new();
    for (name, time) in [("none", "yesterday".to_owned()), ("future", date(4_000_000_000))] {
        let path = place.write(name, format!("Date: {time}\n\n{}", text(1)));
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(BEGIN)).unwrap();
        let report = place.tune(&[name]);
        assert_eq!(report["archive"]["first"], "2026-09-28T00:00:00Z", "{name}");
    }
}

/// Messages outside the retention no longer count, as in the milter; a configuration may set its length.
#[test]
fn counts_are_those_of_the_retention() {
    let place = Place::new();
    let days = [0, 0, 0, 0, 0, 0, 20, 20, 20, 20, 20, 20];
    let copies: Vec<_> =
        (0..).zip(days).map(|(i, d)| mail(BEGIN + d * DAY + i, "a@x.test", "", &text(1))).collect();
    place.write("mbox", mbox(&copies));
    let report = place.tune(&["mbox"]);
    assert_eq!((&row(&report, 5)["messages"], &row(&report, 10)["messages"]), (&4.into(), &0.into()));
    place.write("milter.toml", "[ledger]\nretention = \"30d\"\n[thresholds]\nbody = 3\nnear = 3\n");
    let report = place.tune(&["--config", "milter.toml", "mbox"]);
    assert_eq!((&row(&report, 5)["messages"], &row(&report, 10)["messages"]), (&8.into(), &3.into()));
    assert_eq!(report["configured"]["bulk"], 10);
}

/// Each message gets the counts that the milter returns for it.
#[test]
fn the_milter_counts_the_same() {
    let place = Place::new();
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 1000;
    let mut mails = Vec::new();
    for i in 0..48 {
        let body = match i % 4 {
            0 => text(1),
            1 => format!("Dear {},\n{}", text(100 + i).split(' ').next().unwrap(), text(2)),
            2 => text(i),
            _ => format!("{}{}", text(i), text(3)),
        };
        mails.push(mail(begin + i, "a@x.test", "", &body));
    }
    place.write("mbox", mbox(&mails));
    let report = place.tune(&["mbox"]);
    let daemon = Site::new("").start();
    let mut client = session(&daemon);
    let counts = mails.iter().map(|mail| {
        let answer = client.message(&Mail::raw(mail.as_bytes()));
        let field = |name| {
            let mut fields = answer.added[0].1.split("; ");
            let field = fields.find_map(|field| field.strip_prefix(name));
            field.map_or(0, |field| field.parse::<u64>().unwrap())
        };
        (field("body="), field("near="))
    });
    let counts: Vec<_> = counts.collect();
    for threshold in [5, 10] {
        let body = counts.iter().filter(|(body, _)| *body >= threshold).count();
        let any = counts.iter().filter(|(body, near)| *body.max(near) >= threshold).count();
        assert!(body > 0 && any > body, "{counts:?}");
        let row = row(&report, threshold);
        assert_eq!((&row["body"], &row["messages"]), (&body.into(), &any.into()), "{counts:?}");
        assert_eq!(row["near"], any - body);
    }
    assert!(report["clusters"].as_array().unwrap().len() >= 2, "{report}");
}

/// The entries proposed for newsletters, pasted into the white list, make them wanted: in the replay and in the milter.
#[test]
fn proposed_lines_make_newsletters_wanted() {
    let place = Place::new();
    let mut mails = Vec::new();
    for day in 0..4 {
        for copy in 0..25 {
            let time = BEGIN + day * DAY + copy;
            mails.push(mail(time, "a@news.test", "List-Id: News <list.news.test>\n", &text(day)));
            mails.push(mail(time, "shop@shop.test", "", &text(10 + day)));
            mails.push(mail(time, &format!("{copy}@spam.test"), "", &text(20)));
        }
    }
    place.write("all", mbox(mails.iter().filter(|m| !m.contains("spam.test"))));
    place.write("spam", mbox(mails.iter().filter(|m| m.contains("spam.test"))));
    let report = place.tune(&["all", "--spam", "spam"]);
    assert_eq!(lines(&report, "wanted"), ["list-id  <list.news.test>"], "{report}");
    assert_eq!(lines(&report, "unsure"), ["from     shop@shop.test"], "{report}");
    assert_eq!(lines(&report, "both"), [""; 0]);
    assert_eq!(
        (&report["configured"]["bulk"], &report["configured"]["bulk_with_proposals"]),
        (&129.into(), &105.into())
    );
    assert_eq!(row(&report, 20)["senders"], 27);

    let output = place.run(&["all", "--spam", "spam"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let list = printed.split_once("wanted:\n").unwrap().1.split_once("\nWith these lines").unwrap().0;
    let list = place.write("whitelist", list);
    let config = format!("[whitelist]\nfiles = [{:?}]\n", list.to_str().unwrap());
    place.write("milter.toml", &config);
    let report = place.tune(&["--config", "milter.toml", "all", "--spam", "spam"]);
    assert_eq!(
        (&report["configured"]["bulk"], &report["configured"]["whitelisted"]),
        (&105.into(), &100.into())
    );
    assert_eq!(row(&report, 20)["whitelisted"], 24);
    assert_eq!(lines(&report, "wanted"), [""; 0]);

    let daemon = Site::new(&config).start();
    let mut client = session(&daemon);
    assert!(client.message(&Mail::raw(mails[0].as_bytes())).verdict().starts_with("whitelisted"));
    assert!(client.message(&Mail::raw(mails[2].as_bytes())).verdict().starts_with("clean"));
}

/// The white list also applies to envelope addresses that the last mail server recorded.
#[test]
fn envelopes_are_known_from_the_header() {
    let place = Place::new();
    let copy = |i, more: &str| mail(BEGIN + i, "a@x.test", more, &text(1));
    place.write("1", copy(1, "Return-Path: <bounce@x.test>\n"));
    place.write("2", copy(2, "Delivered-To: all@y.test\n"));
    place.write("3", copy(3, ""));
    place.write("list", "sender bounce@x.test\nrecipient all@y.test\n");
    place
        .write("milter.toml", format!("[whitelist]\nfiles = [{:?}]\n", place.path("list").to_str().unwrap()));
    let report = place.tune(&["--config", "milter.toml", "1", "2", "3"]);
    assert_eq!(report["configured"]["whitelisted"], 2, "{report}");
}

/// The recipient's policy decides, if the header names him.
#[test]
fn policies_decide_for_those_who_got_the_messages() {
    let place = Place::new();
    for i in 0..3 {
        let to = ["a@strict.test", "a@else.test", "postmaster@strict.test"];
        for (n, to) in to.iter().enumerate() {
            let more = format!("Delivered-To: {to}\n");
            place.write(&format!("in/{i}{n}"), mail(BEGIN + 10 * i + n as u64, "a@x.test", &more, &text(1)));
        }
    }
    let config = "[[policy]]\nname = \"must\"\nmatch = { recipient = \"postmaster@\" }\njudge = false\n\
                  [[policy]]\nname = \"strict\"\nmatch = { recipient = \"strict.test\" }\n\
                  thresholds = { body = 3, min-sources = 1 }\nactions = { bulk = \"reject\" }\n";
    place.write("milter.toml", config);
    let report = place.tune(&["--config", "milter.toml", "in"]);
    let row = |policy, messages, bulk, refused| serde_json::json!({"policy": policy, "messages": messages, "bulk": bulk, "refused": refused});
    // Six are counted; the third and the fifth go to the strict one.
    let expected = [row("default", 3, 0, 0), row("strict", 3, 2, 2)];
    assert_eq!(report["configured"]["policies"].as_array().unwrap()[..], expected, "{report}");
    assert_eq!(report["archive"]["by_policy"], 3);
    let printed = place.run(&["--config", "milter.toml", "in"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    for line in [
        "        3 are not judged, by the policy of their recipient",
        "  by the policy strict: 3 messages, 2 bulk, 2 of it not delivered",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
}

/// Unreadable files are reported, and the rest is counted.
#[test]
fn what_cannot_be_read_is_listed() {
    let place = Place::new();
    place.write("good.eml", mail(BEGIN, "a@x.test", "", &text(1)));
    place.write("packed.mbox.gz", b"\x1f\x8b\x08\x00\x00");
    place.write("table", "1\t2\n");
    place.write("little.eml", "Subject: x\n\nthanks\n");
    let mut large = mail(BEGIN, "a@x.test", "", &text(1)).into_bytes();
    large.resize(33 << 20, b'x');
    place.write("large.eml", large);
    let args = ["absent", "good.eml", "packed.mbox.gz", "table", "little.eml", "large.eml"];
    let report = place.tune(&args);
    let archive = &report["archive"];
    for (name, number) in [("messages", 3), ("counted", 2), ("exempt", 1), ("unreadable", 3)] {
        assert_eq!(archive[name], number, "{name}: {report}");
    }
    let printed = String::from_utf8(place.run(&args).stderr).unwrap();
    let expected = [
        "bulkmark: cannot read absent: No such file or directory (os error 2)",
        "bulkmark: cannot read packed.mbox.gz: it is compressed; unpack it first",
        "bulkmark: cannot read table: it begins neither with a header field nor with \"From \"",
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn without_any_message_it_is_an_error() {
    let place = Place::new();
    place.write("table/1", "1\t2\n");
    let output = place.run(&["table"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "bulkmark: no message was found in table\n");
    assert_eq!(place.run(&[]).status.code(), Some(2));
    place.write("milter.toml", "[thresholds]\nbody = 0\n");
    let output = place.run(&["--config", "milter.toml", "table"]);
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("milter.toml:2"), "{output:?}");
}

/// Counts continue those of a ledger, which stays unchanged; a daemon's own is not touched.
#[test]
fn a_ledger_is_gone_on_from_and_not_changed() {
    let site = Site::new("");
    let daemon = site.start();
    bulkmark_testing::letters::send(&daemon, &letter(1), 9);
    let place = Place::new();
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let stored = [format!("Date: {}\r\n", date(begin)).into_bytes(), letter(1)].concat();
    place.write("1.eml", stored);
    let (state, config) = (site.path("state"), site.config());
    let args = ["--ledger", state.to_str().unwrap(), "--config", config.to_str().unwrap(), "1.eml"];
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is in use by another process"), "{output:?}");
    daemon.terminate();
    let before = fs::read(state.join(FILE_NAME)).unwrap();
    for _ in 0..2 {
        assert_eq!(row(&place.tune(&args), 10)["messages"], 1);
    }
    assert_eq!(row(&place.tune(&["1.eml"]), 5)["messages"], 0);
    assert!(fs::read(state.join(FILE_NAME)).unwrap() == before, "the ledger changed");
    let output = place.run(&["--ledger", place.0.path().to_str().unwrap(), "1.eml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot open the ledger"), "{output:?}");
}

/// A replay leaves no ledger behind.
#[test]
fn nothing_is_left_behind() {
    let place = Place::new();
    place.write("1.eml", mail(BEGIN, "a@x.test", "", &text(1)));
    let temporary = place.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(bulkmark_testing::program());
    let status =
        command.args(["tune", "1.eml"]).current_dir(place.0.path()).env("TMPDIR", &temporary).output();
    assert!(status.unwrap().status.success());
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
}

/// The output has 80 columns, and no control characters from strangers' text.
#[test]
fn the_table_is_for_terminals() {
    let place = Place::new();
    let subject = "Subject: =?utf-8?q?a=1B[31m=0D=0Ab=E2=80=AEc?= \x1b]0;x\x07 =?utf-8?b?5ryi5a2X?=\n";
    let more = format!("List-Id: <{}.test>\n{subject}X: \u{1b}\n", "long".repeat(40));
    let mails: Vec<_> = (0..90)
        .map(|i| mail(BEGIN + i % 3 * DAY + i, &format!("a@{}{i}.test", "long".repeat(9)), &more, &text(1)))
        .collect();
    place.write("mbox", mbox(&mails));
    place.write("ham", mails[0].replace("long", "x"));
    let output = place.run(&["mbox", "--ham", "ham"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("subject  a [31m bc ]0;x 漢字"), "{printed}");
    for line in printed.lines() {
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        let is_entry = line.starts_with("list-id ") || line.starts_with("from ");
        assert!(line.chars().count() <= 80 || is_entry, "{line}");
    }
    assert!(printed.contains("\n       20       72"), "{printed}");
}

#[test]
fn clusters_are_limited_and_drawn() {
    let place = Place::new();
    let mails: Vec<_> = (0..60).map(|i| mail(BEGIN + i, "a@x.test", "", &text(i % 6))).collect();
    place.write("mbox", mbox(&mails));
    let report = place.tune(&["mbox", "--limit", "2", "--plot", "curve.svg"]);
    assert_eq!(report["clusters"].as_array().unwrap().len(), 2);
    let drawn = fs::read_to_string(place.path("curve.svg")).unwrap();
    assert!(
        drawn.starts_with("<svg") && drawn.contains("all bulk") && drawn.contains("threshold"),
        "{drawn}"
    );
    let output = place.run(&["mbox", "--plot", "nowhere/curve.svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(Path::new(&place.path("nowhere")).symlink_metadata().is_err());
    let printed = String::from_utf8(place.run(&["mbox", "--limit", "4"]).stdout).unwrap();
    assert!(printed.contains("(4 of 6 clusters)"), "{printed}");
}

/// The networks that mail servers recorded: a site's own bulk would be refused, its text from somebody else would not.
#[test]
fn networks_are_read_from_received_lines() {
    let place = Place::new();
    let from = |ip: &str, n: u64| {
        let line = |by: &str, ip: &str| format!("Received: from c (c [{ip}]) by {by}; {}\n", date(BEGIN + n));
        // Through an own filter, and after another server.
        let lines = [line("store.test", "127.0.0.1"), line("mx.test", ip), line("else.test", "203.0.113.9")];
        lines.concat() + &mail(BEGIN + n, "a@x.test", "", &text(1))
    };
    let mut mails: Vec<String> = (1..=30).map(|n| from("192.0.2.7", n)).collect();
    mails.extend((31..=40).map(|n| from("198.51.100.7", n)));
    place.write("mbox", mbox(&mails));
    let printed = |report: &Value| {
        let number = |value: &Value| value.as_u64().unwrap();
        let (kept, configured) = (&report["archive"], &report["configured"]);
        (number(&configured["bulk"]), number(&configured["held"]), number(&kept["without_network"]))
    };
    assert_eq!(printed(&place.tune(&["mbox"])), (21, 10, 0));
    assert_eq!(printed(&place.tune(&["mbox", "--border", "MX.test"])), (21, 10, 0));
    // The line of one server shows one network for all of them, another one none.
    assert_eq!(printed(&place.tune(&["mbox", "--border", "else.test"])), (21, 0, 0));
    assert_eq!(printed(&place.tune(&["mbox", "--border", "none.test"])), (21, 0, 40));
    place.write("off.toml", "[thresholds]\nmin-sources = 1\n");
    let off = place.tune(&["mbox", "--config", "off.toml"]);
    assert_eq!(printed(&off), (21, 0, 0));
    assert_eq!(off["archive"]["signatures"], 40 * 10);
    let printed = String::from_utf8(place.run(&["mbox"]).stdout).unwrap();
    assert!(
        printed.contains("  only marked, from less than 3 other networks (min-sources): 10\n"),
        "{printed}"
    );
    let printed = String::from_utf8(place.run(&["mbox", "--border", "none.test"]).stdout).unwrap();
    assert!(printed.contains("judged as with min-sources = 1: 40\n"), "{printed}");
}
