// SPDX-License-Identifier: GPL-3.0-or-later
//! The HTTP interface.

use crate::asking::{connect, http, judge, parsed, rest, site, start};
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{Site, http as tcp, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};

const TYPE: &str = "Content-Type: message/rfc822";

/// A question is not counted; a counted message gets the milter's count and header.
#[test]
fn a_message_is_judged_as_by_the_milter() {
    let site = site("", "", "");
    let daemon = start(&site);
    let asked = judge(&site, "?count=no", &letter(1));
    assert_eq!((&asked["counted"], &asked["body"]["count"]), (&Value::from(false), &Value::from(0)));
    for n in 1..20 {
        let answer = judge(&site, "?ip=192.0.2.7", &letter(1));
        assert_eq!((&answer["verdict"], &answer["body"]["count"]), (&Value::from("clean"), &Value::from(n)));
    }
    let answer = judge(&site, "", &letter(1));
    let told = answer["header"]["value"].as_str().unwrap();
    assert_eq!(answer["header"]["name"], "X-Bulkmark");
    assert!(told.starts_with("bulk; body=20; near=20; threshold=20; host=mx.test; sources="), "{told}");
    assert_eq!(
        answer["because"].as_str().unwrap(),
        "its body count is 20, the threshold 20, and its near count is 20, the threshold 20"
    );
    assert_eq!((&answer["action"], &answer["counted"]), (&Value::from("mark"), &Value::from(true)));
    let of_milter = session(&daemon).message(&Mail::raw(&letter(1)));
    assert_eq!(of_milter.count(), Some(21));
    let line = daemon.log.wait_for(0, "body=20 ");
    assert!(line.contains(" interface=http"), "{line}");
}

/// The answer has the fields of `bulkmark check --json`, word for word.
#[test]
fn the_answer_is_that_of_check() {
    let site = site("", "", "");
    let _daemon = start(&site);
    for _ in 0..25 {
        judge(&site, "?ip=192.0.2.7", &letter(2));
    }
    for message in [letter(2), letter(3), b"Subject: hi\r\n\r\nok\r\n".to_vec()] {
        let mut answer = judge(&site, "?count=no", &message);
        let (_, check) = site.check(&message);
        let check: Value = serde_json::from_str(&check).unwrap_or_else(|e| panic!("{e}: {check}"));
        let answer = answer.as_object_mut().unwrap();
        for more in ["because", "thresholds", "counted", "header"] {
            assert!(answer.remove(more).is_some(), "{more}");
        }
        if check["action"].is_null() {
            answer.remove("action");
        }
        assert_eq!(Value::Object(answer.clone()), check);
    }
}

/// Sender, recipients, client and login count as in the milter, in a query or in header fields.
#[test]
fn the_envelope_takes_part() {
    let keys = "exempt-networks = [\"198.51.100.0/24\"]\n[thresholds]\nbody = 3\nnear = 3\nmin-sources = 1\nmin-messages = 1\n[actions]\nbulk = \"reject\"\n\
                [whitelist]\nfiles = [\"LIST\"]\n[[policy]]\nname = \"out\"\nmatch = { recipient = \"out.test\" }\njudge = false\n";
    let mut site = site("", "", "");
    let list = site.path("list");
    fs::write(&list, "sender wanted.test\n").unwrap();
    site.extra = format!("{}{}", keys.replace("LIST", &list.display().to_string()), site.extra);
    let _daemon = start(&site);
    let of = |query: &str| judge(&site, query, &letter(1));
    assert_eq!(of("?ip=198.51.100.9")["reason"], "network");
    assert_eq!(of("?ip=198.51.100.9")["thresholds"], serde_json::json!({ "body": 3, "near": 3, "spam": 3 }));
    assert_eq!(of("?ip=192.0.2.7&user=anna")["reason"], "authenticated");
    assert_eq!(of("?rcpt=x@out.test")["reason"], "policy");
    let answer = of("?ip=192.0.2.7&rcpt=a@box.test&rcpt=%3Cb@box.test%3E&rcpt=c@box.test&queue-id=4ID");
    assert_eq!((&answer["body"]["count"], &answer["verdict"]), (&Value::from(3), &Value::from("bulk")));
    assert_eq!(answer["action"], "reject");
    assert_eq!(answer["reply"]["text"], "bulk mail refused (id 4ID)");
    assert_eq!(of("?ip=192.0.2.7&from=news@wanted.test&count=no")["verdict"], "whitelisted");
    let fields = [TYPE, "IP: 192.0.2.7", "From: <news@wanted.test>", "Rcpt: a@box.test", "Rcpt: b@box.test"];
    let (_, body) = http(&site, "POST /v1/judge", &fields, &letter(2));
    assert!(body.contains("\"count\":2"), "{body}");
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_reason() {
    let site = site("", "", "");
    let _daemon = start(&site);
    for (target, fields, status, why) in [
        (
            "POST /v1/judge",
            &["Content-Type: application/x-www-form-urlencoded"][..],
            415,
            "expected message/rfc822",
        ),
        ("POST /v1/judge", &[], 415, "expected message/rfc822"),
        ("POST /v1/judge?ip=nowhere", &[TYPE], 400, "expected an IP address"),
        ("POST /v1/judge?count=2", &[TYPE], 400, "expected yes or no"),
        ("POST /v1/judge?sender=x", &[TYPE], 400, "expected count, explain, or one of ip, hostname"),
        ("POST /v1/judge", &[TYPE, "Content-Type: text/plain"], 415, "expected message/rfc822"),
        ("POST /v1/judge", &[TYPE, "Content-Encoding: gzip"], 415, "found Content-Encoding"),
        ("POST /v1/judge", &[TYPE, "Content-Encoding: identity, br"], 415, "found Content-Encoding"),
        ("POST /v1/judge", &[TYPE, "Transfer-Encoding: gzip, chunked"], 501, "found Transfer-Encoding"),
        ("POST /v1/judge?ip=192.0.2.7&ip=192.0.2.8", &[TYPE], 400, "found ip twice in the query"),
        ("POST /v1/judge?count=yes&count=no", &[TYPE], 400, "found count twice in the query"),
        ("POST /v1/judge", &[TYPE, "From: a@b.test", "From: c@d.test"], 400, "2 header fields from"),
        ("GET /v1/judge", &[], 405, ""),
        ("POST /v2/judge", &[TYPE], 404, ""),
    ] {
        let (found, body) = http(&site, target, fields, &letter(1));
        assert_eq!(found, status, "{target}: {body}");
        assert!(body.contains(why), "{target}: {body}");
    }
    let (status, body) = http(&site, "POST /v1/judge", &[TYPE, "Content-Encoding: Identity"], &letter(1));
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"count\":1,"), "nothing of that was counted: {body}");
}

/// Whatever a program sends about a client, its log line is short: thousands of lines wait in memory for a slow log daemon.
#[test]
fn no_line_in_the_log_is_long() {
    let site = site("", "", "");
    let daemon = start(&site);
    let long = "%20a".repeat(10_000);
    for name in ["hostname", "helo", "from", "rcpt", "user", "queue-id"] {
        let before = daemon.log.lines().len();
        judge(&site, &format!("?ip=192.0.2.7&{name}=b{long}"), &letter(1));
        let line = daemon.log.wait_for(before, " interface=http");
        assert!(line.len() < 5000, "{name}: {} bytes", line.len());
    }
}

/// A request with two lengths cannot hide another request in it from a proxy: the chunks are the message, and nothing behind them is read.
#[test]
fn no_request_hides_in_another() {
    let site = site("", "", "");
    let _daemon = start(&site);
    let hidden = format!("POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: 0\r\n\r\n");
    for [first, second] in [[false, true], [true, false]] {
        let field = |is_chunked| {
            if is_chunked {
                "Transfer-Encoding: chunked".to_owned()
            } else {
                format!("Content-Length: {}", hidden.len() + 5)
            }
        };
        let [first, second] = [field(first), field(second)];
        let stream = connect(&site.path("http.sock"));
        let head = format!("POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\n{first}\r\n{second}\r\n\r\n");
        (&stream).write_all(format!("{head}0\r\n\r\n{hidden}").as_bytes()).unwrap();
        let answer = rest(&stream);
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
}

/// By TCP, a web site's name is not accepted, and if there is a token, every request needs it.
#[test]
fn who_may_ask_by_tcp() {
    let port = |daemon: &bulkmark_testing::Daemon| -> u16 {
        daemon.log.wait_for(0, "the interface http is at").rsplit(':').next().unwrap().parse().unwrap()
    };
    let ask = |port, fields: &str| {
        parsed(&tcp::ask(port, &format!("POST /v1/judge HTTP/1.1\r\n{TYPE}{fields}"), &letter(1)))
    };
    let open = Site::new("[interfaces.http]\nlisten = \"127.0.0.1:0\"\n");
    let daemon = open.start();
    let (status, body) = ask(port(&daemon), "");
    assert_eq!(status, 421, "{body}");
    let mut with_token = Site::new("");
    let token = with_token.path("token");
    fs::write(&token, "0123456789abcdef0123\n").unwrap();
    with_token.extra = format!("[interfaces.http]\nlisten = \"0.0.0.0:0\"\ntoken-file = {token:?}\n");
    let daemon = with_token.start();
    assert_eq!(ask(port(&daemon), "").0, 401);
    assert_eq!(ask(port(&daemon), "\r\nAuthorization: Bearer 0123456789abcdef0124").0, 401);
    let (status, body) = ask(port(&daemon), "\r\nAuthorization: Bearer 0123456789abcdef0123");
    assert_eq!(status, 200, "{body}");
}

/// A slow client is closed, and keeps nobody else from being served; nor do thousands of silent ones.
#[test]
fn slow_clients_keep_nobody_waiting() {
    let site =
        site("[status]\nlisten = \"unix:PAGE\"\n", "idle-timeout = \"5s\"\nmax-connections = 10\n", "");
    let site =
        Site { extra: site.extra.replace("PAGE", &site.path("page.sock").display().to_string()), ..site };
    let _daemon = start(&site);
    let slow = connect(&site.path("http.sock"));
    let head = format!(
        "POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    );
    (&slow).write_all(head.as_bytes()).unwrap();
    let mut goes_on = [0; 25];
    (&slow).read_exact(&mut goes_on).unwrap();
    assert_eq!(goes_on, *b"HTTP/1.1 100 Continue\r\n\r\n");
    (&slow).write_all(b"Subject").unwrap();
    let (status, body) = parsed(&rest(&slow));
    assert_eq!((status, body.contains("did not come within 5 s")), (408, true), "{body}");
    let silent: Vec<_> = (0..300).map(|_| connect(&site.path("http.sock"))).collect();
    assert_eq!(judge(&site, "", &letter(1))["body"]["count"], 1);
    drop(silent);
    wait_until("metrics", || {
        let page = connect(&site.path("page.sock"));
        (&page).write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let (_, text) = parsed(&rest(&page));
        let wanted = [
            "bulkmark_interface_requests_total{interface=\"http\",result=\"counted\"} 1\n",
            "bulkmark_interface_requests_total{interface=\"http\",result=\"timed-out\"} 1\n",
            "bulkmark_interface_connections{interface=\"http\"} 0\n",
        ];
        if wanted.iter().all(|line| text.contains(line)) { Ok(()) } else { Err(text) }
    });
}

/// A message larger than a milter would keep is refused before it is read, and a truncated one is no message.
#[test]
fn messages_have_bounds() {
    let site = site("", "", "");
    let _daemon = start(&site);
    let stream = connect(&site.path("http.sock"));
    let head = format!(
        "POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: 900000000\r\n\r\nA: b\r\n\r\n"
    );
    (&stream).write_all(head.as_bytes()).unwrap();
    let piece = vec![b'x'; 1 << 20];
    // It answers, and closes, before it has everything.
    while (&stream).write_all(&piece).is_ok() {}
    let too_long = |(status, body): (u16, String)| {
        assert_eq!(
            (status, body.as_str()),
            (413, "{\"error\":\"the message is longer than 33554432 bytes\"}")
        );
    };
    too_long(parsed(&rest(&stream)));
    // The same if the length is not announced.
    let stream = connect(&site.path("http.sock"));
    let head = format!("POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n");
    (&stream).write_all(head.as_bytes()).unwrap();
    let chunk = [b"100000\r\n", &*piece, b"\r\n"].concat();
    while (&stream).write_all(&chunk).is_ok() {}
    too_long(parsed(&rest(&stream)));
    // A header and 32 MiB are accepted.
    let longest = [b"A: b\r\n\r\n".to_vec(), b"y ".repeat(16 << 20)].concat();
    let (status, body) = http(&site, "POST /v1/judge?count=no", &[TYPE], &longest);
    assert_eq!(status, 200, "{body}");
    let half = connect(&site.path("http.sock"));
    (&half)
        .write_all(
            format!("POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: 1000\r\n\r\n")
                .as_bytes(),
        )
        .unwrap();
    (&half).write_all(&letter(1)).unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(!rest(&half).starts_with("HTTP/1.1 200"));
    assert_eq!(judge(&site, "", &letter(1))["body"]["count"], 1, "the half one was not counted");
}
