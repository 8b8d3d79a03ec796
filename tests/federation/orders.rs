// SPDX-License-Identifier: GPL-3.0-or-later
//! Orders of one site at all sites: `bulkmark allow`, and `bulkmark pause` at a server. Real servers and milters, hostile clients and servers.

use super::attack::client::{Answer as Reply, Http};
use bulkmark_counts::Vector;
use bulkmark_sync::wire::{SNAPSHOT, SnapshotHead, UPDATES, encode_alive, frame};
use bulkmark_testing::letters::offer;
use bulkmark_testing::milter::{Answer, Mail, session};
use bulkmark_testing::page::metrics;
use bulkmark_testing::server::{Server, milter, parameters};
use bulkmark_testing::standin::{StandIn, answer, endless};
use bulkmark_testing::{Daemon, Site, program, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// A milter that refuses everything at its first copy.
fn site(entries: &[String]) -> Site {
    let mut site = milter(entries);
    site.extra += "[thresholds]\nbody = 1\nnear = 1\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n\
                   [status]\nlisten = \"127.0.0.1:0\"\n";
    site
}

/// The entry of a milter with this name in the list of servers; a partner has limits.
fn partner(server: &Server, name: &str) -> String {
    let token = server.client(&["add", "--partner", name]);
    fs::write(server.site.path(name), token).unwrap();
    format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), server.site.path(name).display())
}

/// The output of a command about the milter or server with this configuration.
fn run(config: &std::path::Path, args: &[&str]) -> (i32, String) {
    let output = Command::new(program()).args(args).arg("--config").arg(config).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Allows the mailing of a letter at a site, and returns its name.
fn allow(site: &Site, letter: &[u8], more: &[&str]) -> String {
    let file = site.path("letter.eml");
    fs::write(&file, letter).unwrap();
    let file = file.display().to_string();
    let (code, text) =
        run(&site.path("milter.toml"), &[&["allow", "--json", "--by", "anna", &file], more].concat());
    assert_eq!(code, 0, "{text}");
    let told: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    told["mailing"]["signatures"][0].as_str().unwrap().to_owned()
}

fn list(site: &Site) -> String {
    run(&site.path("milter.toml"), &["allow", "--list"]).1
}

fn list_at(server: &Server) -> String {
    run(&server.config(), &["allow", "--list"]).1
}

fn sends(daemon: &Daemon, letter: &[u8]) -> Answer {
    session(daemon).message(&Mail::raw(letter))
}

fn is_refused(answer: &Answer) -> bool {
    answer.reply.starts_with("550 ")
}

/// Waits until copies are refused, or marked with these words.
#[track_caller]
fn wait_for(daemon: &Daemon, letter: &[u8], expected: Option<&str>) {
    wait_until("an order", || {
        let answer = sends(daemon, letter);
        let is_it = expected.map_or_else(
            || is_refused(&answer),
            |words| answer.reply == "c" && format!("{};", answer.verdict()).contains(&format!("; {words};")),
        );
        if is_it { Ok(()) } else { Err(format!("{answer:?}")) }
    });
}

/// Waits until the list has a line with all these words.
#[track_caller]
fn wait_for_line(list: impl Fn() -> String, words: &[&str]) -> String {
    wait_until("a line", || {
        let text = list();
        let line = text.lines().find(|line| words.iter().all(|word| line.contains(word)));
        line.map(str::to_owned).ok_or_else(|| format!("{words:?}: {text}"))
    })
}

/// An own site's order holds at the other site, for copies that differ, too; it outlives kill -9 of the server and of the milter, and ends when
/// the site takes it back.
#[test]
fn an_own_site_allows_a_mailing_at_all_sites() {
    let server = Server::new("");
    let (one, two) = (site(&[server.entry("one", "report")]), site(&[server.entry("two", "report")]));
    let (running, at_one, at_two) = (server.start(), one.start(), two.start());
    assert!(is_refused(&sends(&at_one, &offer("Anna"))) && is_refused(&sends(&at_two, &offer("Anna"))));
    let name = allow(&one, &offer("Anna"), &["--reason", "the parish"]);
    for to in ["Anna", "Benedikt"] {
        wait_for(&at_two, &offer(to), Some("held=allowed; allowed-by=one"));
    }
    at_two.log.wait_for(0, " held=allowed allowed-by=one ");
    assert!(sends(&at_one, &offer("Anna")).verdict().contains("; held=allowed"), "at home as before");
    assert!(!sends(&at_one, &offer("Anna")).verdict().contains("allowed-by="));
    let line = wait_for_line(|| list(&two), &[&name, "by anna at one (own): the parish"]);
    assert!(line.contains("  until 2") && !line.contains("until it is"), "at the longest: {line}");
    wait_for_line(|| list(&one), &[&name, "until it is removed", "by anna, at all sites: the parish"]);
    wait_for_line(|| list_at(&server), &[&name, "by anna at one (own)"]);
    assert_eq!(metrics(&at_two)["bulkmark_allowed_mailings_of_other_sites{state=\"in-force\"}"], 1.0);
    assert_eq!(metrics(&at_one)["bulkmark_allowed_mailings"], 1.0);
    // What commands and interfaces say.
    fs::write(two.path("letter.eml"), offer("Carla")).unwrap();
    let file = two.path("letter.eml").display().to_string();
    let (_, text) = run(&two.path("milter.toml"), &["explain", &file]);
    assert!(text.contains("this mailing is allowed (bulkmark allow --list), by order of one"), "{text}");
    // Nothing is lost with the processes, and the milter knows it without a server.
    running.kill();
    at_two.kill();
    let at_two = two.start();
    assert!(sends(&at_two, &offer("Dora")).verdict().contains("; allowed-by=one"), "without the server");
    let (_, text) = run(&two.path("milter.toml"), &["check", &file]);
    assert!(text.contains("by order of one"), "{text}");
    let _running = server.start();
    wait_for_line(|| list_at(&server), &[&name, "by anna at one (own)"]);
    assert_eq!(run(&one.path("milter.toml"), &["allow", "--remove", &name[..8]]).0, 0);
    wait_for(&at_two, &offer("Emil"), None);
    wait_until("nothing", || {
        Some(list_at(&server))
            .filter(|all| all.contains("no mailing"))
            .ok_or_else(|| list_at(&server))
            .map(drop)
    });
}

/// One partner's order is listed and holds at home, also at another machine of the partner; two partners' hold everywhere.
#[test]
fn a_partner_allows_elsewhere_only_with_a_second_one() {
    let server = Server::new("");
    let own = site(&[server.entry("own", "report")]);
    let entry = partner(&server, "pf1");
    let (one, again) = (site(std::slice::from_ref(&entry)), site(&[entry]));
    let two = site(&[partner(&server, "pf2")]);
    let _running = server.start();
    let (at_own, at_one, at_again, at_two) = (own.start(), one.start(), again.start(), two.start());
    let name = allow(&one, &offer("Anna"), &["--for", "30d"]);
    wait_for_line(|| list(&own), &[&name, "by anna at pf1 (partner), waits for a second partner"]);
    wait_for(&at_again, &offer("Anna"), Some("held=allowed; allowed-by=pf1"));
    assert!(is_refused(&sends(&at_own, &offer("Anna"))) && is_refused(&sends(&at_two, &offer("Anna"))));
    wait_for_line(|| list(&one), &[&name, "here, and elsewhere with a second partner"]);
    assert_eq!(metrics(&at_own)["bulkmark_allowed_mailings_of_other_sites{state=\"waiting\"}"], 1.0);
    // The second one has another copy, with another name.
    let second = allow(&two, &offer("Benedikt"), &[]);
    assert_ne!(name, second);
    wait_for(&at_own, &offer("Carla"), Some("held=allowed; allowed-by=pf1+pf2"));
    assert!(!list(&own).contains("waits"), "{}", list(&own));
    run(&one.path("milter.toml"), &["allow", "--remove", &name]);
    wait_for(&at_own, &offer("Carla"), None);
    assert_eq!(sends(&at_two, &offer("Carla")).reply, "c", "at home it still holds");
    // A removed client loses its orders.
    server.client(&["remove", "pf2"]);
    wait_until("nothing", || {
        Some(list(&own)).filter(|all| all.contains("no mailing")).ok_or_else(|| list(&own)).map(drop)
    });
    drop(at_one);
}

/// The operator allows a mailing, revokes a site's order, and pauses all sites, at either of two servers.
#[test]
fn the_operator_orders_at_a_server_and_its_peer() {
    let servers = Server::peers("");
    let one = site(&[servers[0].entry("mx1", "report")]);
    let two = site(&[servers[1].entry("mx2", "report")]);
    let _running = servers.each_ref().map(Server::start);
    let (at_one, at_two) = (one.start(), two.start());
    let refused = sends(&at_two, &offer("Anna"));
    assert!(is_refused(&refused), "{refused:?}");
    let line = at_two.log.wait_for(0, " action=reject ");
    let signature = line.split(" signature=").nth(1).unwrap().split(' ').next().unwrap();
    let at_server = |server: &Server, args: &[&str]| {
        let (code, text) = run(&server.config(), &[args, &["--server", "--by", "otto"]].concat());
        assert_eq!(code, 0, "{args:?}: {text}");
        text
    };
    at_server(&servers[0], &["allow", signature, "--reason", "ours"]);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    wait_for(&at_two, &offer("Anna"), Some(&format!("held=allowed; allowed-by={}", host.trim())));
    wait_for_line(|| list(&one), &[signature, "by otto at ", " (operator): ours"]);
    at_server(&servers[0], &["allow", "--remove", signature]);
    wait_for(&at_two, &offer("Anna"), None);
    // A site's order crosses from server to server, and the operator of another server revokes it.
    let name = allow(&one, &offer("Anna"), &[]);
    wait_for(&at_two, &offer("Benedikt"), Some("held=allowed; allowed-by=mx1"));
    wait_for_line(|| list_at(&servers[1]), &[&name, "by anna at mx1 (own)"]);
    let text = at_server(&servers[1], &["allow", "--remove", &name[..10]]);
    assert!(text.contains("is revoked: it holds at the mail server alone"), "{text}");
    wait_for(&at_two, &offer("Benedikt"), None);
    wait_for_line(|| list(&two), &[&name, "revoked by the operator"]);
    assert_eq!(sends(&at_one, &offer("Benedikt")).reply, "c", "at home it still holds");
    wait_for_line(|| list(&one), &[&name, "by anna, here alone: revoked by the operator"]);
    let text = at_server(&servers[1], &["pause", "--for", "1h", "--reason", "complaints"]);
    assert!(text.contains("; all mail servers of the federation are paused, "), "{text}");
    for (site, daemon) in [(&one, &at_one), (&two, &at_two)] {
        let status = || run(&site.path("milter.toml"), &["status"]).1;
        wait_for_line(status, &["PAUSED: paused until ", ", for all sites: complaints"]);
        assert_eq!(sends(daemon, &offer("Carla")).reply, "c");
        assert_eq!(metrics(daemon)["bulkmark_paused"], 1.0);
    }
    wait_for(&at_two, &offer("Carla"), Some("would=reject"));
    at_two.log.wait_for(0, "paused at all sites: nothing is refused, server=");
    let (_, text) = run(&two.path("milter.toml"), &["resume"]);
    assert!(text.contains("it is still paused until ") && text.contains("for all sites"), "{text}");
    assert!(text.contains("; end it at ") && text.contains("with `bulkmark resume --server`"), "{text}");
    at_server(&servers[1], &["resume"]);
    wait_for(&at_two, &offer("Carla"), None);
    let (code, text) =
        run(&servers[0].config(), &["allow", "--server", &one.path("letter.eml").display().to_string()]);
    assert!(code == 1 && text.contains("a signature server cannot read messages"), "{text}");
}

/// A milter whose server dies follows another one, and takes its orders along: they end at once where it ends them.
#[test]
fn orders_move_with_a_milter_to_another_server() {
    let servers = Server::peers("");
    let one = site(&[servers[0].entry("mx1", "report"), servers[1].entry("mx1", "report")]);
    let two = site(&[servers[1].entry("mx2", "report")]);
    let [first, _second] = servers.each_ref().map(Server::start);
    let (_at_one, at_two) = (one.start(), two.start());
    let name = allow(&one, &offer("Anna"), &[]);
    wait_for(&at_two, &offer("Anna"), Some("held=allowed; allowed-by=mx1"));
    first.kill();
    assert_eq!(run(&one.path("milter.toml"), &["allow", "--remove", &name]).0, 0);
    wait_for(&at_two, &offer("Anna"), None);
    let _first = servers[0].start();
    wait_until("both", || {
        let all = servers.each_ref().map(list_at);
        if all.iter().all(|list| list.contains("no mailing")) { Ok(()) } else { Err(format!("{all:?}")) }
    });
    assert!(is_refused(&sends(&at_two, &offer("Anna"))));
}

/// Unapproved sites' orders hold at home alone. They can read the others', without authors and reasons.
#[test]
fn unapproved_sites_give_no_orders_and_learn_no_names() {
    let server = Server::new("registration = \"open\"");
    let own = site(&[server.entry("own", "report")]);
    let (_running, at_own) = (server.start(), own.start());
    let reply =
        Http::new(server.port, "").ask("POST /v1/register", "", b"{\"name\":\"mx\",\"contact\":\"\"}");
    let told: Value = serde_json::from_str(&reply.body).unwrap();
    let stranger = server.site.path("stranger");
    fs::write(&stranger, told["token"].as_str().unwrap()).unwrap();
    let entry = format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), stranger.display());
    let other = site(&[entry]);
    let at_other = other.start();
    let name = allow(&own, &offer("Anna"), &["--reason", "secret"]);
    wait_for(&at_other, &offer("Anna"), Some("held=allowed; allowed-by=own"));
    let line = wait_for_line(|| list(&other), &[&name]);
    assert!(line.contains("by somebody at own") && !line.contains("secret"), "{line}");
    let text = "From: x@y.test\nSubject: z\n\nquite another letter with many words that nobody else has ever sent to anyone here\n";
    let second = allow(&other, text.as_bytes(), &[]);
    at_other.log.wait_for(
        0,
        "the orders of this machine hold here alone: 403 Forbidden: the server's operator has not approved",
    );
    wait_for_line(|| run(&other.path("milter.toml"), &["status"]).1, &["orders: ", "hold here alone"]);
    assert!(!list_at(&server).contains(&second));
    assert!(is_refused(&sends(&at_own, text.as_bytes())));
}

/// No server receives orders about mail that stays here, nor those that are given for one site.
#[test]
fn orders_about_private_mail_stay_here() {
    let server = Server::new("");
    let other = site(&[server.entry("other", "report")]);
    let mut one = site(&[server.entry("one", "report")]);
    let private = one.path("private");
    fs::write(&private, "from @offers.test\n").unwrap();
    let names = format!("private = [\"{}\"]\n[thresholds]", private.display());
    one.extra = one.extra.replace("[thresholds]", &names);
    let (running, at_one, _at_other) = (server.start(), one.start(), other.start());
    let own = |n: usize| bulkmark_testing::letters::letter(n);
    let secret = allow(&one, &offer("Anna"), &[]);
    let kept = allow(&one, &own(1), &["--here"]);
    let sent = allow(&one, &own(2), &[]);
    wait_for_line(|| list(&other), &[&sent, "by anna at one (own)"]);
    assert_eq!(list(&other).lines().count(), 1);
    for name in [&secret, &kept] {
        wait_for_line(|| list(&one), &[name, "by anna, here alone"]);
    }
    assert_eq!(sends(&at_one, &offer("Benedikt")).reply, "c");
    one.extra = one.extra.replace("private = ", "withhold = [\"exact\"]\nprivate = ");
    one.config();
    at_one.reload();
    let last = allow(&one, &own(3), &[]);
    at_one.log.wait_for(0, "sync.withhold has \"exact\", so the orders of this machine hold here alone");
    wait_until("nothing", || if list(&other).contains("no mailing") { Ok(()) } else { Err(list(&other)) });
    assert!(!running.log.lines().iter().any(|line| line.contains(&last)));
}

fn signature(n: usize) -> String {
    format!("{n:032x}")
}

fn order(n: usize, reason: &str) -> Value {
    json!({ "signatures": [signature(n)], "since": 1, "until": 253_370_764_800_u64, "by": "x", "reason": reason })
}

fn post(http: &mut Http, body: &Value) -> Reply {
    http.ask(
        "POST /v1/orders",
        &format!("bulkmark-parameters: {}\r\n", parameters()),
        body.to_string().as_bytes(),
    )
}

/// A partner who sends too many orders, long ones, orders in another site's name, pauses, or the same again and again.
#[test]
fn a_hostile_partner_has_bounds() {
    let server = Server::new("");
    let own = site(&[server.entry("own", "report")]);
    partner(&server, "pf1");
    let token = fs::read_to_string(server.site.path("pf1")).unwrap();
    let (running, at_own) = (server.start(), own.start());
    let mut http = Http::new(server.port, token.trim());
    let of = |orders: Vec<Value>| json!({ "machine": "1", "allowed": orders });
    let many = of((0..100_000).map(|n| order(n, "")).collect());
    let body = many.to_string();
    let reply = http.ask_anew("POST /v1/orders", "", body.as_bytes());
    assert!(reply.is_none_or(|reply| reply.error == "body-too-long"), "{} bytes", body.len());
    assert_eq!(post(&mut http, &of((0..1001).map(|n| order(n, "")).collect())).error, "body");
    assert_eq!(post(&mut http, &of(vec![order(1, &"r".repeat(1 << 20))])).error, "body");
    assert_eq!(post(&mut http, &json!({ "machine": "1" })).error, "body");
    assert_eq!(post(&mut http, &of((0..1000).map(|n| order(n, "")).collect())).status, 204);
    let more = json!({ "machine": "2", "allowed": [order(5000, "")] });
    assert_eq!(post(&mut http, &more).error, "too-many", "also as another machine");
    let mut body = of(vec![order(5001, "")]);
    let pause = json!({ "since": 1, "by": "x" });
    for (key, value) in [
        ("site", json!("own")),
        ("standing", json!("operator")),
        ("pause", pause),
        ("revoked", json!([order(8, "")])),
    ] {
        body[key] = value;
    }
    assert_eq!(post(&mut http, &body).status, 204);
    let line = wait_for_line(|| list(&own), &[&signature(5001)]);
    assert!(line.contains("by x at pf1 (partner), waits for a second partner"), "{line}");
    assert!(!line.contains("until 9999-"), "the year 9999 is far: {line}");
    assert_eq!(list(&own).lines().count(), 1);
    assert_eq!(metrics(&at_own)["bulkmark_paused"], 0.0);
    let again = (0..200).map(|_| post(&mut http, &body)).find(|reply| reply.status != 204).unwrap();
    assert_eq!(again.error, "rate");
    // Others without a right.
    assert_eq!(post(&mut Http::new(server.port, ""), &body).error, "token-missing");
    server.entry("reader", "read");
    let token = fs::read_to_string(server.site.path("reader")).unwrap();
    assert_eq!(post(&mut Http::new(server.port, token.trim()), &body).error, "role");
    assert_eq!(Http::new(server.port, "").ask("GET /v1/orders", "", b"").error, "token-missing");
    assert!(running.log.lines().iter().all(|line| !line.contains("panicked")));
}

/// Partners with long orders leave room for others, and cannot make all sites fetch long lists again and again.
#[test]
fn long_orders_have_bounds() {
    let server = Server::new("");
    let own = site(&[server.entry("own", "report")]);
    let https = ["pf1", "pf2", "pf3", "pf4"].map(|name| {
        partner(&server, name);
        let token = fs::read_to_string(server.site.path(name)).unwrap();
        Http::new(server.port, token.trim())
    });
    let (running, _at_own) = (server.start(), own.start());
    let long = |n: usize, reason: &str| {
        let all: Vec<_> = (0..100).map(|i| signature(1000 * n + i)).collect();
        json!({ "signatures": all, "since": 1, "by": "x", "reason": reason })
    };
    let of = |number: usize, reason: &str| {
        let allowed: Vec<_> = (0..number).map(|n| long(n, reason)).collect();
        json!({ "machine": "1", "allowed": allowed })
    };
    let [first, others @ ..] = &mut { https };
    assert_eq!(post(first, &of(400, "")).error, "too-many");
    assert_eq!(post(first, &of(200, "")).status, 204);
    for other in others {
        assert_eq!(post(other, &of(200, "")).status, 204, "there is room for others");
    }
    // Each change costs all sites 2.9 MB.
    let again = |n: usize| post(first, &of(200, &n.to_string()));
    let taken = (0..60).map(again).take_while(|reply| reply.status == 204).count();
    assert!((1..10).contains(&taken), "{taken}");
    wait_for_line(|| list(&own), &["by x at pf4 (partner)"]);
    assert!(running.log.lines().iter().all(|line| !line.contains("panicked")));
}

/// A server with no counts, and these orders; an older one without any.
fn stand_in(orders: Option<String>) -> StandIn {
    let fields = format!("bulkmark-parameters: {}\r\nbulkmark-site: mx0\r\n", parameters());
    let nothing = SnapshotHead { id: 1, rows: 0, vector: Vector::new() };
    let snapshot = [&SNAPSHOT[..], &frame(&nothing.encode())].concat();
    let updates = [&UPDATES[..], &frame(&encode_alive(&Vector::new()))].concat();
    StandIn::new(0, move |head| {
        let is = |way: &str| head.contains(&format!(" /v1/{way}"));
        match () {
            () if is("snapshot") => Some(answer("200 OK", &fields, &snapshot)),
            () if is("updates") => Some(endless(&fields, &updates, &frame(b""))),
            () if is("orders") => Some(match &orders {
                Some(orders) => answer("200 OK", &fields, orders.as_bytes()),
                None => answer("404 Not Found", "", b""),
            }),
            () => None,
        }
    })
}

/// A false server's orders are refused if they are too many, and end after 90 days; an older server knows none, which status and log say.
#[test]
fn a_milter_bounds_what_servers_send() {
    let orders = |number: usize| {
        let at = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let machine = |machine: usize, from: usize, number: usize| {
            let allowed: Vec<_> = (from..from + number).map(|n| order(n, "")).collect();
            json!({ "site": "mx", "machine": format!("{machine:x}"), "standing": "own", "at": at, "allowed": allowed })
        };
        let sites: Vec<_> =
            (0..number.div_ceil(1000)).map(|n| machine(n + 1, n * 1000, number.min(1000))).collect();
        let late = json!({ "site": "mx", "machine": "99", "standing": "own", "at": 253_370_764_800_u64,
                           "allowed": [order(99_999, "")] });
        json!({ "servers": [
            { "version": at * 1000, "server": "1", "sites": sites },
            { "version": at * 1000, "server": "2", "sites": [late] },
        ] })
        .to_string()
    };
    let (good, many) = (orders(1), orders(20_000));
    let server = |orders| {
        let stand_in = stand_in(orders);
        let url = format!("http://127.0.0.1:{}", stand_in.port);
        (stand_in, site(&[format!("{{ url = \"{url}\" }}")]))
    };
    let (_stand_in, one) = server(Some(good));
    let at_one = one.start();
    wait_for_line(|| list(&one), &[&signature(0), "  until 2"]);
    assert!(!list(&one).contains(&signature(99_999)), "it would not end");
    let (_stand_in, two) = server(Some(many));
    let at_two = two.start();
    at_two.log.wait_for(0, "the orders of other sites cannot be exchanged: it sent more than 10000 orders");
    assert!(list(&two).contains("no mailing is allowed"));
    let (_stand_in, three) = server(None);
    let at_three = three.start();
    at_three.log.wait_for(0, "this server is older and exchanges no orders");
    let status = run(&three.path("milter.toml"), &["status"]).1;
    assert!(
        status.contains("\norders: http://127.0.0.1:") && status.contains("until it is upgraded"),
        "{status}"
    );
    for daemon in [at_one, at_two, at_three] {
        assert!(daemon.log.lines().iter().all(|line| !line.contains("panicked")));
    }
}
