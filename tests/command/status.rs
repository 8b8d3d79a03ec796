// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark status`, of a milter and of a server.

use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::program;
use bulkmark_testing::server::{Server, milter};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error.
fn status(arguments: &[&str], config: &Path) -> (i32, String, String) {
    let output = Command::new(program()).arg("status").args(arguments).arg("--config").arg(config).output();
    let output = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str], config: &Path) -> serde_json::Value {
    let (_, out, err) = status(&[arguments, &["--json"]].concat(), config);
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"))
}

/// Asks until the answer is good.
fn wait_until(ask: impl Fn() -> serde_json::Value, good: impl Fn(&serde_json::Value) -> bool) {
    bulkmark_testing::wait_until("a status", || {
        let found = ask();
        if good(&found) { Ok(()) } else { Err(format!("{found:#}")) }
    });
}

#[test]
fn a_milter_tells_of_its_counts() {
    let site = bulkmark_testing::Site::new("exempt = [\"authenticated\"]\n");
    let (code, _, err) = status(&[], &site.config());
    assert_eq!(code, 75);
    assert!(err.starts_with("bulkmark: no milter answers at "), "{err}");

    let daemon = site.start();
    send(&daemon, &letter(1), 30);
    let found = json(&[], &site.config());
    assert_eq!(found["role"], "milter");
    let slice = &found["ledger"]["slices"][0];
    assert_eq!((&slice["signatures"], &slice["counted"]), (&12.into(), &"own".into()));
    // One message of nine signatures, one that counts messages, and two for its network, of eight cells in a filter for a million: its own cells cause almost no false
    // bulk.
    let fill = slice["fill"].as_f64().unwrap();
    assert!((0.0..1e-3).contains(&fill), "{fill}");
    assert!(slice["false-bulk"].as_f64().unwrap() < 1e-9);

    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 0);
    assert!(out.starts_with("bulkmark milter "), "{out}");
    assert!(out.contains(": 12 of 1000000 signatures, "), "{out}");
    assert!(!out.contains("upstream"), "{out}");
}

#[test]
fn a_federation_is_seen_from_both_sides() {
    let server = Server::new("");
    let daemon = server.start();
    let site = milter(&[server.entry("mx", "report")]);
    let at_site = site.start();
    send(&at_site, &letter(1), 30);
    wait_until(
        || json(&[], &site.config()),
        |found| {
            let link = &found["links"][0];
            found["ledger"]["spool"] == 0
                && link["active"] == true
                && link["behind"] == 0
                && link["error"].is_null()
                && link["bytes-out"].as_u64() > Some(0)
                && link["bytes-in"].as_u64() > Some(0)
                && found["versions"].as_object().is_some_and(|versions| versions.len() == 1)
        },
    );
    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(&format!("upstream {}: followed\n  up to date\n", server.url())), "{out}");

    let found = json(&["--server"], &server.config());
    assert_eq!(found["role"], "server");
    assert_eq!(found["ledger"]["slices"][0]["signatures"], 12);
    let client = &found["clients"][0];
    assert_eq!((&client["name"], &client["refused"]), (&"mx".into(), &0.into()));
    assert!(client["signatures"].as_u64() > Some(0), "{client}");

    // A client that may not report is refused, and both sides show it.
    let reader = milter(&[server.entry("reader", "read")]);
    let at_reader = reader.start();
    send(&at_reader, &letter(1), 1);
    at_reader.log.wait_for(0, "403 Forbidden: this client may only read");
    let (_, out, _) = status(&["--server"], &server.config());
    assert!(out.contains("reader (read): "), "{out}");
    assert!(out.contains(" refused, last: this client may only read"), "{out}");

    // Without its server the milter runs on, and shows the problem.
    daemon.kill();
    wait_until(|| json(&[], &site.config()), |found| found["links"][0]["error"].is_string());
    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 1);
    assert!(out.contains("  does not answer\n") && out.contains("\n  error: "), "{out}");
}

/// A reserve server that did not answer, and answers now, is no error any more.
#[test]
fn a_reserve_that_is_back_is_no_error() {
    let (one, two) = (Server::new(""), Server::new(""));
    let site = milter(&[one.entry("mx", "report"), two.entry("mx", "report")]);
    let _at_site = site.start();
    let ask = || json(&[], &site.config());
    wait_until(ask, |found| [0, 1].iter().all(|&i| found["links"][i]["error"].is_string()));
    let _one_runs = one.start();
    wait_until(ask, |found| found["links"][0]["active"] == true);
    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 1, "{out}");
    let _two_runs = two.start();
    wait_until(ask, |found| found["links"][1]["error"].is_null());
    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 0, "{out}");
}

/// Reports that a server refused for a while and accepts again are no error any more, while its updates are followed all the time.
#[test]
fn a_server_that_takes_reports_again_is_no_error() {
    let server = Server::new("");
    let site = milter(&[server.entry("mx", "read")]);
    let (_runs, at_site) = (server.start(), site.start());
    let ask = || json(&[], &site.config());
    wait_until(ask, |found| found["links"][0]["active"] == true);
    send(&at_site, &letter(1), 1);
    wait_until(ask, |found| found["links"][0]["error"].is_string());
    let path = server.site.path("state/clients.json");
    let clients = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, clients.replace("\"read\"", "\"report\"")).unwrap();
    wait_until(ask, |found| found["ledger"]["spool"] == 0 && found["links"][0]["error"].is_null());
    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 0, "{out}");
}

/// A server started by hand, without a service manager that made a directory for its socket.
#[test]
fn the_control_sockets_directory_is_made() {
    let server = Server::new("");
    let config = server.config();
    let socket = server.site.path("run").join("server.sock");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("server.sock", "run/server.sock");
    std::fs::write(&config, text).unwrap();
    let _daemon =
        server.site.spawn_by(Command::new(program()).args(["server", "--config"]).arg(&config)).listening();
    assert!(socket.exists());
    assert_eq!(json(&["--server"], &config)["role"], "server");
}

/// The server answers Prometheus, with a token for nothing else.
#[test]
fn metrics_are_told() {
    let server = Server::new("");
    let tokens = ["metrics", "report"]
        .map(|role| server.client(&["add", "--own", role, "--role", role]).trim().to_owned());
    let _daemon = server.start();
    let ask = |path: &str, token: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}");
        bulkmark_testing::http::ask(server.port, &head, b"")
    };
    let answer = ask("/metrics", &tokens[0]);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for line in [
        "# TYPE bulkmark_build_info gauge",
        "bulkmark_ledger_available 1",
        "bulkmark_client_batches_total{client=\"report\"} 0",
    ] {
        assert!(answer.contains(line), "{line} is missing: {answer}");
    }
    assert!(ask("/metrics", &tokens[1]).starts_with("HTTP/1.1 403 "));
    assert!(ask("/v1/status", &tokens[0]).starts_with("HTTP/1.1 403 "));
    assert!(ask("/v1/status", &tokens[1]).starts_with("HTTP/1.1 200 "));
}

/// Each configured interface is shown with its requests, or with the reason why it is not open.
#[test]
fn interfaces_are_shown() {
    let mut site = bulkmark_testing::Site::new("");
    let socket = site.path("http.sock");
    site.extra = format!(
        "[interfaces.http]\nlisten = \"unix:{0}\"\n[interfaces.dccifd]\nlisten = \"unix:{0}2\"\n",
        socket.display()
    );
    let daemon = site.start();
    daemon.log.wait_for(0, "the interface dccifd is at");
    let ask = |kind: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let head = format!(
            "POST /v1/judge HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: 7\r\n\r\nA: b\n\nc"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("message/rfc822").starts_with("HTTP/1.1 200 "));
    assert!(ask("text/plain").starts_with("HTTP/1.1 415 "));
    wait_until(
        || json(&[], &site.config()),
        |found| {
            let interface = &found["interfaces"][0];
            let requests = &interface["requests"];
            interface["name"] == "http"
                && interface["error"].is_null()
                && (&interface["open"], &interface["connections"]) == (&0.into(), &2.into())
                && requests["refused"] == 1
                && requests["asked"]
                    .as_u64()
                    .zip(requests["counted"].as_u64())
                    .is_some_and(|(a, c)| a + c == 1)
                && found["interfaces"][1]["connections"] == 0
        },
    );
    let (_, out, _) = status(&[], &site.config());
    let line = format!("  http at unix:{}: requests since the start: 1 ", socket.display());
    assert!(
        out.contains(&line) && out.contains("1 refused; connections: 0 open, 2 since the start\n"),
        "{out}"
    );
    let line = format!(
        "  dccifd at unix:{}2: requests since the start: none; connections: 0 open, 0 since the start",
        socket.display()
    );
    assert!(out.contains(&line), "{out}");

    // One that cannot be opened leaves the other open.
    daemon.terminate();
    site.extra = site.extra.replace("http.sock2", "missing/dccifd.sock");
    let daemon = site.start();
    daemon.log.wait_for(0, "the interface dccifd is not open: cannot listen on unix:");
    let (code, out, _) = status(&[], &site.config());
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("  dccifd at unix:") && out.contains("IS NOT OPEN: cannot listen on "), "{out}");
    assert!(out.contains(&format!("  http at unix:{}: requests", socket.display())), "{out}");
    assert!(ask("message/rfc822").starts_with("HTTP/1.1 200 "));
}
