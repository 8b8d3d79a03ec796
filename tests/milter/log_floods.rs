// SPDX-License-Identifier: GPL-3.0-or-later
//! No outsider can write unlimited log lines, or forge lines.

use bulkmark_testing::http::ask;
use bulkmark_testing::milter::{ALL_OPTIONS, Client, Mail, session};
use bulkmark_testing::server::Server;
use bulkmark_testing::{Log, Site, wait_until};

/// How often each act that causes a log line is repeated.
const TIMES: usize = 300;

fn lines(log: &Log, text: &str) -> Vec<String> {
    log.lines().into_iter().filter(|line| line.contains(text)).collect()
}

#[test]
fn refusals_that_alternate_are_told_once_for_each_reason() {
    let server = Server::new("");
    let token = server.client(&["add", "--own", "mx1", "--role", "read"]);
    let daemon = server.start();
    let asks = ["GET /metrics", "POST /v1/reports"]
        .map(|what| format!("{what} HTTP/1.1\r\nAuthorization: Bearer {}", token.trim()));
    for n in 0..TIMES {
        let answer = ask(server.port, &asks[n % 2], b"");
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    // A line of another kind follows all others.
    server.client(&["add", "--own", "mx2"]);
    let _ = ask(server.port, &asks[0], b"");
    daemon.log.wait_for(0, "the clients were changed");
    let told = lines(&daemon.log, "client mx1 is refused");
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_ne!(told[0], told[1]);
}

#[test]
fn a_place_of_the_program_that_is_visited_again_and_again() {
    let site = Site::new("");
    let daemon = site.start();
    for _ in 0..TIMES {
        // The MTA does not allow adding a header.
        drop(Client::negotiated(&daemon, 6, 0x10, ALL_OPTIONS));
    }
    let mut client = session(&daemon);
    // No line of a message is missing.
    for n in 1..=TIMES {
        client.message(&Mail::text(&format!("message {n}")));
    }
    let log = daemon.log.clone();
    assert!(daemon.terminate().success());
    wait_until("all lines", || match lines(&log, " verdict=").len() {
        TIMES => Ok(()),
        found => Err(found.to_string()),
    });
    let told = lines(&log, "the MTA does not let this milter add headers");
    let (last, written) = told.split_last().unwrap();
    let expected = format!("{} more lines like this one were left out", TIMES - written.len());
    assert!(last.contains(&expected) && written.len() <= 60, "{} lines, and {last}", written.len());
}

/// Reads a line as docs/monitoring.md explains it.
#[test]
fn a_quoted_sender_imitates_no_field() {
    let site = Site::new("");
    let daemon = site.start();
    let evil = "\"a verdict=clean client=b[192.0.2.99] > to=<c\"@x.example";
    let mut mail = Mail {
        sender: evil.to_owned(),
        recipients: vec![evil.to_owned()],
        ..Mail::text(
            "so much of a bank, its rivers, ducks and evening walks that nobody takes it for a formula",
        )
    };
    mail.headers.push((b"Message-ID".to_vec(), evil.as_bytes().to_vec()));
    assert!(session(&daemon).message(&mail).count().is_some());
    let line = daemon.log.wait_for(0, " nrcpt=1 ");
    let fields: Vec<_> = line.split(' ').filter_map(|field| field.split_once('=')).collect();
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    let expected = [
        "client",
        "from",
        "to",
        "nrcpt",
        "message-id",
        "size",
        "verdict",
        "body",
        "near",
        "threshold",
        "signature",
        "action",
        "ms",
    ];
    assert_eq!(names, expected, "{line}");
    assert_eq!((fields[0].1, fields[6].1), ("client.example.org[192.0.2.7]", "clean"));
    assert!(
        !fields[1].1.contains('"') && fields[1].1.starts_with('<') && fields[1].1.ends_with('>'),
        "{line}"
    );
    assert_eq!(fields[1].1.matches(['<', '>']).count(), 2, "{line}");
}
