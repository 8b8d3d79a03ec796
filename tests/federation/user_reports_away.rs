// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports at a milter with servers: while the servers are away for too long, while its disk is full, and the parts of them that leave
//! the machine. Real processes and sockets.

use bulkmark_testing::clock::Clock;
use bulkmark_testing::letters::{letter, offer, send};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::reports::{command, listed, report, run, weight};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Site, first_message, wait_until};
use bulkmark_types::{FederationKey, Signature, nomination};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Waits until user reports show it as spam here, with this weight.
#[track_caller]
fn wait_for(site: &Site, message: &[u8], expected: Option<&str>) {
    wait_until("user reports", || {
        let weight = weight(site, message);
        if weight.as_deref() == expected { Ok(()) } else { Err(format!("{weight:?}")) }
    });
}

fn site(entry: String, lines: &str) -> Site {
    let mut site = milter(&[entry]);
    site.extra +=
        &format!("{lines}[user-reports]\ntrust = {{ federation-weight = 1.0, new-reporter = 1.0 }}\n");
    site
}

/// A server is away for longer than reports are kept: reports of mail are dropped, user reports are not. They apply locally, also over a
/// crash, can be withdrawn, and are counted exactly once when the server is back.
#[test]
fn no_word_is_dropped_while_a_server_is_away() {
    let server = Server::new("");
    let mut near = site(server.entry("near", "report"), "");
    let far = site(server.entry("far", "report"), "");
    let Some(clock) = Clock::of(&mut near, "-25h") else { return };
    let at_near = near.start();
    for (user, name) in [("anna", "Anna"), ("bert", "Anna"), ("anna", "Dora")] {
        assert!(report(&near, &["--user", user], &offer(name))["counted"].as_u64() > Some(0));
    }
    send(&at_near, &letter(1), 3);
    clock.set("+0");
    at_near.log.wait_for(0, " reports were dropped: ");
    wait_for(&near, &offer("Anna"), Some("2"));
    at_near.kill();
    let _at_near = near.start();
    let known = report(&near, &["--user", "anna"], &offer("Anna"));
    assert_eq!(known["known"], known["signatures"], "{known}");
    assert!(
        report(&near, &["--user", "anna", "--not-spam"], &offer("Anna"))["taken-back"].as_u64() > Some(0)
    );
    wait_for(&near, &offer("Anna"), Some("1"));

    let (daemon, _at_far) = (server.start(), far.start());
    wait_for(&far, &offer("Anna"), Some("1"));
    // The body of this letter remains: she reported it separately.
    wait_for(&far, &offer("Dora"), Some("1"));
    assert!(daemon.terminate().success());
}

/// A user reports while the disk of a milter with servers is full: a refused report goes nowhere and can be repeated; an accepted one is
/// counted once, here and elsewhere.
#[test]
fn a_full_disk_at_a_milter_with_servers_loses_no_word() {
    let server = Server::new("");
    let near = site(server.entry("near", "report"), "");
    let far = site(server.entry("far", "report"), "");
    near.config();
    let Some(_mount) = Mount::new(&near.path("state"), "size=8m") else { return };
    let (at_near, _at_far) = (near.start(), far.start());
    assert!(report(&near, &["--user", "anna"], &offer("Anna"))["counted"].as_u64() > Some(0));
    let filler = near.path("state/filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let mut heard = 1;
    let refused = (0..200).find_map(|user| {
        let output = run(&mut command(&near, &["--user", &user.to_string()]), &offer("Anna"));
        let answer = first_message(&output.stdout);
        heard += usize::from(answer["refused"].is_null());
        (!answer["refused"].is_null()).then_some((user, output.status.code(), answer["later"].clone()))
    });
    let (user, code, later) = refused.expect("the disk was never full");
    assert_eq!((code, later), (Some(75), true.into()));

    let daemon = server.start();
    fs::remove_file(filler).unwrap();
    wait_until("the disk", || {
        let output = run(&mut command(&near, &["--user", &user.to_string()]), &offer("Anna"));
        if output.status.success() { Ok(()) } else { Err(format!("{output:?}")) }
    });
    let all = (heard + 1).to_string();
    wait_for(&near, &offer("Anna"), Some(&all));
    wait_for(&far, &offer("Anna"), Some(&all));
    at_near.kill();
    let _at_near = near.start();
    wait_for(&near, &offer("Anna"), Some(&all));
    assert!(daemon.terminate().success());
}

/// Forwards everything sent to this port, and keeps a copy.
fn tapped(port: u16) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, sent) =
        (format!("http://{}", listener.local_addr().unwrap()), Arc::<Mutex<Vec<u8>>>::default());
    let all = Arc::clone(&sent);
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut answers, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut answers, &mut to));
            let sent = Arc::clone(&all);
            thread::spawn(move || {
                let mut piece = [0; 8192];
                while let Ok(n @ 1..) = client.read(&mut piece) {
                    sent.lock().unwrap().extend_from_slice(&piece[..n]);
                    if server.write_all(&piece[..n]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (url, sent)
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}

/// Only signatures and weights leave a mail server: neither the user's name nor its hash.
#[test]
fn nothing_of_who_said_it_leaves_the_machine() {
    const NAME: &str = "anastasia.q";
    let server = Server::new("");
    let daemon = server.start();
    let (url, sent) = tapped(server.port);
    let near = site(server.entry_by(&url, "near", "report"), "");
    let far = site(server.entry("far", "report"), "");
    let (at_near, _at_far) = (near.start(), far.start());
    assert!(report(&near, &["--user", NAME], &offer("Anna"))["counted"].as_u64() > Some(0));
    assert!(report(&near, &["--user", NAME], &offer("Dora"))["counted"].as_u64() > Some(0));
    assert!(report(&near, &["--user", NAME, "--not-spam"], &offer("Dora"))["taken-back"].as_u64() > Some(0));
    wait_for(&far, &offer("Anna"), Some("1"));
    let hash = listed(&near, &[])["reporters"][0]["reporter"].as_str().unwrap().to_owned();
    let bytes = unhex(&hash);
    assert_eq!(bytes.len(), 16);
    let (_, listed) = near.check(&offer("Anna"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let body =
        Signature::from_bytes(unhex(listed["body"]["signature"].as_str().unwrap()).try_into().unwrap());

    assert!(daemon.terminate().success());
    assert!(at_near.terminate().success());
    let at_near = fs::read(near.path("state/ledger.redb")).unwrap();
    assert!(contains(&at_near, &bytes), "here it is known");
    let sent = sent.lock().unwrap();
    let nominated = nomination(&FederationKey::public(), body).to_bytes();
    assert!(contains(&sent, &nominated), "the nomination of {body} was sent, and is not seen");
    let at_server = fs::read(server.site.path("state/ledger.redb")).unwrap();
    for (what, all) in [("what was sent", &*sent), ("the server's file", &at_server)] {
        for needle in [NAME.as_bytes(), hash.as_bytes(), &bytes, &bytes[..8], &bytes[8..]] {
            assert!(!contains(all, needle), "{what} has {}", needle.escape_ascii());
        }
    }
}

/// The number of remembered user reports is shown, users' separately from traps', with the names of traps.
#[test]
fn words_are_counted_by_whose_they_are() {
    let traps = "[traps]\nrecipients = [\"old@box.test\"]\nweight = 0.5\n[user-reports]\ntrust = { new-reporter = 0.25 }\n";
    let site = Site::new(&format!("exempt = [\"authenticated\"]\n{traps}{STATUS}"));
    let milter = site.start();
    let rows = || {
        ["users", "traps"].map(|of| metrics(&milter)[&format!("bulkmark_user_report_rows{{of=\"{of}\"}}")])
    };
    assert_eq!(rows(), [0.0, 0.0]);
    let signatures = report(&site, &["--user", "anna"], &offer("Anna"))["signatures"].as_f64().unwrap();
    assert_eq!(rows(), [signatures, 0.0]);
    let mut mail = Mail::raw(&offer("Dora"));
    mail.recipients = vec!["old@box.test".to_owned()];
    session(&milter).message(&mail);
    milter.log.wait_for(0, "trap=nominated");
    let [users, traps] = rows();
    assert!(users == signatures && traps > 1.0, "{users} {traps}");
    let listed = listed(&site, &[]);
    let of = |is_trap: bool| {
        let all = listed["reporters"].as_array().unwrap();
        let found = all.iter().find(|by| (by["kind"] == "trap") == is_trap).unwrap();
        [&found["trust"], &found["weight"]].map(|number| number.as_f64().unwrap())
    };
    assert_eq!(of(true), [1.0, 0.5]);
    assert!(of(false)[0] < 0.2 && (of(false)[1] - 0.25).abs() < 1e-9, "{listed}");
    assert!(milter.terminate().success());
}
