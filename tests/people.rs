// SPDX-License-Identifier: GPL-3.0-or-later
//! What users say of messages: `bulkmark report`, through kills and a federation, to the verdict `spam`. Real processes and sockets.

mod common;

use common::milter::{Mail, session};
use common::mount::Mount;
use common::server::{Server, milter};
use common::{BULKMARK, Daemon, Site, crlf, wait_until};
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// An offer to somebody: copies are alike, and no two are the same.
fn offer(name: &str) -> Vec<u8> {
    let code: String = name.chars().rev().collect();
    crlf(&format!(
        "From: Winning House <prize@offers.test>\nSubject: {name}, your parcel waits\n\n\
         Dear {name},\n\n\
         our depot at the canal holds a parcel which could not be handed over on Tuesday, since the house number on its label had \
         become wet in the rain. Please tell us within three working days whether the driver should bring it again between eight \
         and noon, or whether a neighbour may take it for you. For a second delivery our tariff of this spring asks a fee of one \
         euro and ninety nine cents, which every larger card and most pocket banks will settle for you in a moment. Parcels that \
         nobody asks for go back to the sender on Friday evening, together with all vouchers and samples that lie inside of them.\n\n\
         Number of your parcel: {code}\n"
    ))
}

fn command(site: &Site, arguments: &[&str]) -> Command {
    let mut command = Command::new(BULKMARK);
    command.args(["report", "--json", "--control"]).arg(site.path("control.sock")).args(arguments);
    command
}

fn run(command: &mut Command, message: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(message).unwrap();
    child.wait_with_output().unwrap()
}

/// What a milter answers to a report.
#[track_caller]
fn report(site: &Site, arguments: &[&str], message: &[u8]) -> Value {
    let output = run(&mut command(site, arguments), message);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// A report whose signatures are all new to this user, or all taken back.
#[track_caller]
fn assert_counted(answer: &Value, field: &str) {
    let signatures = answer["signatures"].as_u64().unwrap();
    assert!(signatures > 3, "{answer}");
    assert_eq!(answer[field], signatures, "{answer}");
}

fn verdict(milter: &Daemon, message: &[u8]) -> String {
    session(milter).message(&Mail::raw(message)).header().to_owned()
}

fn checked(site: &Site, message: &[u8]) -> Value {
    let (_, answer) = site.check(message);
    serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

/// Waits until a milter's `check` tells this verdict, by this weight.
#[track_caller]
fn wait_for(site: &Site, message: &[u8], verdict: &str, weight: Option<&str>) {
    wait_until("what people say", || {
        let told = checked(site, message);
        let is_so = told["verdict"] == verdict && told["spam"]["weight"].as_str() == weight;
        if is_so { Ok(()) } else { Err(told.to_string()) }
    });
}

fn weighing(entry: String, lines: &str) -> Site {
    let mut site = milter(&[entry]);
    site.extra += &format!("{lines}[people]\nfederation-weight = 1.0\nnew-reporter = 1.0\n");
    site
}

/// Three users of one mail server call it spam; a near-replica is spam at others; two take it back, and it is not. Daemons die in
/// between, and what was answered is counted once.
#[test]
fn what_users_of_one_mail_server_say_is_spam_at_another() {
    let server = Server::new("");
    let mut daemon = server.start();
    let near = weighing(server.entry("near", "report"), "");
    let far = weighing(server.entry("far", "report"), "");
    let thin = weighing(server.entry("thin", "report"), "hold = \"bulk\"\n");
    let careful = milter(&[server.entry("careful", "report")]);
    let mut at_near = near.start();
    let (at_far, at_thin, _at_careful) = (far.start(), thin.start(), careful.start());
    at_thin.log.wait_for(0, "its list of bulk was taken over");
    assert!(verdict(&at_near, &offer("Anna")).starts_with("clean; body=1; near=1; threshold=20;"));

    assert_counted(&report(&near, &["--user", "anna"], &offer("Anna")), "counted");
    at_near.kill();
    at_near = near.start();
    assert_counted(&report(&near, &["--user", "anna"], &offer("Anna")), "known");
    assert_counted(&report(&near, &["--user", "bert"], &offer("Anna")), "counted");
    wait_for(&near, &offer("Anna"), "clean", Some("2"));
    daemon.kill();
    assert_counted(&report(&near, &["--user", "carl"], &offer("Anna")), "counted");
    wait_for(&near, &offer("Dora"), "spam", Some("3"));
    assert_counted(&report(&near, &["--user", "carl"], &offer("Anna")), "known");
    daemon = server.start();

    for (site, milter) in [(&far, &at_far), (&thin, &at_thin)] {
        wait_for(site, &offer("Emil"), "spam", Some("3"));
        let header = verdict(milter, &offer("Emil"));
        assert!(header.starts_with("spam; body="), "{header}");
        assert!(header.contains("; spam=3; threshold=20; host=mx.test"), "{header}");
        at_far.log.wait_for(0, " verdict=spam ");
    }
    // By default the word of others' users weighs half.
    wait_for(&careful, &offer("Emil"), "clean", Some("1.5"));

    let mut explain = Command::new(BULKMARK);
    let explained = run(explain.args(["explain", "--config"]).arg(near.config()), &offer("Anna"));
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.contains("people call it spam with the weight 3, the threshold 3"), "{explained}");
    assert!(explained.contains("nominated by users here: 3, in all 3"), "{explained}");
    assert!(!explained.contains("anna") && !explained.contains("bert"), "{explained}");

    assert_counted(&report(&near, &["--not-spam", "--user", "bert"], &offer("Anna")), "taken-back");
    at_near.kill();
    daemon.kill();
    at_near = near.start();
    daemon = server.start();
    assert_counted(&report(&near, &["--forget", "--user", "anna"], &offer("Anna")), "taken-back");
    assert_counted(&report(&near, &["--not-spam", "--user", "bert"], &offer("Anna")), "counted");
    for (site, milter) in [(&far, &at_far), (&thin, &at_thin), (&near, &at_near)] {
        // One speaks for it, and one against it.
        wait_for(site, &offer("Emil"), "clean", None);
        assert!(verdict(milter, &offer("Emil")).starts_with("clean; body="));
    }
    assert!(daemon.terminate().success());
}

/// What cannot be counted is refused with a reason, and the exit code says so.
#[test]
fn what_is_refused() {
    let site = Site::new("exempt-loopback = false\n[people]\nown-domains = [\"offers.test\"]\n");
    let milter = site.start();
    let refused = |arguments: &[&str], message: &[u8]| {
        let output = run(&mut command(&site, arguments), message);
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        (output.status.code(), answer["refused"].as_str().unwrap_or_default().to_owned())
    };
    let (code, why) = refused(&[], &crlf("Subject: x\n\nshort\n"));
    assert_eq!(code, Some(1));
    assert!(why.starts_with("it has no signature: low information"), "{why}");
    let (code, why) = refused(&["--user", "anna"], &offer("Anna"));
    assert_eq!(code, Some(1));
    assert!(why.contains("prize@offers.test is in offers.test"), "{why}");
    assert_eq!(refused(&["--user", "anna", "--force"], &offer("Anna")), (Some(0), String::new()));
    // Taking back needs no force, and a name may be any bytes.
    assert_eq!(refused(&["--user", "anna", "--forget"], &offer("Anna")), (Some(0), String::new()));
    assert_eq!(
        refused(&["--user", "a b\u{1b}[0m\u{e4}", "--force"], &offer("Anna")),
        (Some(0), String::new())
    );
    let no_mail = run(&mut command(&site, &[]), b"no mail at all\n");
    assert_eq!(no_mail.status.code(), Some(75));
    assert!(milter.terminate().success());
    let alone = run(&mut command(&site, &[]), &offer("Anna"));
    assert_eq!(alone.status.code(), Some(75), "{alone:?}");
}

/// Messages of an mbox and of a Maildir, as they were delivered.
#[test]
fn mboxes_and_maildirs_are_read() {
    let site = Site::new("exempt-loopback = false\n[people]\nnew-reporter = 1.0\n");
    let milter = site.start();
    let text = |name: &str| String::from_utf8(offer(name)).unwrap().replace("\r\n", "\n");
    let envelope = "From prize@offers.test Sat Nov 21 10:00:00 2026\n";
    let mbox = format!("{envelope}{}\n{envelope}{}\n", text("Anna"), text("Bert"));
    std::fs::write(site.path("mbox"), mbox).unwrap();
    for name in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(site.path("Maildir").join(name)).unwrap();
    }
    std::fs::write(site.path("Maildir/cur/1:2,S"), text("Carl")).unwrap();
    std::fs::write(site.path("Maildir/new/2"), text("Dora")).unwrap();
    std::fs::write(site.path("Maildir/tmp/3"), text("Emil")).unwrap();
    let mut command = command(&site, &["--user", "anna"]);
    let output = command.arg(site.path("mbox")).arg(site.path("Maildir")).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
    // The body of each counts, and what they have in common once.
    for name in ["Anna", "Bert", "Carl", "Dora"] {
        assert_eq!(checked(&site, &offer(name))["spam"]["weight"], "1", "{name}");
    }
    assert!(milter.terminate().success());
}

/// A site may keep to itself what its users say.
#[test]
fn what_is_not_shared_stays_here() {
    let server = Server::new("");
    let _daemon = server.start();
    let mut alone = milter(&[server.entry("alone", "report")]);
    alone.extra += "[people]\nshare-nominations = false\nnew-reporter = 1.0\n";
    let far = weighing(server.entry("far", "report"), "");
    let (at_alone, at_far) = (alone.start(), far.start());
    for user in ["anna", "bert", "carl"] {
        let told = report(&alone, &["--user", user], &offer("Anna"));
        assert_eq!(told["shared"], false, "{told}");
    }
    wait_for(&alone, &offer("Bert"), "spam", Some("3"));
    assert!(verdict(&at_alone, &offer("Bert")).starts_with("spam; body=1; near=1; spam=3; "));
    // What is sent after it has come, and nothing of it.
    common::letters::send(&at_alone, &common::letters::letter(1), 3);
    common::letters::wait_for(&far, &common::letters::letter(1), 3);
    assert!(verdict(&at_far, &offer("Bert")).starts_with("clean; "));
}

/// What `bulkmark reports` tells.
#[track_caller]
fn told(site: &Site, arguments: &[&str]) -> Value {
    let mut command = Command::new(BULKMARK);
    command.args(["reports", "--json", "--control"]).arg(site.path("control.sock")).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The administrator sees which mailings are spoken of, and whom to believe; what one user said is taken back, and is not said again by
/// a start after a crash.
#[test]
fn the_administrator_sees_what_was_said_and_takes_it_back() {
    let mut site =
        Site::new("exempt-loopback = false\n[people]\nnew-reporter = 0.5\n[status]\nsubjects = true\n");
    let mut milter = site.start();
    assert_eq!(told(&site, &[])["mailings"], serde_json::json!([]));
    for (user, name) in [("anna", "Anna"), ("bert", "Bert")] {
        assert_counted(&report(&site, &["--user", user], &offer(name)), "counted");
    }
    let other = common::letters::letter(1);
    report(&site, &["--user", "anna"], &other);
    report(&site, &["--user", "carl", "--not-spam"], &other);
    let all = told(&site, &[]);
    let mailings = all["mailings"].as_array().unwrap();
    // Both copies of the offer are one mailing.
    assert_eq!(mailings.len(), 2, "{all}");
    assert_eq!(
        (&mailings[0]["spam"], &mailings[0]["weight"], &mailings[0]["subject"]),
        (&2.into(), &1.0.into(), &"Anna, your parcel waits".into()),
        "{all}"
    );
    assert_eq!((&mailings[1]["spam"], &mailings[1]["not-spam"]), (&1.into(), &1.into()), "{all}");
    let anna = told(&site, &["--user", "anna"]);
    assert_eq!(anna["reporters"].as_array().unwrap().len(), 1, "{anna}");
    assert_eq!((&anna["reporters"][0]["weight"], &anna["reporters"][0]["spam"]), (&0.5.into(), &2.into()));
    assert!(!all.to_string().contains("anna"), "{all}");
    // Another kind of reporter of this name is another one.
    assert_eq!(told(&site, &["--trap", "anna"])["mailings"], serde_json::json!([]));

    milter.kill();
    milter = site.start();
    assert_eq!(told(&site, &[]), all, "nothing that was answered is lost");
    assert!(told(&site, &["forget", "--user", "anna"])["taken-back"].as_u64().unwrap() > 3);
    milter.kill();
    milter = site.start();
    let left = told(&site, &[]);
    let offers = left["mailings"].as_array().unwrap().iter().find(|said| said["subject"] != "x").unwrap();
    assert_eq!((&offers["spam"], &offers["weight"]), (&1.into(), &0.5.into()), "{left}");
    assert_eq!(told(&site, &["forget", "--user", "anna"])["taken-back"], 0);
    assert_eq!(checked(&site, &offer("Dora"))["spam"]["weight"], "0.5");
    assert!(milter.terminate().success());
    site.extra.clear();
    let silent = Command::new(BULKMARK).args(["reports", "--control", "/nonexistent"]).output().unwrap();
    assert_eq!(silent.status.code(), Some(75), "{silent:?}");
}

/// A script that says the same from many sides at once counts once.
#[test]
fn the_same_word_at_once_counts_once() {
    let site = Site::new("exempt-loopback = false\n[people]\nnew-reporter = 1.0\n");
    let milter = site.start();
    let counted: u64 = std::thread::scope(|scope| {
        let say = || report(&site, &["--user", "anna"], &offer("Anna"))["counted"].as_u64().unwrap();
        let all: Vec<_> = (0..12).map(|_| scope.spawn(say)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let signatures = report(&site, &["--user", "anna"], &offer("Anna"))["signatures"].as_u64().unwrap();
    assert_eq!(counted, signatures);
    assert_eq!(checked(&site, &offer("Anna"))["spam"]["weight"], "1");
    assert!(milter.terminate().success());
}

/// What a full disk does not take is not counted, says so, and can be said again.
#[test]
fn a_full_disk_takes_no_word_and_loses_none() {
    let site = Site::new("exempt-loopback = false\n[people]\nnew-reporter = 1.0\n");
    site.config();
    let Some(_mount) = Mount::new(&site.path("state"), "size=8m") else { return };
    let milter = site.start();
    report(&site, &["--user", "anna"], &offer("Anna"));
    let filler = site.path("state/filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let mut refused = 0;
    let mut said = Vec::new();
    for user in 0..200 {
        let output = run(&mut command(&site, &["--user", &user.to_string()]), &offer("Anna"));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        if answer["refused"].is_null() {
            said.push(user);
        } else {
            assert_eq!((output.status.code(), &answer["later"]), (Some(75), &true.into()), "{answer}");
            refused += 1;
            break;
        }
    }
    assert_eq!(refused, 1, "the disk never was full");
    std::fs::remove_file(filler).unwrap();
    wait_until("the disk", || {
        let output = run(&mut command(&site, &["--user", "bert"]), &offer("Anna"));
        if output.status.success() { Ok(()) } else { Err(format!("{output:?}")) }
    });
    let weight = (said.len() + 2).to_string();
    assert_eq!(checked(&site, &offer("Anna"))["spam"]["weight"], *weight);
    milter.kill();
    let milter = site.start();
    assert_eq!(checked(&site, &offer("Anna"))["spam"]["weight"], *weight);
    assert!(milter.terminate().success());
}
