// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports: `bulkmark report add`, through kills and a federation, to the verdict `spam`. Real processes and sockets.

use bulkmark_samples::prose::Prose;
use bulkmark_testing::letters::offer;
use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::page::{STATUS, get, metrics};
use bulkmark_testing::reports::{assert_counted, command, listed, report, run};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, crlf, first_message, program, wait_until};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

/// A user without history is trusted in full.
const TRUSTING: &str = "exempt = [\"authenticated\"]\n[user-reports]\ntrust = { new-reporter = 1.0 }\n";

fn verdict(milter: &Daemon, message: &[u8]) -> String {
    session(milter).message(&Mail::raw(message)).header().to_owned()
}

fn checked(site: &Site, message: &[u8]) -> Value {
    let (_, answer) = site.check(message);
    serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

/// Waits until a milter's `check` returns this verdict, with this weight.
#[track_caller]
fn wait_for(site: &Site, message: &[u8], verdict: &str, weight: Option<&str>) {
    wait_until("user reports", || {
        let listed = checked(site, message);
        let is_so = listed["verdict"] == verdict && listed["spam"]["weight"].as_str() == weight;
        if is_so { Ok(()) } else { Err(listed.to_string()) }
    });
}

/// Sends another copy to a milter once its `check` returns this verdict, and returns the header. On a busy machine a server may not answer
/// within the half second that a milter with a partial copy waits for it; then the copy passes, as it should, and another one is sent once
/// `check` returns the verdict again.
fn wait_for_header(
    site: &Site,
    milter: &Daemon,
    message: &[u8],
    (said, weight): (&str, Option<&str>),
) -> String {
    let mut last = String::new();
    for _ in 0..10 {
        wait_for(site, message, said, weight);
        last = verdict(milter, message);
        if last.starts_with(&format!("{said}; body=")) {
            return last;
        }
    }
    panic!("{last}");
}

/// A folder may hold entries that are no files, and files with names that somebody else made up.
#[test]
fn what_is_no_file_is_not_waited_for_and_no_name_moves_a_cursor() {
    let site = Site::new("");
    let _daemon = site.start();
    let folder = site.path("folder");
    std::fs::create_dir(&folder).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("a-pipe")).status().unwrap().success());
    std::os::unix::fs::symlink(folder.join("a-pipe"), folder.join("b-link")).unwrap();
    std::fs::write(folder.join("c\u{1b}[2J.eml"), offer("Anna")).unwrap();
    std::fs::write(folder.join("d\u{1b}]0;x"), b"\0\0\0").unwrap();
    let output = Command::new(program())
        .args(["report", "add", "--user", "anna", "--control"])
        .arg(site.path("control.sock"))
        .arg(&folder)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("c\\u{1b}[2J.eml: counted as spam"), "{out} {err}");
    for pipe in ["a-pipe", "b-link"] {
        assert!(err.contains(&format!("{pipe}: it is no regular file")), "{err}");
    }
    assert!(err.contains("d\\u{1b}]0;x: it is no mail"), "{err}");
    for arguments in [["signature"], ["check"], ["explain"]] {
        for name in ["c\u{1b}[2J.eml", "no\u{1b}[2J.eml"] {
            let mut command = Command::new(program());
            if arguments != ["signature"] {
                command.args(arguments).arg("--config").arg(site.config());
            } else {
                command.args(arguments);
            }
            let output = command.arg(folder.join(name)).output().unwrap();
            let both = [output.stdout, output.stderr].concat();
            assert!(
                !both.contains(&0x1b) && !both.is_empty(),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&both)
            );
        }
    }
}

fn weighing(entry: String, lines: &str) -> Site {
    let mut site = milter(&[entry]);
    site.extra +=
        &format!("{lines}[user-reports]\ntrust = {{ federation-weight = 1.0, new-reporter = 1.0 }}\n");
    site
}

/// Three users of one mail server report it as spam; a near-replica is spam at others; two withdraw, and it is not. Daemons die in between,
/// and acknowledged reports count once.
#[test]
fn what_users_of_one_mail_server_say_is_spam_at_another() {
    let server = Server::new("");
    let mut daemon = server.start();
    let near = weighing(server.entry("near", "report"), "");
    let far = weighing(server.entry("far", "report"), "");
    let partial = weighing(server.entry("partial", "report"), "copy = \"partial\"\n");
    let careful = milter(&[server.entry("careful", "report")]);
    let mut at_near = near.start();
    let (at_far, at_partial, at_careful) = (far.start(), partial.start(), careful.start());
    at_partial.log.wait_for(0, "its list of bulk was taken over");
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

    for (site, milter) in [(&far, &at_far), (&partial, &at_partial)] {
        let header = wait_for_header(site, milter, &offer("Emil"), ("spam", Some("3")));
        assert!(header.contains("; spam=3; threshold=20; host=mx.test"), "{header}");
        milter.log.wait_for(0, " verdict=spam ");
    }
    // By default, reports of others' users have half the weight.
    wait_for(&careful, &offer("Emil"), "clean", Some("1.5"));
    let header = verdict(&at_careful, &offer("Emil"));
    assert!(header.starts_with("clean; body=") && header.contains("; spam=1.5; "), "{header}");

    let mut explain = Command::new(program());
    let explained = run(explain.args(["explain", "--config"]).arg(near.config()), &offer("Anna"));
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.contains("users report it as spam with the weight 3, the threshold 3"), "{explained}");
    assert!(explained.contains("nominated by users here: 3, in all 3"), "{explained}");
    assert!(!explained.contains("anna") && !explained.contains("bert"), "{explained}");

    assert_counted(&report(&near, &["--not-spam", "--user", "bert"], &offer("Anna")), "taken-back");
    at_near.kill();
    daemon.kill();
    at_near = near.start();
    daemon = server.start();
    assert_counted(&report(&near, &["forget", "--user", "anna"], &offer("Anna")), "taken-back");
    assert_counted(&report(&near, &["--not-spam", "--user", "bert"], &offer("Anna")), "counted");
    for (site, milter) in [(&far, &at_far), (&partial, &at_partial), (&near, &at_near)] {
        // One user reports it as not spam, and one as spam.
        wait_for_header(site, milter, &offer("Emil"), ("clean", None));
    }
    assert!(daemon.terminate().success());
}

/// The exit code, and the reason for the refusal.
#[track_caller]
fn refused(site: &Site, arguments: &[&str], message: &[u8]) -> (Option<i32>, String) {
    let output = run(&mut command(site, arguments), message);
    let answer = first_message(&output.stdout);
    (output.status.code(), answer["refused"].as_str().unwrap_or_default().to_owned())
}

/// A script that reports outgoing mail as spam gets the reason for the refusal; `--force` overrides it, and the report can be withdrawn.
#[test]
fn mail_of_ones_own_is_refused_unless_forced() {
    let site = Site::new("exempt = [\"authenticated\"]\n[user-reports]\nown-domains = [\"offers.test\"]\n");
    let milter = site.start();
    for name in ["Anna", "Bert", "Carl"] {
        let (code, why) = refused(&site, &["--user", "script"], &offer(name));
        assert_eq!(code, Some(1));
        assert!(why.contains("prize@offers.test is in offers.test"), "{why}");
        assert_eq!(checked(&site, &offer(name))["spam"], Value::Null);
    }
    let bounce =
        String::from_utf8(offer("Anna")).unwrap().replace("prize@offers.test", "prize@elsewhere.test");
    let bounce = format!("Return-Path: <prize@mail.offers.test>\r\n{bounce}");
    assert_eq!(refused(&site, &["--user", "script"], bounce.as_bytes()).0, Some(1), "its envelope sender is");
    assert_eq!(refused(&site, &["--user", "anna", "--force"], &offer("Anna")), (Some(0), String::new()));
    assert_eq!(refused(&site, &["forget", "--user", "anna"], &offer("Anna")), (Some(0), String::new()));
    assert!(milter.terminate().success());
}

/// The daemon has no list of users, so each name is a new user without history, and all of them are different. No name, whatever its bytes,
/// breaks a line of the log.
#[test]
fn unknown_users_and_names_of_any_bytes_are_newcomers() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let milter = site.start();
    let names: [&[u8]; 5] = [b"nobody-here", b"a b\x1b[0m", b"\xff\xfe\x80", b"two\nlines", b"--spam"];
    for (name, heard) in names.iter().zip(1..) {
        let mut command = command(&site, &[]);
        let mut user = OsStr::new("--user=").to_owned();
        user.push(OsStr::from_bytes(name));
        let output = run(command.arg(user), &offer("Anna"));
        let answer = first_message(&output.stdout);
        assert_eq!((&answer["weight"], output.status.code()), (&0.25.into(), Some(0)), "{answer}");
        assert_eq!(answer["shared"], false, "there is no other server");
        assert_counted(&answer, "counted");
        let mailing = &listed(&site, &[])["mailings"][0];
        // Without status.subjects no subject is kept.
        assert_eq!((&mailing["spam"], &mailing["subject"]), (&heard.into(), &Value::Null));
    }
    for name in ["", &"x".repeat(5000)] {
        let output = run(&mut command(&site, &["--user", name]), &offer("Anna"));
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
    for verb in [&["list"][..], &["forget", "--all"]] {
        let mut command = Command::new(program());
        command.arg("report").args(verb).args(["--user", "somebody-else", "--control"]);
        let output = command.arg(site.path("control.sock")).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("no reporter with this name is known here"), "{told}");
    }
    let lines = milter.log.lines().into_iter().filter(|line| line.contains("reported: spam by=")).count();
    assert_eq!(lines, names.len());
    assert!(milter.terminate().success());
}

/// A user vouched for by the administrator has full weight, until forgotten; traps and clients of interfaces cannot be vouched for.
#[test]
fn the_administrator_vouches_for_a_user() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let _milter = site.start();
    assert_eq!(listed(&site, &["vouch", "--user", "anna"])["vouched"], true);
    let answer = report(&site, &["--user", "anna"], &offer("Anna"));
    assert_eq!(answer["weight"], 1.0, "{answer}");
    listed(&site, &["forget", "--user", "anna"]);
    let answer = report(&site, &["--user", "anna"], &offer("Anna"));
    assert_eq!(answer["weight"], 0.25, "{answer}");
    for arguments in [&["--trap", "old@example.org"][..], &[]] {
        let mut command = Command::new(program());
        command.args(["report", "vouch", "--control"]).arg(site.path("control.sock")).args(arguments);
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
    }
}

/// If a user reports thousands of messages at once, as many count as are allowed in a day; acknowledged reports are kept, and other users
/// are not delayed.
#[test]
fn who_reports_thousands_at_once_is_heard_for_a_days_worth() {
    const MOST: usize = 2000;
    let site = Site::new(&(TRUSTING.to_owned() + STATUS));
    let milter = site.start();
    let mut mbox = Vec::new();
    for n in 0..MOST + 20 {
        mbox.extend_from_slice(b"From a@b.test Sat Nov 21 10:00:00 2026\n");
        mbox.extend(bulkmark_testing::letters::letter(n).into_iter().filter(|&byte| byte != b'\r'));
        mbox.push(b'\n');
    }
    std::fs::write(site.path("mbox"), mbox).unwrap();
    let output = command(&site, &["--user", "anna"]).arg(site.path("mbox")).output().unwrap();
    assert_eq!(output.status.code(), Some(75), "the rest can be said tomorrow");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let answers = all["messages"].as_array().unwrap();
    let is_heard = |answer: &Value| answer["refused"].is_null() && answer["counted"].as_u64() > Some(0);
    let heard = answers.iter().take_while(|&answer| is_heard(answer)).count();
    assert_eq!((heard, answers.len()), (MOST, MOST + 20));
    for answer in &answers[MOST..] {
        assert!(answer["refused"].as_str().unwrap().contains("2000 messages in this way today"), "{answer}");
        assert_eq!(answer["later"], true);
    }
    // The log reports it once, and a client may choose to ignore it.
    let listed = |milter: &Daemon| {
        milter.log.lines().into_iter().filter(|line| line.contains(" of 2000 messages today; ")).count()
    };
    assert_eq!(listed(&milter), 1);
    let more = bulkmark_testing::letters::letter(MOST + 30);
    assert_eq!(refused(&site, &["--user", "anna", "--lenient"], &more).0, Some(0));
    assert_eq!(refused(&site, &["--user", "anna", "--lenient"], &crlf("Subject: x\n\nshort\n")).0, Some(1));
    assert_eq!(listed(&milter), 1);
    let over = metrics(&milter)["bulkmark_user_reports_total{side=\"spam\",result=\"over-limit\"}"];
    assert_eq!(over, 21.0);
    // Reports can be repeated and withdrawn: the same number of messages counts as not spam, and beyond that only withdrawals do.
    assert_counted(&report(&site, &["--user", "anna"], &bulkmark_testing::letters::letter(1)), "known");
    assert_counted(&report(&site, &["--user", "bert"], &offer("Anna")), "counted");
    let output = command(&site, &["--user", "anna", "--not-spam"]).arg(site.path("mbox")).output().unwrap();
    assert_eq!(output.status.code(), Some(75), "what she did not nominate");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let taken = |answer: &&Value| answer["taken-back"].as_u64() > Some(0);
    assert_eq!(all["messages"].as_array().unwrap().iter().filter(taken).count(), MOST);
    assert_eq!(
        refused(&site, &["--user", "anna", "--not-spam"], &offer("Anna")).0,
        Some(75),
        "Bert's word stands"
    );
    assert_eq!(checked(&site, &offer("Anna"))["spam"]["weight"], "1");
    for n in [0, MOST - 1] {
        let again = report(&site, &["--user", "carl"], &bulkmark_testing::letters::letter(n));
        assert!(again["counted"].as_u64() > Some(0), "{again}");
    }
    milter.kill();
    let milter = site.start();
    // All of these letters have passages in common; a report of one of them has full weight for its body alone.
    for (n, is_heard) in [(0, true), (MOST - 1, true), (MOST, false)] {
        assert_eq!(
            checked(&site, &bulkmark_testing::letters::letter(n))["spam"]["weight"] == "1",
            is_heard,
            "letter {n}"
        );
    }
    assert!(milter.terminate().success());
}

/// Reports that cannot be counted are refused with a reason, and the exit code shows it.
#[test]
fn what_has_no_signature_or_is_no_mail_is_refused() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let milter = site.start();
    let (code, why) = refused(&site, &[], &crlf("Subject: x\n\nshort\n"));
    assert_eq!(code, Some(1));
    assert!(why.starts_with("it has no signature: low information"), "{why}");
    let no_mail = run(&mut command(&site, &[]), b"no mail at all\n");
    assert_eq!(no_mail.status.code(), Some(2));
    assert!(milter.terminate().success());
    let alone = run(&mut command(&site, &[]), &offer("Anna"));
    assert_eq!(alone.status.code(), Some(75), "{alone:?}");
}

/// Messages of an mbox and of a Maildir, as they were delivered.
#[test]
fn mboxes_and_maildirs_are_read() {
    let site = Site::new(TRUSTING);
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
    command.arg(site.path("gone")).arg(site.path("control.sock"));
    let output = command.arg(site.path("mbox")).arg(site.path("Maildir")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "what cannot be read is listed, and the rest is counted");
    let listed = String::from_utf8(output.stderr).unwrap();
    assert!(listed.contains("/gone: No such file") && listed.contains("/control.sock: "), "{listed}");
    assert!(listed.lines().all(|line| line.starts_with("bulkmark: ")), "{listed}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["messages"].as_array().unwrap().len(), 4, "{all}");
    // The body of each counts, and their common passages once.
    for name in ["Anna", "Bert", "Carl", "Dora"] {
        assert_eq!(checked(&site, &offer(name))["spam"]["weight"], "1", "{name}");
    }
    assert!(milter.terminate().success());
}

/// A site may keep the reports of its users private.
#[test]
fn what_is_not_shared_stays_here() {
    let server = Server::new("");
    let _daemon = server.start();
    let mut alone = milter(&[server.entry("alone", "report")]);
    alone.extra += "withhold = [\"user-reports\"]\n[user-reports]\ntrust = { new-reporter = 1.0 }\n";
    let far = weighing(server.entry("far", "report"), "");
    let (at_alone, at_far) = (alone.start(), far.start());
    for user in ["anna", "bert", "carl"] {
        let listed = report(&alone, &["--user", user], &offer("Anna"));
        assert_eq!(listed["shared"], false, "{listed}");
    }
    wait_for(&alone, &offer("Bert"), "spam", Some("3"));
    assert!(verdict(&at_alone, &offer("Bert")).starts_with("spam; body=1; near=1; spam=3; "));
    // Later messages arrived there, but none of the reports.
    bulkmark_testing::letters::send(&at_alone, &bulkmark_testing::letters::letter(1), 3);
    bulkmark_testing::letters::wait_for(&far, &bulkmark_testing::letters::letter(1), 3);
    assert!(verdict(&at_far, &offer("Bert")).starts_with("clean; "));
}

/// A script that sends the same report many times at once counts once.
#[test]
fn the_same_word_at_once_counts_once() {
    let site = Site::new(TRUSTING);
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

/// Two mail servers get the same report from the same user, many times at once: neither knows the other's reporters, since names stay
/// local, so each counts it, once; and both withdraw it.
#[test]
fn two_mail_servers_asked_at_once_count_once_each() {
    let server = Server::new("");
    let _daemon = server.start();
    let sites = ["one", "two"].map(|name| weighing(server.entry(name, "report"), ""));
    let _milters = sites.each_ref().map(Site::start);
    let at_once = |arguments: &[&str], field: &str| {
        let counted: Vec<u64> = std::thread::scope(|scope| {
            let say = |site| move || report(site, arguments, &offer("Anna"))[field].as_u64().unwrap();
            let all: Vec<_> = (0..12).map(|n| scope.spawn(say(&sites[n % 2]))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        [0, 1].map(|of| counted.iter().skip(of).step_by(2).sum::<u64>())
    };
    let signatures =
        report(&sites[0], &["forget", "--user", "anna"], &offer("Anna"))["signatures"].as_u64().unwrap();
    assert_eq!(at_once(&["--user", "anna"], "counted"), [signatures; 2]);
    sites.iter().for_each(|site| wait_for(site, &offer("Anna"), "clean", Some("2")));
    assert_eq!(at_once(&["forget", "--user", "anna"], "taken-back"), [signatures; 2]);
    sites.iter().for_each(|site| wait_for(site, &offer("Anna"), "clean", None));
}

/// A report that does not fit on a full disk is not counted, returns an error, and can be repeated.
#[test]
fn a_full_disk_takes_no_word_and_loses_none() {
    let site = Site::new(TRUSTING);
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
        let answer = first_message(&output.stdout);
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

/// A letter with the text that this writer's company adds below each one.
fn above(block: &str, writer: &mut Prose) -> Vec<u8> {
    crlf(&format!("Subject: x\n\n{}\n{block}", writer.text(40)))
}

/// A report of one letter does not touch all others with the same disclaimer, whether or not it was known for one at the time; and a
/// reported text above a disclaimer is spam for all.
#[test]
fn what_stands_below_ever_other_text_is_not_spam() {
    let disclaimer = Prose::new(7).text(120);
    let (mut writer, offer) = (Prose::new(1), Prose::new(11).text(40));
    let greeted = |name: &str| crlf(&format!("Subject: x\n\nDear {name} and yours,\n{offer}\n{disclaimer}"));
    let call_spam = |site: &Site, message: &[u8]| {
        for user in ["anna", "bert", "carl"] {
            assert_counted(&report(site, &["--user", user], message), "counted");
        }
    };
    let site = Site::new(TRUSTING);
    let milter = site.start();
    call_spam(&site, &above(&disclaimer, &mut writer));
    let news = checked(&site, &above(&disclaimer, &mut writer));
    assert_eq!((&news["verdict"], &news["spam"]["weight"]), (&"spam".into(), &"3".into()), "{news}");
    (0..15).for_each(|_| drop(verdict(&milter, &above(&disclaimer, &mut writer))));
    let header = verdict(&milter, &above(&disclaimer, &mut writer));
    assert!(header.starts_with("clean; body=1; "), "{header}");

    let site = Site::new(TRUSTING);
    let milter = site.start();
    (0..15).for_each(|_| drop(verdict(&milter, &above(&disclaimer, &mut writer))));
    call_spam(&site, &above(&disclaimer, &mut writer));
    // Its disclaimer has no report at all.
    assert_eq!(checked(&site, &above(&disclaimer, &mut writer))["spam"], Value::Null);
    call_spam(&site, &greeted("Dora"));
    let header = verdict(&milter, &greeted("Emil"));
    assert!(header.starts_with("spam; body=1; ") && header.contains("; spam=3; "), "{header}");
    assert_eq!(checked(&site, &above(&disclaimer, &mut writer))["spam"], Value::Null);
}

/// In the queue it appears as reported by users, and nothing proposes it for the white list, though it is bulk, too.
#[test]
fn reported_spam_is_held_as_that_and_not_proposed_for_the_white_list() {
    let site = Site::new(&format!(
        "exempt = [\"authenticated\"]\n[thresholds]\nbody = 1\nspam = 1\nmin-sources = 1\n[actions]\nbulk = \"quarantine\"\n\
         [user-reports]\ntrust = {{ new-reporter = 1.0 }}\n{STATUS}"
    ));
    let daemon = site.start();
    let send = || {
        let mut client = Client::connect(&daemon);
        client.client("mail.offers.test", "192.0.2.9");
        let sender = "prize@offers.test".to_owned();
        let answer = client.message(&Mail { sender, ..Mail::raw(&offer("Anna")) });
        let status: Value = serde_json::from_str(&get(&daemon, "/status.json").1).unwrap();
        (answer.quarantine.unwrap_or_default(), status["bulk"][0]["suggestion"].clone())
    };
    assert_eq!(send(), ("bulk mail (bulkmark)".to_owned(), "host .offers.test".into()));
    assert_counted(&report(&site, &["--user", "anna"], &offer("Anna")), "counted");
    assert_eq!(send(), ("reported as spam (bulkmark)".to_owned(), Value::Null));
}
