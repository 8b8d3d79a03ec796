// SPDX-License-Identifier: GPL-3.0-or-later
//! An invalid request gets no answer, takes no more than its limits, and keeps nobody else from being served.

use crate::asking::{connect, counts, dccifd, metrics, rest, site, start};
use bulkmark_testing::letters::letter;
use bulkmark_testing::random::Random;
use std::io::Write as _;
use std::net::Shutdown;

#[test]
fn what_is_no_request_is_not_answered() {
    let site = site("", "", "");
    let daemon = start(&site);
    for lines in [
        "",
        "header\n",
        "header\n192.0.2.7\nh\ns\nu@box.test\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\0\0\0\0",
        "header wrong\n\n\n\n\n",
    ] {
        assert_eq!(dccifd(&site, lines, b""), "", "{lines:?}");
    }
    daemon.log.wait_for(0, "found the option \"wrong\", expected header");
    let endless = "header\n\n\n\n".to_owned() + &"u@box.test\n".repeat(200_000);
    assert_eq!(dccifd(&site, &endless, b""), "");
    let mut random = Random::new(7);
    for _ in 0..200 {
        let bytes: Vec<u8> =
            (0..random.below(3000)).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
        let stream = connect(&site.path("dccifd.sock"));
        let _ = (&stream).write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        rest(&stream);
    }
    assert_eq!(counts(&metrics(&site, "", &letter(1))), "Body=1 Fuz1=1 Fuz2=1");
}

/// A message of any shape gets an answer whose first line is a letter.
#[test]
fn any_message_gets_an_answer() {
    let site = site("verdict-deadline = \"4m\"\n", "", "");
    let _daemon = start(&site);
    let lines = "header\n192.0.2.7\rh\nh\ns@example.org\nu@box.test\n\n";
    let long_header = [b"X: ".to_vec(), vec![b'y'; 1 << 20], b"\n\nbody\n".to_vec()].concat();
    let long_body = [b"A: b\n\n".to_vec(), vec![b'y'; 33 << 20]].concat();
    // A header does not suppress the verdict on the text below it.
    let long_header_of_many = [b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\n".repeat(50_000), letter(2)].concat();
    for (message, told) in [
        (Vec::new(), "exempt low-information"),
        (b"no header at all".to_vec(), "exempt low-information"),
        (b"\0\0\n\0\n\n\0".to_vec(), "exempt low-information"),
        (long_header, "exempt low-information"),
        (long_body, "exempt low-information"),
    ] {
        let answer = dccifd(&site, lines, &message);
        assert!(answer.starts_with("A\nA\nX-DCC-bulkmark-Metrics: mx.test "), "{answer}");
        assert!(answer.contains(&format!("; {told}\n")), "{told}: {answer}");
    }
    assert_eq!(counts(&dccifd(&site, lines, &long_header_of_many)).trim(), "Body=1 Fuz1=1 Fuz2=1");
}

/// Thousands of clients that connect silently, or stop in the middle of a message, keep nobody waiting, and are closed.
#[test]
fn slow_clients_keep_nobody_waiting() {
    let site = site("", "", "idle-timeout = \"5s\"\nmax-connections = 10\n");
    let daemon = start(&site);
    let silent: Vec<_> = (0..500)
        .map(|n| {
            let stream = connect(&site.path("dccifd.sock"));
            if n % 2 == 0 {
                let _ = (&stream).write_all(b"header\n192.0.2.7\nh\ns\nu@box.test\n\nSubject: half");
            }
            stream
        })
        .collect();
    assert_eq!(counts(&metrics(&site, "", &letter(1))), "Body=1 Fuz1=1 Fuz2=1");
    daemon.log.wait_for(0, "it did not come within 5 s");
    for stream in &silent {
        assert_eq!(rest(stream), "");
    }
    assert_eq!(counts(&metrics(&site, "", &letter(1))), "Body=2 Fuz1=2 Fuz2=2");
}
