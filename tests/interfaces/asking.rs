// SPDX-License-Identifier: GPL-3.0-or-later
//! A site with both interfaces, and their clients.

use bulkmark_testing::standin::{StandIn, answer};
use bulkmark_testing::{Daemon, PATIENCE, Site};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A site whose interfaces are Unix sockets in its directory, open to all; `http` and `dccifd` are more keys of theirs, or limits of both.
pub(crate) fn site(keys: &str, http: &str, dccifd: &str) -> Site {
    let mut site = Site::new("");
    // For clients that run as other users.
    fs::set_permissions(site.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| format!("listen = \"unix:{}\"\n", site.path(name).display());
    // Limits apply to all interfaces.
    let is_bound =
        |line: &&str| line.starts_with("idle-timeout = ") || line.starts_with("max-connections = ");
    let [bounds, http, dccifd] = [
        http.lines()
            .chain(dccifd.lines())
            .filter(is_bound)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
            .join("\n"),
        http.lines().filter(|line| !is_bound(line)).collect::<Vec<_>>().join("\n"),
        dccifd.lines().filter(|line| !is_bound(line)).collect::<Vec<_>>().join("\n"),
    ];
    site.extra = format!(
        "{bounds}\n{keys}\n[interfaces.http]\n{}{http}\n[interfaces.dccifd]\n{}{dccifd}\n",
        at("http.sock"),
        at("dccifd.sock")
    );
    site
}

/// Starts it, and waits until both interfaces are open.
pub(crate) fn start(site: &Site) -> Daemon {
    let daemon = site.start();
    daemon.log.wait_for(0, "the interface dccifd is at");
    daemon
}

pub(crate) fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The whole answer until the other side closes the connection.
pub(crate) fn rest(mut stream: &UnixStream) -> String {
    rest_of(&mut stream)
}

/// The same for any connection.
pub(crate) fn rest_of(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // A reset after the answer is an end, too.
        Err(e) if e.kind() != ErrorKind::ConnectionReset => panic!("it does not end: {e}"),
        _ => (),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a request by HTTP with these further fields, and returns status and body.
pub(crate) fn http(site: &Site, target: &str, fields: &[&str], body: &[u8]) -> (u16, String) {
    let stream = connect(&site.path("http.sock"));
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!(
        "{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{fields}\r\n",
        body.len()
    );
    // It may be refused before everything was read.
    let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(body));
    parsed(&rest(&stream))
}

/// Status and body of an answer.
pub(crate) fn parsed(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {head}")), body.to_owned())
}

/// The HTTP answer for a message.
pub(crate) fn judge(site: &Site, query: &str, message: &[u8]) -> Value {
    let (status, body) =
        http(site, &format!("POST /v1/judge{query}"), &["Content-Type: message/rfc822"], message);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}"))
}

/// The answer to a request of dccifd's protocol.
pub(crate) fn dccifd(site: &Site, lines: &str, message: &[u8]) -> String {
    let stream = connect(&site.path("dccifd.sock"));
    let _ = (&stream).write_all(&[lines.as_bytes(), message].concat());
    let _ = stream.shutdown(Shutdown::Write);
    rest(&stream)
}

/// The header line for a message to one recipient, from a client that no list names.
pub(crate) fn metrics(site: &Site, options: &str, message: &[u8]) -> String {
    let lines = format!("header {options}\n192.0.2.7\rh.example\nh.example\ns@example.org\nu@box.test\n\n");
    let answer = dccifd(site, &lines, message);
    let line = answer.lines().nth(2).unwrap_or_else(|| panic!("no header: {answer:?}"));
    line.to_owned()
}

/// The counts of a header line.
pub(crate) fn counts(line: &str) -> &str {
    line.split_once("; ").unwrap_or_else(|| panic!("no counts: {line}")).1
}

/// A part of an answer: the message is only marked, since a recipient wrote to its sender.
pub(crate) const HELD: &str = "\"held\":\"correspondent\",";

/// A stand-in for the HTTP interface that answers for every message that users report it as spam, and adds `more`.
pub(crate) fn called_spam(more: &'static str) -> StandIn {
    StandIn::new(0, move |_| {
        let body = format!(
            "{{\"verdict\":\"spam\",\"action\":\"mark\",{more}\"because\":\"users report it as spam\",\
             \"body\":{{\"count\":3,\"threshold\":20}}}}"
        );
        Some(answer("200 OK", "", body.as_bytes()))
    })
}
