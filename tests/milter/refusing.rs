// SPDX-License-Identifier: GPL-3.0-or-later
//! The first steps of refusing and back again: a rehearsal, a share of recipients, a pause, allowed mailings, and the list of refused
//! messages per recipient.

use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::milter::{Answer, Mail, session};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::{Daemon, Site, crlf, page, program, wait_for_some};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// One copy is bulk.
const BULK_AT_ONCE: &str = "[thresholds]\nbody = 1\nmin-sources = 1\n";

fn send(daemon: &Daemon, recipients: &[&str]) -> Answer {
    let recipients = recipients.iter().map(|&to| to.to_owned()).collect();
    session(daemon).message(&Mail { recipients, ..Mail::text("a") })
}

fn is_refused(answer: &Answer) -> bool {
    answer.reply.starts_with("550 ")
}

/// The answer of a command about the site, as JSON.
fn ask(site: &Site, args: &[&str]) -> Value {
    let output = Command::new(program()).args(args).arg("--config").arg(site.path("milter.toml")).output();
    let output = output.unwrap();
    let all = serde_json::from_slice::<Value>(&output.stdout);
    let all = all.unwrap_or_else(|e| panic!("{args:?}: {e}: {output:?}"));
    if args[0] == "check" { all["messages"][0].clone() } else { all }
}

#[test]
fn a_rehearsal_refuses_nothing_and_says_what_it_would_refuse() {
    let mut site = Site::new(&format!(
        "{BULK_AT_ONCE}[actions]\nbulk = \"reject\"\nrehearse = true\n[status]\nlisten = \"127.0.0.1:0\"\n\
         [[policy]]\nname = \"sure\"\nmatch = {{ recipient = \"sure.test\" }}\nactions = {{ rehearse = false }}\n\
         [[policy]]\nname = \"mild\"\nmatch = {{ recipient = \"mild.test\" }}\nactions = {{ bulk = \"mark\" }}\n",
    ));
    let daemon = site.start();
    let marked = |recipients: &[&str]| {
        let answer = send(&daemon, recipients);
        assert_eq!(answer.reply, "c", "{recipients:?}");
        answer.verdict()
    };
    let told = marked(&["x@else.test"]);
    assert_eq!(told, "bulk; body=1; threshold=1; host=mx.test; policy=default; would=reject");
    daemon.log.wait_for(0, " policy=default would=reject signature=");
    assert!(is_refused(&send(&daemon, &["x@sure.test"])), "a policy that does not rehearse");
    // All recipients get one answer: a refusal for one of them is not hidden by a rehearsal, and an action that only marks is no rehearsal.
    assert!(marked(&["x@sure.test", "x@else.test"]).ends_with("; would=reject"));
    assert!(!marked(&["x@mild.test"]).contains("would="));
    assert!(!marked(&["x@mild.test", "x@else.test"]).contains("would="));
    let metrics = page::metrics(&daemon);
    assert_eq!(metrics["bulkmark_messages_rehearsed_total{action=\"reject\"}"], 2.0);
    assert_eq!(metrics["bulkmark_messages_rehearsed_total{action=\"discard\"}"], 0.0);
    let shown: Value = serde_json::from_str(&page::get(&daemon, "/status.json").1).unwrap();
    assert_eq!(shown["bulk"][0]["done"]["would reject"], 2, "{shown}");
    assert_eq!(shown["recent"].as_array().unwrap().iter().filter(|it| it["would"] == "reject").count(), 2);
    let of = |policy: &str, action: &str| {
        metrics[&format!(
            "bulkmark_policy_messages_total{{policy=\"{policy}\",verdict=\"bulk\",action=\"{action}\"}}"
        )]
    };
    assert_eq!((of("sure", "reject"), of("default", "mark"), of("mild", "mark")), (1.0, 2.0, 2.0));
    let customers = shown["policies"].as_array().unwrap();
    let sure = customers.iter().find(|it| it["policy"] == "sure").unwrap();
    assert_eq!((&sure["messages"], &sure["done"]["reject"]), (&1.into(), &1.into()), "{shown}");
    // The commands report the same.
    let text = "Subject: s\n\nThis is a message of many words, and it says: a\n";
    fs::write(site.path("m.eml"), crlf(text)).unwrap();
    let file = site.path("m.eml").display().to_string();
    let found = ask(&site, &["check", "--json", "--recipient", "x@else.test", &file]);
    assert_eq!((&found["action"], &found["would"]), (&"mark".into(), &"reject".into()), "{found}");
    assert_eq!(found["rehearsal"], "actions.rehearse is true");
    assert_eq!(ask(&site, &["explain", "--json", "--recipient", "x@else.test", &file])["would"], "reject");
    assert!(found["held"].is_null(), "filters act on it as on what is marked");
    // Now without the rehearsal.
    site.extra = site.extra.replace("rehearse = true", "rehearse = false");
    site.config();
    daemon.reload();
    assert!(is_refused(&send(&daemon, &["x@else.test"])));
}

/// A part of recipients consists of the same ones at each message, server and start.
#[test]
fn a_part_of_recipients_is_refused_and_always_the_same_ones() {
    let site = |part: f64| {
        Site::new(&format!(
            "{BULK_AT_ONCE}[actions]\nbulk = \"reject\"\nrehearse = {{ recipients = {part:.1} }}\n"
        ))
    };
    let refused = |site: &Site| -> Vec<usize> {
        let daemon = site.start();
        let refused = |n: &usize| is_refused(&send(&daemon, &[&format!("user{n}@box.test")]));
        (0..60).filter(refused).collect()
    };
    let fewer = site(0.7);
    let first = refused(&fewer);
    assert!((8..=30).contains(&first.len()), "{first:?}");
    assert_eq!(refused(&fewer), first, "after a restart");
    let more = refused(&site(0.4));
    assert!(more.len() > first.len() && first.iter().all(|n| more.contains(n)), "{first:?} {more:?}");
    assert_eq!(refused(&site(1.0)), [0; 0]);
    // A message to several recipients is refused if all of them are in the rest, whatever the spelling.
    let daemon = fewer.start();
    let outside = (0..60).find(|n| !first.contains(n)).unwrap();
    let [one, two] = [first[0], first[1]].map(|n| format!("User{n}+news@BOX.test"));
    assert!(is_refused(&send(&daemon, &[&one, &two])));
    let answer = send(&daemon, &[&one, &format!("user{outside}@box.test")]);
    assert!(answer.reply == "c" && answer.verdict().ends_with("; would=reject"), "{answer:?}");
}

/// The output of a command, and its exit code.
fn run(site: &Site, args: &[&str]) -> (i32, String) {
    let output = Command::new(program()).args(args).arg("--config").arg(site.path("milter.toml")).output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_pause_refuses_nothing_until_it_is_ended_and_outlives_a_restart() {
    let mut site = Site::new(&format!(
        "{BULK_AT_ONCE}[actions]\nbulk = \"reject\"\n[status]\nlisten = \"127.0.0.1:0\"\n"
    ));
    site.listen = format!("inet:127.0.0.1:{}", free_port());
    let daemon = site.start();
    assert!(is_refused(&send(&daemon, &["x@box.test"])));
    let (code, text) = run(&site, &["pause", "--for", "2h", "--by", "anna", "--reason", "a complaint"]);
    assert!(code == 0 && text.contains(", by anna: a complaint; bulk and spam are only marked"), "{text}");
    daemon.log.wait_for(0, "paused for 7200 s: nothing is refused, by=anna reason=\"a complaint\"");
    let told = send(&daemon, &["x@box.test"]);
    assert!(told.reply == "c" && told.verdict().ends_with("; would=reject"), "{told:?}");
    assert_eq!(page::metrics(&daemon)["bulkmark_paused"], 1.0);
    let shown: Value = serde_json::from_str(&page::get(&daemon, "/status.json").1).unwrap();
    assert_eq!(shown["overview"]["pause"]["by"], "anna", "{shown}");
    assert!(daemon.terminate().success());
    let daemon = site.start();
    assert_eq!(send(&daemon, &["x@box.test"]).reply, "c", "after a restart");
    assert!(run(&site, &["status"]).1.contains("\nPAUSED: paused until "));
    let doctor = ask(&site, &["doctor", "--json"]);
    let said = |check: &str| {
        let checks = doctor["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|one| one["check"] == check)
            .unwrap_or_else(|| panic!("{check}: {doctor:#}"))
            .clone()
    };
    assert!(doctor.to_string().contains("end it with `bulkmark resume`"), "{doctor:#}");
    assert_eq!(said("canary")["level"], "ok", "it would be refused, as the configuration says: {doctor:#}");
    fs::write(site.path("m.eml"), crlf("Subject: s\n\nThis is a message of many words, and it says: a\n"))
        .unwrap();
    let file = site.path("m.eml").display().to_string();
    assert_eq!(ask(&site, &["check", "--json", &file])["rehearsal"], "bulkmark is paused");
    assert_eq!(run(&site, &["resume"]).0, 0);
    assert!(is_refused(&send(&daemon, &["x@box.test"])));
    assert_eq!(page::metrics(&daemon)["bulkmark_paused"], 0.0);
    drop(daemon);
    assert_eq!(run(&site, &["pause"]).0, 75, "nobody answers");
}

#[test]
fn an_allowed_mailing_is_never_refused_though_its_copies_differ() {
    let site = Site::new(
        "[thresholds]\nbody = 1\nnear = 1\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n",
    );
    let daemon = site.start();
    let sends = |daemon: &Daemon, raw: &[u8]| session(daemon).message(&Mail::raw(raw));
    assert!(is_refused(&sends(&daemon, &offer("Anna"))));
    fs::write(site.path("offer.eml"), offer("Anna")).unwrap();
    let file = site.path("offer.eml").display().to_string();
    let allowed =
        ask(&site, &["allow", "--json", "--for", "30d", "--by", "anna", "--reason", "wanted", &file]);
    let name = allowed["mailing"]["signatures"][0].as_str().unwrap().to_owned();
    for to in ["Anna", "Benedikt", "Charlotte"] {
        let answer = sends(&daemon, &offer(to));
        assert!(answer.reply == "c" && answer.verdict().contains("; held=allowed"), "{to}: {answer:?}");
    }
    daemon.log.wait_for(0, " held=allowed ");
    assert!(is_refused(&sends(&daemon, &letter(1))), "another one");
    assert_eq!(ask(&site, &["check", "--json", &file])["held"], "allowed");
    assert!(daemon.terminate().success());
    let daemon = site.start();
    assert_eq!(sends(&daemon, &offer("Dora")).reply, "c", "after a restart");
    let (_, list) = run(&site, &["allow", "--list"]);
    assert!(list.starts_with(&name) && list.contains(", by anna: wanted"), "{list}");
    assert_eq!(run(&site, &["allow", "--remove", "0000"]).0, 1);
    assert_eq!(run(&site, &["allow", "--remove", &name[..6]]).0, 0);
    assert!(is_refused(&sends(&daemon, &offer("Emil"))));
    // By the signature in log and header: that text alone.
    let line = daemon.log.wait_for(0, " action=reject ");
    let signature = line.split(" signature=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(run(&site, &["allow", signature]).0, 0);
    assert_eq!(sends(&daemon, &offer("Emil")).reply, "c");
    assert!(is_refused(&sends(&daemon, &offer("Friederike"))));
}

/// The results of `bulkmark refusals`, once there are so many.
fn refusals(site: &Site, number: u64, args: &[&str]) -> Vec<Value> {
    wait_for_some("refusals", || {
        let found = ask(site, &[&["refusals", "--json"], args].concat());
        (found["total"] == number).then(|| found["refusals"].as_array().unwrap().clone())
    })
}

#[test]
fn what_was_refused_for_a_recipient_is_found_with_the_command_that_allows_it() {
    let mut site = Site::new(
        "[thresholds]\nbody = 1\nnear = 1\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n\
         [refusals]\ndays = 14\n[[policy]]\nname = \"soft\"\nmatch = { recipient = \"soft.test\" }\n\
         actions = { rehearse = true }\n",
    );
    let daemon = site.start();
    let sends = |to: &str, raw: &[u8]| {
        session(&daemon).message(&Mail { recipients: vec![to.to_owned()], ..Mail::raw(raw) })
    };
    assert!(is_refused(&sends("Anna+news@box.test", &offer("Anna"))));
    assert!(is_refused(&sends("ben@box.test", &letter(1))));
    assert_eq!(sends("anna@soft.test", &letter(1)).reply, "c");
    assert_eq!(refusals(&site, 3, &[]).len(), 3);
    let of_anna = refusals(&site, 1, &["--recipient", "anna@box.test", "--since", "7d"]);
    let one = &of_anna[0];
    assert_eq!((&one["action"], &one["rehearsed"]), (&"reject".into(), &false.into()), "{one}");
    assert_eq!((&one["to"][0], &one["policy"]), (&"anna+news@box.test".into(), &"default".into()), "{one}");
    let would = &refusals(&site, 1, &["--recipient", "@soft.test"])[0];
    assert_eq!((&would["action"], &would["rehearsed"]), (&"reject".into(), &true.into()), "{would}");
    refusals(&site, 3, &["--client", "192.0.2.0/24"]);
    refusals(&site, 0, &["--client", "198.51.100.7"]);
    let signature = one["signatures"][0].as_str().unwrap();
    refusals(&site, 1, &["--mailing", &signature[..20]]);
    // The output for people names the command to type, which allows copies that differ, too.
    assert_eq!(run(&site, &["refusals", "--limit", "10001"]).0, 2, "the memory has a bound");
    let (code, text) = run(&site, &["refusals", "--recipient", "anna@box.test"]);
    let command = one["allow"].as_str().unwrap();
    assert!(code == 0 && text.contains(&format!("to allow the mailing: {command}")), "{text}");
    let programs = std::path::Path::new(program()).parent().unwrap();
    let pasted = Command::new("/bin/sh").args(["-c", command]).env("PATH", programs).output().unwrap();
    assert!(pasted.status.success(), "{command}: it names the configuration: {pasted:?}");
    assert!(sends("anna@box.test", &offer("Benedikt")).verdict().contains("; held=allowed"));
    // They are deleted where the configuration no longer wants them.
    assert!(daemon.terminate().success());
    site.extra = site.extra.replace("days = 14", "days = 0");
    let _daemon = site.start();
    assert_eq!(run(&site, &["refusals"]).0, 2);
    let left = fs::read_dir(site.path("state")).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with("refusals-")));
}

/// Whoever looks into the queue sees why a message is held.
#[test]
fn mail_of_an_account_over_its_limit_is_held_as_that() {
    let site = Site::new(
        "exempt = []\n[outbound]\nrecipients = 2\naction = \"quarantine\"\n[outbound.match]\nlogin = [\"*\"]\n",
    );
    let daemon = site.start();
    let mut client = session(&daemon);
    client.login = Some("anna".to_owned());
    let held: Vec<_> =
        (0..4).map(|n| client.message(&Mail::raw(&letter(n))).quarantine.unwrap_or_default()).collect();
    assert_eq!([&*held[0], &*held[3]], ["", "mail of an account over its limit (bulkmark)"], "{held:?}");
}
