// SPDX-License-Identifier: GPL-3.0-or-later
//! The metrics that milter and server offer to Prometheus, with the dashboard and alerts that use them.

use bulkmark_testing::authority::{Authority, tls_server};
use bulkmark_testing::clock::Clock;
use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::letters::{letter, offer, send};
use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::page::{STATUS, ask, exposition, get, metrics, port, values};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, repository, skip, text_of, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A milter that counts the tests' messages.
fn site(extra: &str) -> Site {
    Site::new(&format!("exempt = [\"authenticated\"]\n{extra}{STATUS}"))
}

/// The name of a counter of messages.
fn messages(verdict: &str, action: &str, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!(",reason=\"{reason}\"") };
    format!("bulkmark_messages_total{{verdict=\"{verdict}\",action=\"{action}\"{reason}}}")
}

/// Waits until a value is good.
fn wait_for(daemon: &Daemon, name: &str, good: impl Fn(f64) -> bool) {
    wait_until(name, || {
        let found = metrics(daemon).get(name).copied();
        if found.is_some_and(&good) { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

#[test]
fn a_milter_counts_its_messages() {
    let site = site("");
    let daemon = site.start();
    let at_start = metrics(&daemon);
    for (verdict, reasons) in [
        ("clean", &[""][..]),
        ("bulk", &["body", "near"]),
        ("whitelisted", &["body", "near"]),
        ("exempt", &["loopback", "network", "authenticated", "low-information"]),
        ("unknown", &["overloaded", "internal-error", "ledger-unavailable", "timeout"]),
    ] {
        for reason in reasons {
            let name = messages(verdict, "mark", reason);
            assert_eq!(at_start.get(&name), Some(&0.0), "{name} is there before the first message");
        }
    }

    send(&daemon, &letter(1), 30);
    let mut client = session(&daemon);
    client.message(&Mail::raw(b"Subject: hi\r\n\r\nok\r\n"));
    let found = metrics(&daemon);
    for (name, value) in [
        (&*messages("clean", "mark", ""), 19.0),
        (&*messages("bulk", "mark", "body"), 11.0),
        (&*messages("bulk", "mark", "near"), 0.0),
        (&*messages("exempt", "mark", "low-information"), 1.0),
        ("bulkmark_judging_duration_seconds_count", 31.0),
        ("bulkmark_judging_duration_seconds_bucket{le=\"+Inf\"}", 31.0),
        ("bulkmark_connections_total", 2.0),
        ("bulkmark_ledger_available", 1.0),
        ("bulkmark_log_lines_dropped_total", 0.0),
        ("bulkmark_reloads_total{result=\"success\"}", 0.0),
        ("bulkmark_config_last_reload_successful", 1.0),
    ] {
        assert_eq!(found.get(name), Some(&value), "{name} in {found:#?}");
    }
    assert!(found["bulkmark_judging_duration_seconds_sum"] > 0.0);
    assert!(found["bulkmark_reported_signatures_total"] >= 30.0);
    assert!(found["bulkmark_disk_size_bytes"] > found["bulkmark_disk_available_bytes"]);
    assert!(found["bulkmark_ledger_file_bytes"] > 0.0);
    assert!(found.keys().any(|name| name.starts_with("bulkmark_build_info{role=\"milter\",version=\"")));
    wait_for(&daemon, "bulkmark_connections", |open| open == 1.0);
    drop(client);
    wait_for(&daemon, "bulkmark_connections", |open| open == 0.0);
    assert_eq!(get(&daemon, "/healthz").1, "ok\n");
}

/// The results of user reports, once for each message.
#[test]
fn user_reports_are_counted() {
    let site = site("[user-reports]\ntrust = { new-reporter = 1.0 }\nown-domains = [\"box.test\"]\n");
    let daemon = site.start();
    let words = |daemon: &Daemon| {
        let found = metrics(daemon).into_iter().filter_map(|(name, count)| {
            let labels = name.strip_prefix("bulkmark_user_reports_total{side=\"")?.strip_suffix("\"}")?;
            Some((labels.replace("\",result=\"", " "), count))
        });
        found.collect::<BTreeMap<String, f64>>()
    };
    let at_start = words(&daemon);
    assert!(at_start.len() == 16 && at_start.values().all(|count| *count == 0.0), "{at_start:?}");
    let say = |user: &str, what: &str, text: &[u8]| {
        let file = site.path("said.eml");
        fs::write(&file, text).unwrap();
        let mut report = Command::new(bulkmark_testing::program());
        report
            .args(["report", "add", what, "--user", user, "--control"])
            .arg(site.path("control.sock"))
            .arg(file);
        report.output().unwrap()
    };
    say("anna", "--spam", &letter(1));
    say("anna", "--spam", &letter(1));
    say("ben", "--spam", &letter(1));
    say("anna", "--not-spam", &letter(1));
    say("carl", "--not-spam", &offer("Carl"));
    say("anna", "--spam", &[b"From: anna@box.test\r\n", &letter(3)[..]].concat());
    say("anna", "--spam", b"Subject: x\r\n\r\nok\r\n");
    let mut found = words(&daemon);
    found.retain(|_, count| *count > 0.0);
    let expected = [
        ("not-spam taken-back", 1.0),
        ("not-spam weightless", 1.0),
        ("spam counted", 2.0),
        ("spam known", 1.0),
        ("spam refused", 2.0),
    ];
    assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn other_actions_and_reloads_are_counted() {
    let mut site = site("actions.bulk = \"reject\"\n");
    let daemon = site.start();
    let mut client = session(&daemon);
    (0..21).for_each(|_| drop(client.message(&Mail::raw(&letter(1)))));
    assert_eq!(metrics(&daemon).get(&messages("bulk", "reject", "body")), Some(&2.0));

    assert!(daemon.reload().contains("read again"));
    site.extra = "nonsense = 1\n".to_owned();
    site.config();
    assert!(daemon.reload().contains("stays in force"));
    wait_for(&daemon, "bulkmark_reloads_total{result=\"failure\"}", |count| count == 1.0);
    let (last, when) =
        ("bulkmark_config_last_reload_successful", "bulkmark_config_last_reload_success_timestamp_seconds");
    let found = metrics(&daemon);
    assert_eq!((found["bulkmark_reloads_total{result=\"success\"}"], found[last]), (1.0, 0.0));
    let time = found[when];
    assert!(time > 1.7e9, "{time}");
    // It shows the configuration in force, until another one is.
    site.extra.clear();
    site.config();
    assert!(daemon.reload().contains("read again"));
    wait_for(&daemon, last, |well| well == 1.0);
    assert!(metrics(&daemon)[when] >= time);
}

/// Copies that differ are bulk by near signatures alone.
#[test]
fn it_is_told_which_count_makes_bulk() {
    let daemon = site("").start();
    let mut client = session(&daemon);
    for n in 0..25 {
        let text = "the autumn prices are here for all of our guests who come by train or ship to the harbour on \
                    thursday when the first of the new boats will be shown to everybody and music is played";
        client
            .message(&Mail::raw(&bulkmark_testing::crlf(&format!("Subject: x\n\nDear Anna {n}!\n{text}\n"))));
    }
    let found = metrics(&daemon);
    assert!(found[&messages("bulk", "mark", "near")] > 0.0, "{found:#?}");
    assert_eq!(found[&messages("bulk", "mark", "body")], 0.0);
}

/// The policy's threshold decides: the file's own is not reached.
#[test]
fn the_policy_that_decides_says_which_count_makes_bulk() {
    let policy = "[[policy]]\nname = \"strict\"\nmatch = { recipient = \"example.net\" }\nthresholds = { body = 3, near = 3 }\n";
    let daemon = site(policy).start();
    let mut client = session(&daemon);
    for n in 1..=5 {
        assert_eq!(client.message(&Mail::text("it is the same for all of them")).count(), Some(n));
    }
    let found = metrics(&daemon);
    assert_eq!(found[&messages("bulk", "mark", "body")], 3.0, "{found:#?}");
    assert_eq!(found[&messages("bulk", "mark", "near")], 0.0);
}

/// The metrics of every process, with the names that Prometheus' own libraries use.
#[test]
fn the_process_is_told() {
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let daemon = site("").start();
    let found = metrics(&daemon);
    let started = found["process_start_time_seconds"];
    assert!((before - 5.0..before + 60.0).contains(&started), "{started} and {before}");
    assert!(found["process_resident_memory_bytes"] > 1e6);
    assert!(found["process_virtual_memory_bytes"] >= found["process_resident_memory_bytes"]);
    assert!((5.0..1000.0).contains(&found["process_open_fds"]), "{}", found["process_open_fds"]);
    assert!(found["process_max_fds"] >= found["process_open_fds"]);
    // It counts up while mail is judged.
    send(&daemon, &letter(1), 200);
    wait_for(&daemon, "process_cpu_seconds_total", |seconds| seconds > found["process_cpu_seconds_total"]);
}

/// A log daemon that does not read.
#[test]
fn lost_log_lines_are_counted() {
    let mut site = Site::new("");
    let socket = site.path("log");
    let _unread = UnixDatagram::bind(&socket).unwrap();
    // Clients on loopback are exempt, which causes a line each.
    site.extra = format!("{STATUS}[log]\ntarget = \"syslog:{}\"\n", socket.display());
    // The log cannot show the page's address.
    let free = bulkmark_testing::mta::free_port();
    site.extra = site.extra.replace(":0\"", &format!(":{free}\""));
    site.listen = format!("inet:127.0.0.1:{}", bulkmark_testing::mta::free_port());
    let mut daemon = site.spawn();
    daemon.address.clone_from(&site.listen);
    wait_until("the milter", || {
        std::net::TcpStream::connect(daemon.tcp()).map(drop).map_err(|e| e.to_string())
    });
    let mut client = Client::connect(&daemon);
    client.client("localhost", "127.0.0.1");
    let lost = || {
        let text = ask(free, "GET /metrics HTTP/1.1\r\nHost: localhost");
        let values = values(text.split_once("\r\n\r\n").unwrap().1);
        values["bulkmark_log_lines_dropped_total"]
    };
    assert_eq!(lost(), 0.0);
    // More lines than fit into the queues of daemon and socket.
    for _ in 0..12_000 {
        client.message(&Mail::raw(b"Subject: x\r\n\r\nx\r\n"));
    }
    assert!(lost() > 0.0);
}

#[test]
fn a_full_disk_is_seen() {
    let site = site("on-failure = \"accept\"\n");
    let state = site.path("state");
    let Some(_mount) = Mount::new(&state, "size=6m") else { return };
    let mut site = site;
    site.extra += "[ledger]\ncapacity = 20000\n";
    let daemon = site.start();
    send(&daemon, &letter(0), 1);
    assert!(fs::write(state.join("filler"), vec![0x55; 8 << 20]).is_err(), "the disk is not full");
    let mut client = session(&daemon);
    let mut sent = 0;
    while metrics(&daemon)["bulkmark_ledger_available"] > 0.0 {
        sent += 1;
        assert!(sent < 5000, "the ledger needs no space");
        (0..10).for_each(|n| drop(client.message(&Mail::raw(&letter(10 * sent + n)))));
    }
    let found = metrics(&daemon);
    assert_eq!(found["bulkmark_disk_available_bytes"], 0.0);
    assert!(found[&messages("unknown", "mark", "ledger-unavailable")] > 0.0, "{found:#?}");
    let (head, body) = get(&daemon, "/healthz");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}{body}");
    fs::remove_file(state.join("filler")).unwrap();
    wait_for(&daemon, "bulkmark_ledger_available", |available| available == 1.0);
}

/// If nobody accepts reports, they are dropped in the end.
#[test]
fn dropped_reports_are_counted() {
    let nobody = bulkmark_testing::mta::free_port();
    let upstream = format!("upstream = [{{ url = \"http://127.0.0.1:{nobody}\" }}]\n");
    let mut site = site(&upstream);
    let Some(clock) = Clock::of(&mut site, "-25h") else { return };
    let daemon = site.start();
    send(&daemon, &letter(1), 10);
    let found = metrics(&daemon);
    let url = format!("{{kind=\"upstream\",url=\"http://127.0.0.1:{nobody}\"}}");
    assert!(found["bulkmark_spool_reports"] >= 10.0, "{found:#?}");
    assert!(found.contains_key("bulkmark_staleness_seconds"), "{found:#?}");
    wait_for(&daemon, &format!("bulkmark_link_up{url}"), |up| up == 0.0);
    wait_for(&daemon, "bulkmark_spool_dropped_reports_total", |dropped| dropped == 0.0);
    clock.set("+0");
    wait_for(&daemon, "bulkmark_spool_dropped_reports_total", |dropped| dropped >= 10.0);
    assert_eq!(metrics(&daemon)["bulkmark_spool_reports"], 0.0);
}

#[test]
fn strangers_are_kept_out() {
    let site = site("");
    let daemon = site.start();
    let port = port(&daemon);
    let by = |host: &str| ask(port, &format!("GET /metrics HTTP/1.1\r\nHost: {host}"));
    for ours in ["127.0.0.1", "localhost", "[::1]:99"] {
        assert!(by(ours).starts_with("HTTP/1.1 200 "), "{ours}");
    }
    // A web site whose name resolves to 127.0.0.1.
    let refused = by("rebound.example");
    assert!(refused.starts_with("HTTP/1.1 421 ") && refused.contains("hosts in [status]"), "{refused}");
    assert!(!refused.contains("bulkmark_build_info"));
    // Behind a name of ours, and in the target, which proxies use.
    assert!(by("localhost\r\nHost: rebound.example").starts_with("HTTP/1.1 421 "));
    let target = ask(port, "GET http://rebound.example/metrics HTTP/1.1\r\nHost: localhost");
    assert!(target.starts_with("HTTP/1.1 421 "), "{target}");
    drop(daemon);

    let named = Site::new("[status]\nlisten = \"127.0.0.1:0\"\nhosts = [\"mx.example.org\"]\n");
    let daemon = named.start();
    let answer = ask(bulkmark_testing::page::port(&daemon), "GET /metrics HTTP/1.1\r\nHost: mx.example.org");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    for (extra, complaint) in [
        ("listen = \"0.0.0.0:0\"", "expected a loopback address or unix:/PATH"),
        ("listen = \"8722\"", "status.listen: found \"8722\", expected \"HOST:PORT\""),
    ] {
        let site = Site::new(&format!("[status]\n{extra}\n"));
        let daemon = site.spawn();
        daemon.log.wait_for(0, complaint);
        assert_eq!(daemon.wait().code(), Some(78));
    }
    let open = Site::new("[status]\nlisten = \"0.0.0.0:0\"\nhosts = [\"mx.test\"]\n").start();
    open.log.wait_for(0, "metrics and status are at http://0.0.0.0:");
}

/// Mail does not wait for a page.
#[test]
fn a_milter_runs_where_its_page_cannot() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let site = Site::new(&format!("exempt = [\"authenticated\"]\n[status]\nlisten = \"127.0.0.1:{port}\"\n"));
    let daemon = site.start();
    let line = daemon.log.wait_for(0, "there are no metrics and no status page");
    assert!(line.contains(&format!("cannot listen on 127.0.0.1:{port} (status.listen)")), "{line}");
    send(&daemon, &letter(1), 1);
}

#[test]
fn a_unix_socket_is_for_the_group() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut site = Site::new("");
    let path = site.path("page.sock");
    site.extra = format!("[status]\nlisten = \"unix:{}\"\n", path.display());
    let daemon = site.start();
    daemon.log.wait_for(0, "metrics and status are at unix:");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    // A reverse proxy has any name.
    (&stream).write_all(b"GET /healthz HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut &stream, &mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

/// A server with TLS and a page.
fn tls_with_page() -> Server {
    let mut server = tls_server();
    server.status = STATUS.replace("[status]\n", "");
    server
}

/// The expiry is that of the certificate in force, which a reload changes.
#[test]
fn it_is_told_when_a_certificate_expires() {
    const NAME: &str = "bulkmark_tls_certificate_expiry_timestamp_seconds";
    let (authority, server) = (Authority::new("ours"), tls_with_page());
    authority.certify(&server, "127.0.0.1", true);
    let daemon = server.start();
    // 2020-02-01.
    assert_eq!(metrics(&daemon)[NAME], 1_580_515_200.0);
    authority.certify(&server, "127.0.0.1", false);
    assert!(daemon.reload().contains("read again"));
    wait_for(&daemon, NAME, |expiry| expiry > 2e9);
}

/// All metrics of both daemons in a federation, and their text.
fn everything() -> String {
    let mut servers = Server::peers("");
    servers[0].status = STATUS.replace("[status]\n", "");
    let entry = servers[0].entry("mx", "report");
    let token = servers[0].client(&["add", "--partner", "partner"]);
    fs::write(servers[0].site.path("partner"), token).unwrap();
    let partner = format!(
        "{{ url = \"{}\", token-file = \"{}\" }}",
        servers[0].url(),
        servers[0].site.path("partner").display()
    );
    let [one, _two] = servers.each_ref().map(Server::start);
    let mut site = milter(&[entry]);
    site.extra += STATUS;
    site.extra += "[alerts]\nwebhook = \"http://127.0.0.1:9/\"\n";
    site.extra += "[[policy]]\nname = \"customers\"\nmatch = { recipient = \"example.net\" }\n\
                   thresholds = { body = 2, near = 2, min-sources = 1, min-messages = 1 }\n\
                   actions = { bulk = \"reject\", rehearse = true }\n";
    let at_site = site.start();
    send(&at_site, &letter(1), 3);
    wait_for(&at_site, "bulkmark_spool_reports", |reports| reports == 0.0);
    wait_for(&one, "bulkmark_client_signatures_total{client=\"mx\"}", |count| count > 0.0);
    let other = milter(&[partner]);
    let at_other = other.start();
    send(&at_other, &letter(2), 3);
    wait_for(&one, "bulkmark_client_window_signatures{client=\"partner\"}", |count| count > 0.0);
    wait_until("the peer", || {
        let text = exposition(&one);
        let told = ["bulkmark_link_behind_updates{", "bulkmark_link_silence_seconds{"];
        if told.iter().all(|name| text.contains(name)) { Ok(()) } else { Err(text) }
    });
    let mut partial = milter(&[servers[0].entry("partial", "report")]);
    partial.extra += "copy = \"partial\"\n";
    partial.extra += &format!(
        "{STATUS}[interfaces.dccifd]\nlisten = \"unix:{}\"\n",
        partial.path("dccifd.sock").display()
    );
    let holds_bulk = partial.start();
    wait_for(&holds_bulk, "bulkmark_bulk_signatures", |signatures| signatures >= 0.0);
    wait_for(&holds_bulk, "bulkmark_interface_open{interface=\"dccifd\"}", |open| open == 1.0);
    let with_tls = tls_with_page();
    Authority::new("ours").certify(&with_tls, "127.0.0.1", false);
    let tls = with_tls.start();
    exposition(&at_site)
        + &exposition(&one)
        + &exposition(&tls)
        + &exposition(&holds_bulk)
        + &of_fleet().unwrap_or_default()
}

/// The metrics of a fleet's daemons, once a step was made and applied; none without PostgreSQL.
fn of_fleet() -> Option<String> {
    let fleet = Fleet::postgres()?;
    let mut server = fleet.aggregator("agg1");
    server.status = STATUS.replace("[status]\n", "");
    let aggregator = server.start();
    let mut site = fleet.milter("mx1");
    site.extra += STATUS;
    let milter = site.start();
    send(&milter, &letter(3), 3);
    wait_for(&aggregator, "bulkmark_fleet_drafts_total{result=\"won\"}", |won| won > 0.0);
    wait_for(&milter, "bulkmark_fleet_version", |version| version > 0.0);
    Some(exposition(&milter) + &exposition(&aggregator))
}

/// The names of families with their types.
fn families(text: &str) -> BTreeMap<String, String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

/// Runs promtool; none if it is missing, which the machine that tests every change must not allow.
fn promtool(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(repository()).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skip("promtool is not installed");
            return None;
        }
        Err(e) => panic!("promtool: {e}"),
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The table, the dashboard and the alerts agree with the daemons' metrics.
#[test]
fn documents_dashboard_and_alerts_name_what_there_is() {
    let text = everything();
    let families = families(&text);
    // Without PostgreSQL, no daemon has its metrics.
    let has_fleet = families.contains_key("bulkmark_fleet_version");

    // One daemon at a time, since a text has each family once.
    for one in text.split("# HELP bulkmark_build_info").skip(1) {
        let Some((good, told)) = promtool(&["check", "metrics"], &format!("# HELP bulkmark_build_info{one}"))
        else {
            break;
        };
        assert!(good && told.is_empty(), "{told}");
    }

    let table: BTreeMap<_, _> = text_of("docs/metrics.md")
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let name = cells.next()?.trim_end_matches('`').split('{').next()?.to_owned();
            let is_one = name.starts_with("bulkmark_") || name.starts_with("process_");
            let is_one = is_one && (has_fleet || !name.starts_with("bulkmark_fleet_"));
            Some((name, cells.next()?.to_owned())).filter(|_| is_one)
        })
        .collect();
    assert_eq!(table, families, "docs/metrics.md against what is told");

    let samples: BTreeSet<String> =
        values(&text).keys().map(|name| name.split('{').next().unwrap().to_owned()).collect();
    for path in ["packaging/grafana/bulkmark.json", "packaging/prometheus/alerts.yml"] {
        let names = names_in(&queries(path));
        assert!(names.len() > 5, "{path}: {names:?}");
        for name in names.into_iter().filter(|name| has_fleet || !name.starts_with("bulkmark_fleet_")) {
            assert!(samples.contains(&name), "{path} asks for {name}, which nobody tells");
        }
    }
    // The dashboard has every metric that an operator needs.
    let shown = names_in(&queries("packaging/grafana/bulkmark.json"));
    for family in families.keys() {
        let is_shown = shown.iter().any(|name| name.starts_with(family.as_str()));
        assert!(is_shown || NOT_SHOWN.contains(&&**family), "the dashboard does not show {family}");
    }
}

/// Metrics without a panel of their own.
const NOT_SHOWN: [&str; 5] = [
    "bulkmark_policy_messages_rehearsed_total",
    "bulkmark_ledger_origins",
    "bulkmark_ledger_version",
    "bulkmark_ledger_capacity_signatures",
    "process_start_time_seconds",
];

/// The queries of a dashboard or of alerts, one a line.
fn queries(path: &str) -> String {
    if path.ends_with(".yml") {
        let text = text_of(path);
        return text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("expr: "))
            .collect::<Vec<_>>()
            .join("\n");
    }
    let dashboard: serde_json::Value = serde_json::from_str(&text_of(path)).unwrap();
    let mut found = Vec::new();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(panel["title"].as_str().is_some_and(|title| !title.is_empty()), "{panel}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        for target in targets {
            found.push(target["expr"].as_str().unwrap().to_owned());
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
        }
    }
    found.join("\n")
}

/// The metrics that a query names.
fn names_in(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("bulkmark_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// Prometheus accepts all queries: it reads them as rules. Bulk becomes spam once users nominate it, so a query for bulk alone
/// would lose it.
#[test]
fn who_asks_for_bulk_asks_for_spam() {
    for path in ["packaging/grafana/bulkmark.json", "packaging/prometheus/alerts.yml"] {
        let queries = queries(path);
        let asked: Vec<&str> =
            queries.split("verdict=").skip(1).filter_map(|rest| rest.split('"').nth(1)).collect();
        let has =
            |wanted: &str| asked.iter().filter(|asked| asked.split('|').any(|one| one == wanted)).count();
        assert!(has("bulk") > 0 && has("bulk") == has("spam"), "{path}: {asked:?}");
    }
}

#[test]
fn queries_of_the_dashboard_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let queries = queries("packaging/grafana/bulkmark.json");
    let rules: String = queries
        .lines()
        .enumerate()
        .map(|(n, query)| {
            let query = query.replace("$__rate_interval", "5m").replace("$instance", ".*");
            format!("  - record: q{n}\n    expr: {}\n", serde_json::to_string(&query).unwrap())
        })
        .collect();
    let path: PathBuf = directory.path().join("rules.yml");
    fs::write(&path, format!("groups:\n- name: x\n  rules:\n{rules}")).unwrap();
    if let Some((good, told)) = promtool(&["check", "rules", path.to_str().unwrap()], "") {
        assert!(good, "{told}\n{rules}");
    }
}

#[test]
fn alerts_are_valid_and_each_is_tested() {
    let names_of = |path: &str, key: &str| -> BTreeSet<String> {
        let text = text_of(path);
        text.lines()
            .filter_map(|line| line.trim().strip_prefix(key))
            .map(|name| name.trim().to_owned())
            .collect()
    };
    let alerts = names_of("packaging/prometheus/alerts.yml", "- alert:");
    assert!(alerts.len() >= 8, "{alerts:?}");
    // Each alert fires in a test; and every test has a time without it.
    assert_eq!(names_of("packaging/prometheus/alerts_test.yml", "- alertname:"), alerts);
    for arguments in [
        ["check", "rules", "packaging/prometheus/alerts.yml"],
        ["test", "rules", "packaging/prometheus/alerts_test.yml"],
    ] {
        let Some((good, told)) = promtool(&arguments, "") else { return };
        assert!(good, "{told}");
    }
}
