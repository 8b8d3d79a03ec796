// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark correspondents forget` and `bulkmark ledger forget`.

use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::{Site, program, status};
use std::process::Command;

/// Sends a letter from this user to Ben and Carl.
fn write(client: &mut Client, user: &str) {
    client.login = Some(user.to_owned());
    let recipients = ["ben@friends.test", "carl@friends.test"].map(str::to_owned).to_vec();
    let mut mail = Mail::text(&format!("a letter of {user}"));
    (mail.sender, mail.recipients) = (format!("{user}@box.test"), recipients);
    assert_eq!(client.message(&mail).reply, "c");
}

/// The addresses that one user wrote to are erased, on disk too; other users' addresses stay.
#[test]
fn the_correspondents_of_one_user_are_erased() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let mut daemon = site.start();
    let mut client: Client = session(&daemon);
    ["anna", "dora"].iter().for_each(|user| write(&mut client, user));
    assert_eq!(status(&site)["correspondents"], 4);
    let output = Command::new(program())
        .args(["correspondents", "forget", "Anna+news@box.test", "--config"])
        .arg(site.config())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, "2 correspondents of anna@box.test are forgotten\n");
    assert_eq!(status(&site)["correspondents"], 2);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let _daemon = site.start();
    assert_eq!(status(&site)["correspondents"], 2, "they are not on disk, either");
}

/// The counts of one mailing start over, also after a restart, until this is undone; others count as before.
#[test]
fn the_counts_of_a_mailing_start_over() {
    let site = Site::new("exempt = [\"authenticated\"]\n[thresholds]\nbody = 5\nnear = 5\n");
    let mut daemon = site.start();
    let run = |words: &[&str]| {
        let output = Command::new(program())
            .args(["ledger", "forget"])
            .args(words)
            .arg("--config")
            .arg(site.config())
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let (one, other) = (offer("anna"), letter(2));
    let mut client: Client = session(&daemon);
    let send = |client: &mut Client, letter: &[u8]| {
        let answer = client.message(&Mail::raw(letter));
        (answer.count().unwrap(), answer.header().starts_with("bulk"))
    };
    for _ in 0..6 {
        send(&mut client, &one);
        send(&mut client, &other);
    }
    assert_eq!([send(&mut client, &one), send(&mut client, &other)], [(7, true), (7, true)]);
    let file = site.path("one.eml");
    std::fs::write(&file, &one).unwrap();
    let told = run(&[file.to_str().unwrap(), "--reason", "a mistake"]);
    assert!(told.contains(" start over: 7 exact and "), "{told}");
    assert_eq!([send(&mut client, &one), send(&mut client, &other)], [(1, false), (8, true)]);
    assert!(site.check(&offer("dora")).1.contains("\"clean\""), "a copy that differs is of the mailing, too");
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let daemon = site.start();
    let mut client: Client = session(&daemon);
    assert_eq!(send(&mut client, &one), (2, false));
    let listed = run(&["--list"]);
    let name = listed.split(' ').next().unwrap();
    assert!(name.len() == 32 && listed.trim_end().ends_with(": a mistake"), "{listed}");
    assert!(run(&["--remove", &name[..8]]).ends_with(" counts as before\n"));
    assert_eq!(send(&mut client, &one), (10, true));
    let unknown = run(&["--remove", "ffff"]);
    assert!(unknown.contains("no such mailing begins with ffff"), "{unknown}");
}

/// Outbound mail has counts of its own, from which nothing is taken off: an account that was taken over is still seen.
#[test]
fn outbound_counts_stay_when_those_of_incoming_mail_start_over() {
    let site = Site::new("[outbound.match]\nlogin = \"*\"\n");
    let daemon = site.start();
    let mut client: Client = session(&daemon);
    let text = letter(3);
    for login in [None, None, None, Some("anna"), Some("anna")] {
        client.login = login.map(str::to_owned);
        assert_eq!(client.message(&Mail::raw(&text)).reply, "c");
    }
    let file = site.path("m.eml");
    std::fs::write(&file, &text).unwrap();
    let run = |words: &[&str]| {
        let output = Command::new(program())
            .args(words)
            .arg(&file)
            .arg("--config")
            .arg(site.config())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let count = |login: &[&str]| {
        let answer = run(&[&["check", "--json"], login].concat());
        bulkmark_testing::first_message(&answer)["body"]["count"].clone()
    };
    assert_eq!((count(&[]), count(&["--login", "anna"])), (3.into(), 2.into()));
    run(&["ledger", "forget"]);
    assert_eq!((count(&[]), count(&["--login", "anna"])), (0.into(), 2.into()));
}
