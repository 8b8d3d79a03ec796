// SPDX-License-Identifier: GPL-3.0-or-later
//! `[alerts]`: a webhook is notified when a problem begins and when it ends.

use bulkmark_testing::clock::Clock;
use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::server::Server;
use bulkmark_testing::{PATIENCE, Site, program};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

/// A web server that accepts posts, and answers the first one with an error; and their bodies.
fn webhook() -> (u16, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                if let Some((name, value)) = line.split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            if sender.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (port, receiver)
}

/// The next event of this kind.
fn next(events: &Receiver<Value>, event: &str, problem: &str) -> Value {
    loop {
        let found = events.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("no {event} of {problem}: {e}"));
        if found["event"] == event && found["problem"] == problem {
            return found;
        }
    }
}

#[test]
fn a_webhook_hears_of_problems_and_of_their_ends() {
    let (port, events) = webhook();
    let server = Server::new("");
    let site = Site::new(&format!(
        "exempt = [\"authenticated\"]\nupstream = [{}]\n\
         [alerts]\nwebhook = \"http://127.0.0.1:{port}/secret\"\n\
         [thresholds]\nbody = 3\nmin-sources = 1\nmin-messages = 1\n[actions]\nbulk = \"reject\"\n\
         [outbound]\nbulk = 2\naccounts = [{{ name = \"ben\", bulk = 0 }}]\n[outbound.match]\nlogin = [\"*\"]\n",
        server.entry("mx", "report")
    ));
    let daemon = site.start();
    let down = next(&events, "begin", "upstream");
    assert_eq!((&down["about"], &down["daemon"]), (&server.url().into(), &"milter".into()));
    assert_eq!(down["host"], "mx.test", "as in the configuration");
    assert!(down["text"].as_str().is_some_and(|text| !text.is_empty()), "{down}");
    for login in ["anna", "ben"] {
        let mut client: Client = session(&daemon);
        client.login = Some(login.to_owned());
        (0..8).for_each(|_| drop(client.message(&Mail::text(&format!("spam of {login}")))));
    }
    let account = next(&events, "begin", "account");
    assert_eq!(account["about"], "anna", "ben has no limit");
    let _server = server.start();
    let up = next(&events, "end", "upstream");
    assert_eq!(up["since"], down["since"]);
    let config = String::from_utf8(
        Command::new(program())
            .args(["config", "show", "--config"])
            .arg(site.config())
            .output()
            .unwrap()
            .stdout,
    );
    assert!(!config.unwrap().contains("/secret"), "the address is a secret");
}

#[test]
fn a_webhook_hears_of_more_refusals_than_usual() {
    let (port, events) = webhook();
    let mut site = Site::new(&format!(
        "exempt = [\"authenticated\"]\nupstream = [{{ url = \"http://127.0.0.1:{}\" }}]\n\
         [alerts]\nwebhook = \"http://127.0.0.1:{port}/secret\"\n\
         [thresholds]\nbody = 1\nmin-sources = 1\nmin-messages = 1\n[actions]\nbulk = \"reject\"\n",
        free_port()
    ));
    let Some(clock) = Clock::of(&mut site, "+0") else { return };
    let daemon = site.start();
    // It has looked for problems.
    next(&events, "begin", "upstream");
    clock.set("+2h");
    let mut client: Client = session(&daemon);
    (0..60).for_each(|_| drop(client.message(&Mail::text("the same"))));
    let refused = next(&events, "begin", "refused");
    assert_eq!(refused["text"], "60 messages refused in the last hour; 0 are usual");
}

/// An unreachable webhook delays no message and takes little memory; log, `status` and `doctor` report it without its address.
#[test]
fn a_webhook_that_is_away_harms_nothing() {
    let site = Site::new(&format!(
        "exempt = [\"authenticated\"]\nupstream = [{{ url = \"http://127.0.0.1:{}\" }}]\n\
         [alerts]\nwebhook = \"http://127.0.0.1:{}/secret\"\n",
        free_port(),
        free_port()
    ));
    let daemon = site.start();
    daemon.log.wait_for(0, "alerts: 127.0.0.1 takes none: it cannot be reached: Connection refused");
    let run = |args: &[&str]| {
        let output = Command::new(program()).args(args).arg("--config").arg(site.config()).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(!told.contains("secret"), "{told}");
        told
    };
    let told = run(&["status"]);
    assert!(told.contains("\nwebhook 127.0.0.1: FAILS: it has accepted no event since 20"), "{told}");
    assert!(told.contains(": Connection refused (os error 111); 1 event waiting"), "{told}");
    assert!(told.contains("\n  correct 127.0.0.1, or alerts.webhook in the configuration, "), "{told}");
    let status: Value = serde_json::from_str(&run(&["status", "--json"])).unwrap();
    let webhook = &status["webhook"];
    assert!(webhook["failing-since"].as_u64().is_some_and(|since| since > 1_700_000_000), "{webhook}");
    assert_eq!(
        (&webhook["host"], &webhook["waiting"], &webhook["posted"]),
        (&"127.0.0.1".into(), &1.into(), &0.into())
    );
    let doctor: Value = serde_json::from_str(&run(&["doctor", "--json"])).unwrap();
    let check =
        doctor["checks"].as_array().unwrap().iter().find(|check| check["check"] == "webhook").unwrap();
    assert_eq!(check["level"], "warning");
    assert!(
        check["text"].as_str().unwrap().starts_with("127.0.0.1 has accepted no event since 20"),
        "{check}"
    );
    let mut client: Client = session(&daemon);
    assert_eq!(client.message(&Mail::text("a letter")).reply, "c");
    assert!(daemon.log.lines().iter().all(|line| !line.contains("secret")));
}
