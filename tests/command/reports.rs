// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports in the administrator's view, and their withdrawal: `bulkmark report list`, and the log.

use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::reports::{assert_counted, command, listed, report, run};
use bulkmark_testing::{Site, program};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

/// The weight of reports of a message as spam, from `check`.
fn weight(site: &Site, message: &[u8]) -> Value {
    let (_, answer) = site.check(message);
    let listed: Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
    listed["spam"]["weight"].clone()
}

/// The mailing that so many called spam. Those whose last report is of one second come in no order.
fn mailing(all: &Value, spam: u64) -> &Value {
    let mailings = all["mailings"].as_array().unwrap();
    mailings.iter().find(|said| said["spam"] == spam).unwrap_or_else(|| panic!("{all}"))
}

/// The administrator sees the reported mailings, and each reporter's trust; withdrawn reports of one user do not return at a start after a
/// crash.
#[test]
fn the_administrator_sees_what_was_said_and_takes_it_back() {
    let mut site = Site::new(
        "exempt = [\"authenticated\"]\n[user-reports]\ntrust = { new-reporter = 0.5 }\n[status]\nshow = [\"subjects\"]\n",
    );
    let mut milter = site.start();
    assert_eq!(listed(&site, &[])["mailings"], json!([]));
    for (user, name) in [("anna", "Anna"), ("bert", "Bert")] {
        assert_counted(&report(&site, &["--user", user], &offer(name)), "counted");
    }
    let other = letter(1);
    report(&site, &["--user", "anna"], &other);
    report(&site, &["--user", "carl", "--not-spam"], &other);
    let all = listed(&site, &[]);
    let mailings = all["mailings"].as_array().unwrap();
    // Both copies of the offer are one mailing.
    assert_eq!(mailings.len(), 2, "{all}");
    let offers = mailing(&all, 2);
    assert_eq!(
        (&offers["weight"], &offers["subject"]),
        (&1.0.into(), &"Anna, your parcel waits".into()),
        "{all}"
    );
    assert_eq!(mailing(&all, 1)["not-spam"], 1, "{all}");
    let anna = listed(&site, &["--user", "anna"]);
    assert_eq!(anna["reporters"].as_array().unwrap().len(), 1, "{anna}");
    assert_eq!((&anna["reporters"][0]["weight"], &anna["reporters"][0]["spam"]), (&0.5.into(), &2.into()));
    assert!(!all.to_string().contains("anna"), "{all}");
    // A reporter of another kind with this name is a different one, and unknown names are errors of typing.
    for words in
        [&["list", "--trap", "anna"][..], &["list", "--user", "ana"], &["forget", "--all", "--user", "ana"]]
    {
        let mut command = Command::new(program());
        let output =
            command.arg("report").args(words).arg("--control").arg(site.path("control.sock")).output();
        let output = output.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), &*told),
            (Some(1), "bulkmark: no reporter with this name is known here\n")
        );
    }

    milter.kill();
    milter = site.start();
    assert_eq!(listed(&site, &[]), all, "nothing that was answered is lost");
    assert!(listed(&site, &["forget", "--user", "anna"])["taken-back"].as_u64().unwrap() > 3);
    milter.kill();
    milter = site.start();
    let left = listed(&site, &[]);
    let offers = left["mailings"].as_array().unwrap().iter().find(|said| said["subject"] != "x").unwrap();
    assert_eq!((&offers["spam"], &offers["weight"]), (&1.into(), &0.5.into()), "{left}");
    assert_eq!(listed(&site, &["forget", "--user", "anna"])["taken-back"], 0);
    assert_eq!(weight(&site, &offer("Dora")), "0.5");
    assert!(milter.terminate().success());
    site.extra.clear();
    let silent =
        Command::new(program()).args(["report", "list", "--control", "/nonexistent"]).output().unwrap();
    assert_eq!(silent.status.code(), Some(75), "{silent:?}");
}

/// The output of `bulkmark report list`: exit code, and both outputs together.
fn printed(site: &Site, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    let (verb, arguments) = match arguments {
        ["forget", rest @ ..] => (&["forget", "--all"][..], rest),
        rest => (&["list"][..], rest),
    };
    let output = command
        .arg("report")
        .args(verb)
        .arg("--control")
        .arg(site.path("control.sock"))
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// The listed hash selects a reporter for viewing and withdrawal, and the kind is shown; one mailing's reporters are shown.
#[test]
fn who_is_listed_is_undone_by_the_hash() {
    let site = Site::new(
        "exempt = [\"authenticated\"]\n[user-reports]\ntrust = { new-reporter = 0.5 }\n[traps]\nrecipients = [\"@trap.test\"]\n",
    );
    let milter = site.start();
    let to_trap = Mail { recipients: vec!["x@trap.test".to_owned()], ..Mail::raw(&offer("Anna")) };
    session(&milter).message(&to_trap);
    for user in ["bert", "carl"] {
        assert_counted(&report(&site, &["--user", user], &offer("Anna")), "counted");
    }
    report(&site, &["--user", "dora"], &letter(1));
    let all = listed(&site, &[]);
    let of = |user: &str| {
        listed(&site, &["--user", user])["reporters"][0]["reporter"].as_str().unwrap().to_owned()
    };
    let (bert, carl, dora) = (of("bert"), of("carl"), of("dora"));
    let kind = |hash: &str| {
        let reporters = all["reporters"].as_array().unwrap();
        reporters.iter().find(|by| by["reporter"] == hash).map(|by| by["kind"].as_str().unwrap().to_owned())
    };
    assert_eq!(kind(&bert).as_deref(), Some("user"));
    let trap =
        listed(&site, &["--trap", "@trap.test"])["reporters"][0]["reporter"].as_str().unwrap().to_owned();
    assert_eq!(kind(&trap).as_deref(), Some("trap"));
    let (code, list) = printed(&site, &[]);
    assert_eq!(code, Some(0));
    let line = |hash: &str| {
        list.lines().find(|line| line.starts_with(&hash[..12])).unwrap_or_else(|| panic!("{list}"))
    };
    assert!(line(&trap).contains(" trap ") && line(&carl).contains(" user "), "{list}");

    // One mailing's reporters, with their weights.
    let mailing = mailing(&all, 3)["mailing"].as_str().unwrap();
    let spoken = listed(&site, &["--mailing", &mailing[..12]]);
    let by: Vec<&str> =
        spoken["reporters"].as_array().unwrap().iter().map(|by| by["reporter"].as_str().unwrap()).collect();
    assert_eq!((by.len(), by[0], spoken["mailing"].as_str()), (3, &*trap, Some(mailing)), "{spoken}");
    assert!(by.contains(&&*bert) && by.contains(&&*carl) && !by.contains(&&*dora), "{spoken}");
    let second = &spoken["reporters"][1];
    assert_eq!(
        (&second["spam"], &second["weight"], &second["kind"]),
        (&true.into(), &0.5.into(), &"user".into())
    );
    let (_, text) = printed(&site, &["--mailing", mailing]);
    assert!(text.contains(&format!("{}  trap ", &trap[..12])) && text.contains("spam"), "{text}");

    // The beginning of a hash is enough for the list and for withdrawal.
    let only = listed(&site, &["--reporter", &bert[..12]]);
    assert_eq!(
        (&only["reporters"][0]["reporter"], only["reporters"].as_array().unwrap().len()),
        (&(*bert).into(), 1)
    );
    assert_eq!(only["mailings"].as_array().unwrap().len(), 1);
    for hash in [&trap, &bert] {
        assert!(listed(&site, &["forget", "--reporter", &hash[..12]])["taken-back"].as_u64() > Some(3));
    }
    assert_eq!(weight(&site, &offer("Anna")), "0.5", "Carl's word is left");
    assert_eq!(listed(&site, &["--mailing", mailing])["reporters"][0]["reporter"], *carl);

    assert!(milter.terminate().success());
}

/// No match, several, and an invalid hash: each is an error with its reason, and withdraws nothing.
#[test]
fn a_hash_that_is_not_clear_is_refused() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let milter = site.start();
    for (hash, why) in [
        ("ffffffffffffffff", "no reporter that is known here begins with ffffffffffffffff"),
        ("anna", "found \"anna\", expected the first of 32 hexadecimal digits"),
    ] {
        for arguments in [&["--reporter", hash][..], &["forget", "--reporter", hash]] {
            let (code, text) = printed(&site, arguments);
            assert!(code == Some(1) && text.contains(why), "{code:?} {text}");
        }
    }
    assert!(
        printed(&site, &["--mailing", "ffffffffffffffff"]).1.contains("no mailing that is known here begins")
    );
    // Of seventeen hashes two begin with the same digit.
    for n in 0..17 {
        report(&site, &["--user", &n.to_string()], &letter(1));
    }
    let several = (0..16).map(|digit| printed(&site, &["forget", "--reporter", &format!("{digit:x}")]));
    let several: Vec<_> = several.filter(|(_, text)| text.contains("reporters begin with")).collect();
    assert!(!several.is_empty() && several.iter().all(|(code, _)| *code == Some(1)), "{several:?}");
    assert!(several[0].1.contains("give more digits"), "{several:?}");
    assert_eq!(printed(&site, &["forget"]).0, Some(2), "of whom is missing");
    let neither = Command::new(program()).args(["report", "forget", "--user", "0"]).output().unwrap();
    assert_eq!(neither.status.code(), Some(2), "neither --all nor a file: nothing is withdrawn by oversight");
    assert!(milter.terminate().success());
}

/// The log names reporters only if configured; then no byte of a name breaks a line, and the hash can be found by it.
#[test]
fn the_log_names_reporters_where_it_may() {
    let mut site = Site::new("exempt = [\"authenticated\"]\n");
    let milter = site.start();
    report(&site, &["--user", "anna"], &offer("Anna"));
    let hash = listed(&site, &["--user", "anna"])["reporters"][0]["reporter"].as_str().unwrap().to_owned();
    let line = milter.log.wait_for(0, "reported: spam by=");
    assert!(line.contains(&hash) && !line.contains("anna"), "{line}");
    site.extra += "[user-reports]\nlog-names = true\n";
    site.config();
    assert!(milter.reload().contains("read again"));
    report(&site, &["--user", "anna", "--not-spam"], &offer("Anna"));
    let line = milter.log.wait_for(0, "reported: not-spam by=");
    assert!(line.contains(&format!("by={hash} ")) && line.ends_with(" name=user:anna"), "{line}");
    let mut user = OsStr::new("--user=").to_owned();
    user.push(OsStr::from_bytes(b"a b\n\xff\" name=user:anna"));
    run(command(&site, &[]).arg(user), &offer("Bert"));
    milter.log.wait_for(0, "name=user:a\\u{20}b\\u{a}\\xff\\u{22}\\u{20}name=user:anna");
    assert!(milter.terminate().success());
}
