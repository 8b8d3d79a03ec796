// SPDX-License-Identifier: GPL-3.0-or-later
//! A new ledger replaces the old one when the federation key changes, or on the administrator's command. Nothing is lost silently.

use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Site, program};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Exit code and all output of `bulkmark`, with this site's configuration.
fn bulkmark(site: &Site, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(program()).args(arguments).arg(site.config()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// A `[ledger]` table that names a key with this content.
fn table(site: &Site, content: &str) -> String {
    let path = site.path("federation.key");
    fs::write(&path, content).unwrap();
    format!("[ledger]\nfederation-key-file = \"{}\"\n", path.display())
}

/// The ledgers that were put aside.
fn kept(site: &Site) -> Vec<PathBuf> {
    let all = fs::read_dir(site.path("state")).unwrap().map(|entry| entry.unwrap().path());
    let is_kept = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("ledger-");
    all.filter(is_kept).collect()
}

/// The messages before the restart, with the daemon and without it; at the restart; and after the old key was restored.
#[test]
fn a_new_key_begins_a_new_ledger_and_the_old_one_comes_back() {
    let mut site = Site::new("exempt = [\"authenticated\"]\n");
    let daemon = site.start();
    send(&daemon, &letter(1), 3);
    assert_eq!(
        bulkmark(&site, &["config", "check"]),
        (0, format!("{}: ok\n", site.path("milter.toml").display()))
    );

    let without = site.extra.clone();
    site.extra += &table(&site, "00112233445566778899aabbccddeeff");
    let said = "at the next start the milter begins a new ledger: that in ";
    for running in [Some(daemon), None] {
        let (code, text) = bulkmark(&site, &["config", "check"]);
        assert!(code == 0 && text.contains(said) && text.contains("another federation key"), "{text}");
        assert!(running.is_none_or(|daemon| daemon.terminate().success()));
    }
    assert_eq!(kept(&site), Vec::<PathBuf>::new(), "asking changes nothing");

    let daemon = site.start();
    let line = daemon.log.wait_for(0, "was made under another federation key");
    let [old] = &kept(&site)[..] else { panic!("{:?}", kept(&site)) };
    assert!(line.contains(&format!("It is kept as {}; a new one begins", old.display())), "{line}");
    send(&daemon, &letter(1), 1);
    assert_eq!(count(&site, &letter(1)), 1);
    assert!(daemon.terminate().success());

    site.extra = without;
    let daemon = site.start();
    daemon.log.wait_for(0, &format!("that of this key, which was kept as {}, goes on", old.display()));
    assert_eq!(count(&site, &letter(1)), 3, "its counts are there again");
    assert_eq!(kept(&site).len(), 1, "that of the other key is kept now");
}

/// Reports that no server took are announced before and after.
#[test]
fn reports_that_were_never_sent_are_told() {
    let server = Server::new("");
    let entry = server.entry("mx", "report");
    let mut site = milter(&[entry]);
    let daemon = site.start();
    send(&daemon, &letter(2), 5);
    assert!(daemon.terminate().success());
    site.extra += &table(&site, "00112233445566778899aabbccddeeff");
    let (_, text) = bulkmark(&site, &["config", "check"]);
    let unsent = text.split("kept beside it, with ").nth(1).unwrap_or_else(|| panic!("{text}"));
    let number: u32 = unsent.split(' ').next().unwrap().parse().unwrap();
    assert!(number > 0 && unsent.contains("reports that no server took"), "{text}");
    let daemon = site.start();
    daemon.log.wait_for(0, &format!("with {number} reports that no server took; a new one begins"));
}

/// A new ledger for any other reason needs the administrator's command.
#[test]
fn an_administrator_begins_anew() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let begin = || bulkmark(&site, &["ledger", "begin", "--config"]);
    let daemon = site.start();
    send(&daemon, &letter(3), 2);
    let (code, text) = begin();
    assert!(code == 2 && text.contains("is in use by another process"), "{code} {text}");
    assert!(daemon.terminate().success());
    // A server does not take a milter's ledger.
    let server = Server { site: Site::new(""), ..Server::new("") };
    fs::create_dir_all(server.site.path("state")).unwrap();
    fs::copy(site.path("state/ledger.redb"), server.site.path("state/ledger.redb")).unwrap();
    let refused = server.spawn();
    let line = refused.log.wait_for(0, "has role milter, but this configuration needs server");
    assert!(line.contains("bulkmark ledger begin keeps it beside a new one"), "{line}");
    assert!(!refused.wait().success());

    let checked = Command::new(program()).args(["config", "check"]).arg(server.config()).output().unwrap();
    let text = String::from_utf8_lossy(&checked.stderr);
    assert_eq!(checked.status.code(), Some(78), "{text}");
    assert!(text.contains("the daemon will not start: the ledger "), "{text}");

    let (code, text) = begin();
    let [old] = &kept(&site)[..] else { panic!("{text}") };
    assert!(code == 0 && text.contains(&format!("the ledger is kept as {};", old.display())), "{text}");
    let daemon = site.start();
    send(&daemon, &letter(3), 1);
    wait_for(&site, &letter(3), 1);
    assert!(daemon.terminate().success());
    let info = Command::new(program()).args(["ledger", "verify"]).arg(old).output().unwrap();
    assert!(info.status.success(), "what is kept can be read");
    // A damaged ledger is replaced, too.
    fs::write(site.path("state/ledger.redb"), "no ledger").unwrap();
    let (code, text) = begin();
    assert!(code == 0 && kept(&site).len() == 2, "{text}");
    assert_eq!(
        begin().1,
        format!(
            "there is no ledger in {}; the milter begins one at its start\n",
            site.path("state").display()
        )
    );
}

/// A site changes its key, and keeps its counts and its white-list entries.
#[test]
fn a_new_key_beside_the_old_one_loses_no_count() {
    let plain = "exempt = [\"authenticated\"]\n[whitelist]\nfiles = [\"DIR/wanted\"]\n";
    let mut site = Site::new("");
    let plain = plain.replace("DIR", &site.path("").display().to_string());
    fs::write(site.path("wanted"), "").unwrap();
    let keys = |site: &Site, names: &[&str]| {
        let files = names.iter().map(|name| {
            let path = site.path(name);
            fs::write(&path, name.repeat(16)).unwrap();
            path.display().to_string()
        });
        format!("federation-key-file = {:?}\n", files.collect::<Vec<_>>())
    };
    site.extra = format!("{plain}[ledger]\n{}", keys(&site, &["old"]));
    let daemon = site.start();
    send(&daemon, &letter(4), 15);
    fs::write(site.path("letter.eml"), letter(4)).unwrap();
    let of_letter = |site: &Site, command: &str| {
        let mut run = Command::new(program());
        let output = run.args([command, "--config"]).args([site.config(), site.path("letter.eml")]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let text = of_letter(&site, "signature");
    let body = text.lines().find_map(|line| line.split("\tbody\t").nth(1));
    let signature = body.unwrap_or_else(|| panic!("{text}")).to_owned();
    assert!(daemon.terminate().success());

    site.extra = format!("{plain}[ledger]\n{}", keys(&site, &["new", "old"]));
    let (_, text) = bulkmark(&site, &["config", "check"]);
    assert!(!text.contains("new ledger"), "{text}");
    let daemon = site.start();
    daemon
        .log
        .wait_for(0, "messages are reported under the new key, and their counts under the old one are added");
    send(&daemon, &letter(4), 5);
    assert_eq!(count(&site, &letter(4)), 20);
    let text = of_letter(&site, "explain");
    assert!(text.contains("counted under the old federation key, and included: body 15, near 15"), "{text}");
    fs::write(site.path("wanted"), format!("signature {signature}\n")).unwrap();
    daemon.reload();
    assert_eq!(site.check(&letter(4)).0, 0, "an entry with the old signature");
    assert!(daemon.terminate().success());

    // The old key is removed, and may return.
    let new = format!("{plain}[ledger]\n{}", keys(&site, &["new"]));
    let both = std::mem::replace(&mut site.extra, new);
    let (_, text) = bulkmark(&site, &["config", "check"]);
    assert!(!text.contains("new ledger"), "{text}");
    let daemon = site.start();
    assert_eq!(count(&site, &letter(4)), 5);
    assert!(daemon.terminate().success());
    site.extra = both;
    let daemon = site.start();
    assert_eq!(count(&site, &letter(4)), 20);
    assert!(daemon.terminate().success());
    assert_eq!(kept(&site), Vec::<PathBuf>::new());
}
