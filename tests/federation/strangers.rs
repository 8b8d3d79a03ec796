// SPDX-License-Identifier: GPL-3.0-or-later
//! Clients that may not ask any longer, or never might: their connection ends at once, and both sides log it.

use bulkmark_testing::http::ask;
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, program, skip, wait_until};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

/// The output of `bulkmark status` for a milter.
fn status(site: &Site) -> (i32, String) {
    let output = Command::new(program()).args(["status", "--config"]).arg(site.config()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// A milter that follows the server and reported to it.
fn followed(server: &Server, name: &str) -> (Site, Daemon) {
    let site = milter(&[server.entry(name, "report")]);
    let daemon = site.start();
    send(&daemon, &letter(1), 1);
    wait_until("a milter that follows", || {
        let (code, told) = status(&site);
        if code == 0 && told.contains(": followed\n  up to date") { Ok(()) } else { Err(told) }
    });
    (site, daemon)
}

/// A stream ends with its token, not only when it is ten minutes old.
#[test]
fn the_streams_of_a_client_end_with_its_token() {
    let server = Server::new("");
    let running = server.start();
    let all = ["removed", "rotated", "stays"].map(|name| followed(&server, name));
    server.client(&["remove", "removed"]);
    server.client(&["rotate", "rotated"]);
    running.log.wait_for(0, "a stream of client removed ends: its token is no longer valid");
    server.client(&["rotate", "rotated"]);
    let [removed, rotated, stays] = &all;
    for (site, daemon) in [removed, rotated] {
        daemon.log.wait_for(0, &format!("{}: 401 Unauthorized: the token is not valid", server.url()));
        let (code, told) = status(site);
        assert_eq!(code, 1, "{told}");
        assert!(told.contains(": not followed\n  refuses this machine\n"), "{told}");
        assert!(told.contains("  error: 401 Unauthorized"), "{told}");
    }
    let ended = running.log.lines().iter().filter(|line| line.contains("a stream of client ")).count();
    assert_eq!(ended, 2, "one valid token is enough");
    // The remaining client gets updates by its existing stream.
    send(&stays.1, &letter(2), 2);
    wait_for(&stays.0, &letter(2), 2);
    assert_eq!(status(&stays.0).0, 0);
    // A new token in its file needs no restart.
    fs::write(server.site.path("rotated"), server.client(&["rotate", "rotated"])).unwrap();
    wait_for(&rotated.0, &letter(2), 2);
    assert!(status(&rotated.0).1.contains(": followed\n"));
}

/// Tries tokens that no client has.
fn try_tokens(server: &Server, times: usize) {
    for n in 0..times {
        let answer = ask(server.port, &format!("GET /v1/status HTTP/1.1\r\nAuthorization: Bearer {n}"), b"");
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
}

/// One line for each attempt until attempts are no longer checked, a counter, and the output of `status`.
#[test]
fn tokens_that_nobody_has_leave_a_trace() {
    let server = Server::new("");
    let token = server.client(&["add", "prometheus", "--role", "metrics"]);
    let daemon = server.start();
    try_tokens(&server, 15);
    let _ = ask(server.port, "GET /v1/status HTTP/1.1", b"");
    let metrics =
        ask(server.port, &format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {}", token.trim()), b"");
    for (reason, count) in [("token-invalid", 10), ("token-blocked", 5), ("token-missing", 1), ("role", 0)] {
        let line = format!("\nbulkmark_server_refused_total{{reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    daemon.log.wait_for(0, "refused: address=127.0.0.1 reason=token-blocked");
    let lines = daemon.log.lines();
    let count = |reason: &str| {
        let line = format!(": refused: address=127.0.0.1 reason={reason}");
        lines.iter().filter(|found| found.ends_with(&line)).count()
    };
    assert_eq!([count("token-invalid"), count("token-blocked")], [10, 1], "{lines:#?}");
    let output = Command::new(program())
        .args(["status", "--server", "--config"])
        .arg(server.config())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("\nrefused since the start: 5 token-blocked, 10 token-invalid, 1 token-missing\n"),
        "{told}"
    );
    assert!(told.contains("  the last token that nobody has came from 127.0.0.1, "), "{told}");
}

/// The line of the log that contains `text`, as rsyslog writes it into its file.
fn syslog_line(log: &UnixDatagram, text: &str) -> String {
    let mut bytes = [0; 4096];
    loop {
        let length = log.recv(&mut bytes).unwrap();
        let line = String::from_utf8_lossy(&bytes[..length]).trim_end().to_owned();
        if line.contains(text) {
            // Priority, then the time in three words.
            let line = line.split_once('>').unwrap().1;
            let at = line.match_indices(' ').filter(|(i, _)| !line[..*i].ends_with(' ')).nth(2).unwrap().0;
            return format!("{} counts.example.org{}", &line[..at], &line[at..]);
        }
    }
}

/// The filter for fail2ban finds the address in the daemon's own line, and in no other text that the daemon logs.
#[test]
fn fail2ban_finds_the_address() {
    let there = Path::new("/etc/fail2ban/filter.d/common.conf");
    if !there.exists() {
        assert!(std::env::var_os("CI").is_none(), "there is no fail2ban; run tests/mta/install");
        return skip("there is no fail2ban here");
    }
    let server = Server::new("");
    let filter = server.site.path("bulkmark.conf");
    fs::copy("packaging/fail2ban/filter.d/bulkmark.conf", &filter).unwrap();
    fs::copy(there, server.site.path("common.conf")).unwrap();
    let (socket, config) = (server.site.path("log"), server.site.path("syslog.toml"));
    let log = UnixDatagram::bind(&socket).unwrap();
    log.set_read_timeout(Some(bulkmark_testing::PATIENCE)).unwrap();
    let to_syslog = format!("target = \"syslog:{}\"", socket.display());
    let text = fs::read_to_string(server.config()).unwrap().replace("target = \"stderr\"", &to_syslog);
    fs::write(&config, text).unwrap();
    let _daemon = server.site.spawn_by(Command::new(program()).args(["server", "--config"]).arg(&config));
    let other = syslog_line(&log, "server listens on");
    try_tokens(&server, 11);
    let found = |line: &str| {
        let output = Command::new("fail2ban-regex").args(["-o", "<ip>", line]).arg(&filter).output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let lines = ["reason=token-invalid", "reason=token-blocked"].map(|reason| syslog_line(&log, reason));
    for line in &lines {
        assert_eq!(found(line), "127.0.0.1", "{line}");
        assert_eq!(found(&line.replace("127.0.0.1", "2001:db8::7")), "2001:db8::7");
    }
    assert_eq!(found(&other), "", "{other}");
    let forged = lines[0].replace("]: ", "]: client a: ");
    assert_eq!(
        found(&forged),
        "",
        "what stands behind something else is not the daemon's own word: {forged}"
    );
}
