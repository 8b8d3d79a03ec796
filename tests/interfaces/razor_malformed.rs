// SPDX-License-Identifier: GPL-3.0-or-later
//! Requests that clients of Razor do not send: none takes more than its limits, or keeps others from being served.

use crate::floods::MOST_TAKEN;
use crate::razor::{Raw, TRUSTING, open, start};
use bulkmark_testing::process::resident;
use bulkmark_testing::random::Random;
use bulkmark_testing::{PATIENCE, Site};
use std::io::Read as _;
use std::net::{Shutdown, TcpStream};

/// Checks that another client is served.
fn is_served(address: &str) {
    assert_eq!(Raw::connect(address).ask("a=c&e=8&s=abc"), "p=0");
}

/// An endless line, batch or mail is closed, with an answer that a client may read.
#[test]
fn what_is_too_long_is_closed() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let daemon = start(&site);
    for (bytes, why) in [
        ("x".repeat(5000), "a line is longer than 1024 bytes"),
        (format!("-a=c&e=8&s=?\r\n{}", "x\r\n".repeat(1100)), "a batch has more than 1024 lines"),
        (format!("-a=r&message=*\r\n{}", "xxxxxx\r\n".repeat(140_000)), "longer than 1048576 bytes"),
    ] {
        let mut raw = Raw::connect(&address);
        raw.send(bytes.as_bytes());
        daemon.log.wait_for(0, why);
        // A reset may come before the answer.
        let told = raw.line();
        assert!(["", "err=202\r\n"].contains(&&*told), "{told:?}");
        is_served(&address);
    }
}

/// A thousand wrong passwords at once, in a batch or in lines, end at the third, and hold no place for minutes.
#[test]
fn wrong_passwords_at_once() {
    let (site, address) = open(Site::new(TRUSTING), "idle-timeout = \"10m\"\nmax-connections = 3\n");
    let _daemon = start(&site);
    assert!(Raw::connect(&address).ask("a=reg&user=anna&pass=a-password").contains("res=1"));
    let tries = "a=ai&user=anna\r\na=auth&aresp=x\r\n".repeat(512);
    let batch = format!("-{tries}.\r\n");
    let all: Vec<Raw> = [&batch, &tries, &batch]
        .into_iter()
        .map(|bytes| {
            let mut raw = Raw::connect(&address);
            raw.send(bytes.as_bytes());
            raw
        })
        .collect();
    is_served(&address);
    for (n, mut raw) in all.into_iter().enumerate() {
        let lines: Vec<String> =
            std::iter::from_fn(|| Some(raw.line()).filter(|line| !line.is_empty())).collect();
        // Or it made room for the other client.
        let refused = lines.iter().filter(|line| *line == "res=0\r\n").count();
        assert!([0, 3].contains(&refused), "{lines:?}");
        let end = if n == 1 { "res=0\r\n" } else { ".\r\n" };
        assert!(lines.last().is_none_or(|last| last == end), "{lines:?}");
    }
    let mut raw = Raw::connect(&address);
    raw.send(batch.as_bytes());
    let mut told = String::new();
    let _ = raw.stream().read_to_string(&mut told);
    assert!(told.starts_with("-achal=") && told.ends_with("\r\nres=0\r\n.\r\n"), "{told}");
    assert_eq!(told.matches("res=0").count(), 3, "{told}");
}

/// An empty batch requests nothing that a batch could answer.
#[test]
fn an_empty_batch() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let _daemon = start(&site);
    let mut raw = Raw::connect(&address);
    assert_eq!(raw.ask("-a=c&e=?&s=?\r\n."), "err=202");
    assert_eq!(raw.ask("a=c&e=8&s=abc"), "p=0");
}

/// Whatever bytes arrive, the daemon lives, and others are served.
#[test]
fn garbage() {
    let (site, address) = open(Site::new(TRUSTING), "");
    let daemon = start(&site);
    let mut random = Random::new(11);
    let words = [
        "a=",
        "c",
        "&e=4",
        "&s=",
        "-",
        "\r\n",
        "\n",
        ".\r\n",
        "=?",
        "=*",
        "message",
        ",",
        "a=reg",
        "a=ai&user=",
        "%",
        "\0",
    ];
    for n in 0..300 {
        let mut raw = Raw::connect(&address);
        let bytes: Vec<u8> = (0..random.below(400))
            .flat_map(|_| match n % 2 {
                0 => vec![u8::try_from(random.below(256)).unwrap()],
                _ => words[random.below(16)].as_bytes().to_vec(),
            })
            .collect();
        raw.send(&bytes);
        let _ = raw.stream().shutdown(Shutdown::Write);
        while !raw.line().is_empty() {}
    }
    is_served(&address);
    assert!(daemon.terminate().success());
}

/// Ten thousand connections, silent or stopped halfway, keep nobody waiting: there are as many as are allowed.
#[test]
fn ten_thousand_connections() {
    let (site, address) = open(Site::new(TRUSTING), "idle-timeout = \"5s\"\nmax-connections = 20\n");
    let daemon = start(&site);
    is_served(&address);
    let before = resident(&daemon);
    let mut silent = std::collections::VecDeque::new();
    for n in 0..10_000 {
        let mut stream = TcpStream::connect((&*address, 2703)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        if n % 2 == 0 {
            let _ = std::io::Write::write_all(&mut stream, b"-a=c&e=8&s=abc\r\na=c&");
        }
        silent.push_back(stream);
        // The test has no more descriptors than other programs.
        if silent.len() > 500 {
            silent.pop_front();
        }
        if n % 1000 == 0 {
            is_served(&address);
        }
    }
    is_served(&address);
    let taken = resident(&daemon).saturating_sub(before);
    assert!(taken < MOST_TAKEN, "{taken} kB");
    for mut stream in silent {
        // It ends, because others needed the place or by its silence.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    is_served(&address);
}
