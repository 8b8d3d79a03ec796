// SPDX-License-Identifier: GPL-3.0-or-later
//! The listener for metrics and the status page.

use super::{Daemon, http};
use std::collections::BTreeMap;
use std::io::Write as _;

/// A page on a port that the system chooses.
pub const STATUS: &str = "[status]\nlisten = \"127.0.0.1:0\"\n";

/// Returns the port of a daemon's page.
pub fn port(daemon: &Daemon) -> u16 {
    let line = daemon.log.wait_for(0, "metrics and status are at http://127.0.0.1:");
    line.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap()
}

/// Returns the answer to a request with this head.
pub fn ask(port: u16, head: &str) -> String {
    let stream = http::connect(port);
    (&stream).write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    http::answer(&stream)
}

/// Returns head and body of the answer to a request by Prometheus or a browser.
pub fn get(daemon: &Daemon, path: &str) -> (String, String) {
    let answer = ask(port(daemon), &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    (head.to_owned(), body.to_owned())
}

/// Returns the text for Prometheus.
pub fn exposition(daemon: &Daemon) -> String {
    let (head, text) = get(daemon, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    text
}

/// Returns its values, by name and labels as in the text.
pub fn metrics(daemon: &Daemon) -> BTreeMap<String, f64> {
    values(&exposition(daemon))
}

/// Parses the values of a text.
pub fn values(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (name.to_owned(), value.parse().unwrap_or_else(|e| panic!("{line}: {e}")))
    };
    lines.map(value).collect()
}
