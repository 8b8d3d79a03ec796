// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon and its state directory: causes of a failed start, and the effects of a full disk.

use bulkmark_ledger::FILE_NAME;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::{Site, program, wait_for_some};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Starts a daemon that must fail, and returns its output.
fn fails(site: &Site) -> String {
    let daemon = site.spawn();
    let log = daemon.log.clone();
    let status = daemon.wait();
    assert_eq!(status.code(), Some(1), "{}", log.lines().join("\n"));
    let path = site.path("state").join(FILE_NAME).display().to_string();
    log.wait_for(0, &path)
}

#[test]
fn a_state_directory_that_cannot_be_used() {
    // The harness creates the directory, so this names one a level deeper.
    let site = Site::new("");
    let text = fs::read_to_string(site.config()).unwrap();
    let state = site.path("state").display().to_string();
    let start = |state_dir: &Path| {
        let config = site.path("other.toml");
        fs::write(&config, text.replace(&state, &state_dir.display().to_string())).unwrap();
        let output = Command::new(program()).args(["milter", "--config"]).arg(&config).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&state_dir.join(FILE_NAME).display().to_string()), "{told}");
        told
    };
    assert!(start(&site.path("missing")).contains("No such file or directory"));
    assert!(!site.path("missing").exists());
    fs::write(site.path("file"), "").unwrap();
    assert!(start(&site.path("file")).contains("Not a directory"));
    fs::create_dir_all(site.path("dir").join(FILE_NAME)).unwrap();
    start(&site.path("dir"));
}

#[test]
fn a_state_directory_that_cannot_be_written() {
    let site = Site::new("");
    site.config();
    let state = site.path("state");
    // Permissions do not stop root, but a read-only file system does.
    fs::set_permissions(&state, fs::Permissions::from_mode(0o555)).unwrap();
    let probe = state.join("probe");
    let mount = if fs::write(&probe, "").is_ok() {
        fs::remove_file(&probe).unwrap();
        let Some(mount) = Mount::new(&state, "ro,size=1m") else { return };
        Some(mount)
    } else {
        None
    };
    let told = fails(&site);
    assert!(told.contains("Read-only file system") || told.contains("Permission denied"), "{told}");
    drop(mount);
}

#[test]
fn one_ledger_for_one_daemon() {
    let site = Site::new("");
    let daemon = site.start();
    let other = Site::new("");
    let config = other.path("milter.toml");
    let text = fs::read_to_string(site.path("milter.toml")).unwrap();
    fs::write(&config, text.replace("control.sock", "control2.sock")).unwrap();
    let output = Command::new(program()).args(["milter", "--config"]).arg(&config).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "the ledger {} is in use by another process; is a milter already running on this state directory?",
        site.path("state").join(FILE_NAME).display()
    );
    assert!(told.contains(&expected), "{told}");
    // The first daemon is unaffected.
    assert_eq!(session(&daemon).message(&Mail::text("still here")).count(), Some(1));
}

#[test]
fn a_ledger_of_a_newer_format_is_refused() {
    let site = Site::new("");
    assert!(site.start().terminate().success());
    let file = site.path("state").join(FILE_NAME);
    {
        // The row as docs/ledger.md describes it: the value, and the CRC-32 of table, key and value.
        let (key, value) = ("format", "bulkmark ledger 99");
        let sum = crc32fast::hash(["meta", key, value].concat().as_bytes()).to_le_bytes();
        let db = redb::Database::open(&file).unwrap();
        let txn = db.begin_write().unwrap();
        let table = redb::TableDefinition::<&str, &[u8]>::new("meta");
        txn.open_table(table).unwrap().insert(key, &*[value.as_bytes(), &sum].concat()).unwrap();
        txn.commit().unwrap();
    }
    let told = fails(&site);
    assert!(
        told.contains("has format bulkmark ledger 99, but this configuration needs bulkmark ledger "),
        "{told}"
    );
}

#[test]
fn files_that_are_no_ledger_are_refused_and_kept() {
    for content in [&b""[..], b"a text of somebody\n", &[0; 8192]] {
        let site = Site::new("");
        site.config();
        let file = site.path("state").join(FILE_NAME);
        fs::write(&file, content).unwrap();
        let told = fails(&site);
        assert!(told.contains("is damaged ("), "{told}");
        assert_eq!(fs::read(&file).unwrap(), content, "it was changed");
    }
}

/// Fills the disk under a running daemon, and empties it again. Returns the answer to the messages in between.
fn fill_up(extra: &str) -> Option<String> {
    let site = Site::new(extra);
    site.config();
    let state = site.path("state");
    let _mount = Mount::new(&state, "size=6m")?;
    let daemon = site.start();
    let mut client = session(&daemon);
    let mail = |i: usize| Mail::text(&format!("message {i}"));
    for i in 0..30 {
        assert_eq!(client.message(&mail(i)).count(), Some(1));
    }

    let filler = state.join("filler");
    assert!(fs::write(&filler, vec![0x55; 8 << 20]).is_err(), "the disk is not full");
    let mut answered = 30;
    let refusal = loop {
        assert!(answered < 5000, "the ledger needs no space");
        let answer = client.message(&mail(answered));
        if answer.count().is_none() {
            break answer;
        }
        answered += 1;
    };
    // Other messages are counted, too.
    for i in answered..answered + 5 {
        assert_eq!(client.message(&mail(i)), refusal);
    }
    daemon.log.wait_for(0, "messages pass unjudged until the ledger can be written again");
    daemon.log.wait_for(0, &format!("make room there (df -h {};", state.display()));
    let status = |json: &[&str]| {
        let output =
            Command::new(program()).arg("status").args(json).arg("--config").arg(site.config()).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, told) = status(&[]);
    assert!(
        code == Some(1) && told.contains("\nNOTHING IS COUNTED: cannot write the ledger"),
        "{code:?} {told}"
    );
    assert!(status(&["--json"]).1.contains("\"ailment\":\"cannot write the ledger"));

    fs::remove_file(&filler).unwrap();
    let last = answered + 10;
    wait_for_some("a count", || client.message(&mail(last)).count().filter(|&count| count == 1));
    daemon.log.wait_for(0, "the ledger can be written again");
    assert_eq!(status(&[]).0, Some(0));
    for i in 0..answered + 5 {
        let before = u32::from(i < answered);
        assert_eq!(client.message(&mail(i)).count(), Some(before + 1), "message {i} of {answered}");
    }
    assert!(daemon.terminate().success());
    let verdict = refusal.added.first().map(|(_, value)| value.clone()).unwrap_or_default();
    Some(format!("{verdict}{}", refusal.reply))
}

#[test]
fn a_full_disk_leaves_mail_unjudged_and_counts_right() {
    if let Some(answer) = fill_up("[ledger]\ncapacity = 20000\n") {
        assert_eq!(answer, "unknown; reason=ledger-unavailable; host=mx.testc");
    }
}

/// The MTA chooses the reply, 451 with Postfix and Sendmail.
#[test]
fn a_full_disk_defers_mail_where_that_is_wanted() {
    if let Some(answer) = fill_up("on-failure = \"tempfail\"\n[ledger]\ncapacity = 20000\n") {
        assert!(answer == "t" || answer.starts_with("451"), "{answer}");
    }
}
