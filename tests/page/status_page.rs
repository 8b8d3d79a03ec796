// SPDX-License-Identifier: GPL-3.0-or-later
//! The status page, in Chromium and byte by byte.

use bulkmark_testing::browser::{Browser, DESKTOP, Look, PHONE, WIDE};
use bulkmark_testing::clock::Clock;
use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::page::{STATUS, get, metrics, port};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, http, program};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// A milter that counts the tests' messages.
fn site(extra: &str) -> Site {
    Site::new(&format!("exempt = [\"authenticated\"]\n{extra}{STATUS}"))
}

fn url(daemon: &Daemon) -> String {
    format!("http://127.0.0.1:{}/", port(daemon))
}

fn status(daemon: &Daemon) -> Value {
    let (head, body) = get(daemon, "/status.json");
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_str(&body).unwrap()
}

/// Text that a stranger may write into a message.
const HOSTILE: &str = "<img src=x onerror=\"document.title='pwned'\">";

/// Sends a message with this subject and sender so many times.
fn mail(daemon: &Daemon, n: usize, subject: &str, sender: &str, times: usize) {
    let text = String::from_utf8(letter(n)).unwrap().replace("Subject: x", &format!("Subject: {subject}"));
    let mut client = session(daemon);
    for i in 0..times {
        let mail =
            Mail { sender: sender.to_owned(), id: format!("4Q{n:02X}{i:04X}"), ..Mail::raw(text.as_bytes()) };
        client.message(&mail);
    }
}

#[test]
fn the_snapshot_tells_what_was_judged() {
    let daemon = site("").start();
    mail(&daemon, 1, "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "news@shop.example", 25);
    mail(&daemon, 1, "another", "me@OTHER.example", 1);
    let found = status(&daemon);
    let bulk = &found["bulk"][0];
    assert_eq!((&bulk["body"], &bulk["near"], &bulk["messages"]), (&26.into(), &26.into(), &7.into()));
    assert_eq!(bulk["domains"], serde_json::json!(["shop.example", "other.example"]));
    assert!(bulk["subject"].is_null() && bulk["subject-hash"].as_str().unwrap().len() == 8, "{bulk}");
    let recent = &found["recent"][0];
    assert_eq!((&recent["id"], &recent["verdict"]), (&"4Q010000".into(), &"bulk".into()));
    assert_eq!((&recent["body"], &recent["domain"]), (&26.into(), &"other.example".into()));
    assert_eq!((&recent["signature"], &recent["mailing"]), (&bulk["signature"], &bulk["signature"]));
    // Either in this minute, or in the one that just ended.
    let minutes = &found["minutes"]["series"][1];
    assert_eq!(minutes["name"], "bulk");
    let before = minutes["counts"].as_array().unwrap();
    assert_eq!(before.len(), 24 * 60 - 1);
    let before: u64 = before.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(before + found["minute"]["counts"][1].as_u64().unwrap(), 7);
    assert_eq!(found["status"]["daemon"]["role"], "milter");
    assert_eq!(found["config"]["thresholds"]["body"], 20);
    assert_eq!(found["config"]["hostname"], "mx.test");
}

/// A mailing whose copies all differ, some frequent enough to be bulk by themselves, is one line that leads to all of its verdicts; another mailing is
/// another line.
#[test]
fn near_replicas_are_one_line() {
    let daemon = site("").start();
    let mut client = session(&daemon);
    let copy = |name: &str| {
        let text = "the autumn prices are here for all of our guests who come by train or ship to the harbour on \
                    thursday when the first of the new boats will be shown to everybody and music is played";
        Mail::raw(bulkmark_testing::crlf(&format!("Subject: x\n\nDear {name}!\n{text}\n")).as_slice())
    };
    let names = (0..25).map(|n| format!("Anna {n}")).chain((0..21).map(|_| "reader".to_owned()));
    let bulk = names.filter(|name| client.message(&copy(name)).header().starts_with("bulk;")).count();
    mail(&daemon, 1, "another", "news@shop.example", 20);

    let found = status(&daemon);
    let lines = found["bulk"].as_array().unwrap();
    let counts: Vec<_> = lines.iter().map(|line| [&line["body"], &line["messages"]]).collect();
    assert_eq!(counts, [[&Value::from(21), &bulk.into()], [&20.into(), &1.into()]], "{lines:#?}");
    assert!(bulk > 21 && lines[0]["near"].as_u64() > Some(21), "{lines:#?}");
    let of_it = found["recent"].as_array().unwrap().iter().filter(|v| v["mailing"] == lines[0]["signature"]);
    assert_eq!(of_it.count(), bulk);
}

/// Senders and recipients are hidden unless configured; a refused message and a clean one show their action.
#[test]
fn clients_and_recipients_are_shown_where_that_is_wanted() {
    let by = Writer { subject: "x", sender: "news@shop.example", host: "mail.shop.example" };
    let mut site = site("actions.bulk = \"reject\"\nthresholds.min-sources = 1\n");
    let daemon = site.start();
    write(&daemon, 1, &by, 20);
    let found = status(&daemon);
    let text = found.to_string();
    for secret in ["192.0.2.77", "mail.shop.example", "reader0"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let recent = &found["recent"];
    assert_eq!((&recent[0]["action"], &recent[1]["action"]), (&"reject".into(), &Value::Null));
    let bulk = &found["bulk"][0];
    assert_eq!((&bulk["suggestion"], &bulk["done"]["reject"]), (&"host .shop.example".into(), &1.into()));
    drop(daemon);
    site.extra += "show = [\"clients\", \"recipients\"]\n";
    let daemon = site.start();
    write(&daemon, 1, &by, 1);
    let found = status(&daemon);
    assert_eq!(found["recent"][0]["client"], "mail.shop.example [192.0.2.77]");
    assert_eq!(found["recent"][0]["recipients"], serde_json::json!(["reader0@example.net"]));
    assert_eq!(found["bulk"][0]["clients"], serde_json::json!(["mail.shop.example [192.0.2.77]"]));
}

/// The charts' data survive a restart; a damaged file costs the charts, and nothing else.
#[test]
fn history_survives_a_restart() {
    let site = site("");
    let clean = |daemon: &Daemon| {
        let found = status(daemon);
        let all = |before: &str, present: &str| {
            let counts = found[before]["series"][0]["counts"].as_array().unwrap().clone();
            let sum: u64 = counts.iter().map(|count| count.as_u64().unwrap()).sum();
            sum + found[present]["counts"][0].as_u64().unwrap()
        };
        (all("minutes", "minute"), all("hours", "hour"))
    };
    let daemon = site.start();
    mail(&daemon, 1, "x", "a@example.org", 3);
    assert_eq!(clean(&daemon), (3, 3));
    assert!(daemon.terminate().success());
    let daemon = site.start();
    mail(&daemon, 2, "x", "a@example.org", 2);
    assert_eq!(clean(&daemon), (5, 5));
    assert!(daemon.terminate().success());
    let path = site.path("state").join("history");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() < 200, "{}", bytes.len());
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let daemon = site.start();
    daemon
        .log
        .wait_for(0, "history: it is damaged, or of another version; the status page's charts begin anew");
    assert_eq!(clean(&daemon), (0, 0));
}

#[test]
fn subjects_are_shown_where_that_is_wanted() {
    let site = Site::new(&format!("exempt = [\"authenticated\"]\n{STATUS}show = [\"subjects\"]\n"));
    let daemon = site.start();
    mail(&daemon, 1, "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "news@shop.example", 20);
    assert_eq!(status(&daemon)["bulk"][0]["subject"], "Grüße");
    // The mailing is known after a restart.
    assert!(daemon.terminate().success());
    let daemon = site.start();
    assert_eq!(status(&daemon)["bulk"][0]["subject"], "Grüße");
    mail(&daemon, 1, "again", "news@shop.example", 1);
    let found = status(&daemon);
    assert_eq!((&found["bulk"][0]["messages"], &found["bulk"][1]), (&2.into(), &Value::Null));
}

/// The page shows the configuration in force, whatever the file contains.
#[test]
fn a_reload_is_shown() {
    let mut site = site("");
    let daemon = site.start();
    site.extra = format!("max-connections = 7\n[thresholds]\nbody = 5\n{STATUS}");
    site.config();
    daemon.reload();
    let config = &status(&daemon)["config"];
    assert_eq!((&config["thresholds"]["body"], &config["max-connections"]), (&5.into(), &1000.into()));
}

/// A client with too many streams takes none from others; the oldest of its own end.
#[test]
fn streams_leave_room() {
    let site = site("");
    let daemon = site.start();
    let open = || {
        let stream = http::connect(port(&daemon));
        (&stream).write_all(b"GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "event: user-reports"), "it is answered");
        lines
    };
    let mut streams: Vec<_> = (0..80).map(|_| open()).collect();
    assert!(metrics(&daemon)["bulkmark_connections"] >= 0.0);
    assert!(status(&daemon)["overview"].is_object());
    // 48 of them end.
    for stream in &mut streams[..48] {
        assert!(stream.last().is_some());
    }
    assert!(open().any(|line| line.starts_with("event: ")), "the newest one goes on");
}

/// Values arrive without a request, and only changed ones.
#[test]
fn changes_stream_in() {
    let daemon = site("").start();
    let stream = http::connect(port(&daemon));
    // HTTP/1.0 has no chunks, so none begins within a line.
    (&stream).write_all(b"GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let head: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(head.contains(&"content-type: text/event-stream".to_owned()), "{head:?}");
    let sections = [
        "overview",
        "status",
        "minutes",
        "minute",
        "hours",
        "hour",
        "bulk",
        "recent",
        "config",
        "user-reports",
        "policies",
    ];
    for section in sections {
        let name = lines.by_ref().find_map(|line| line.strip_prefix("event: ").map(str::to_owned)).unwrap();
        assert_eq!(name, section);
        let data = lines.next().unwrap();
        serde_json::from_str::<Value>(data.strip_prefix("data: ").unwrap()).unwrap();
    }
    send(&daemon, &letter(1), 1);
    let mut names = Vec::new();
    let recent = lines
        .by_ref()
        .inspect(|line| names.extend(line.strip_prefix("event: ").map(str::to_owned)))
        .find(|line| line.contains("\"verdict\":\"clean\""))
        .unwrap();
    assert!(recent.starts_with("data: [{"), "{recent}");
    assert!(!names.contains(&"config".to_owned()) && !names.contains(&"bulk".to_owned()), "{names:?}");
}

#[test]
fn answers_tell_browsers_to_take_nothing_from_elsewhere() {
    let daemon = site("").start();
    for path in ["/", "/page.js", "/page.css", "/uplot.js", "/uplot.css", "/status.json", "/metrics"] {
        let (head, _) = get(&daemon, path);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{path}: {head}");
        for field in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(head.contains(field), "{path} has no {field}: {head}");
        }
        assert!(!head.contains("access-control-allow-origin") && !head.contains("unsafe"), "{path}: {head}");
    }
    assert!(get(&daemon, "/nothing").0.starts_with("HTTP/1.1 404 "));
}

/// Message data is not kept if no page could show it.
#[test]
fn a_milter_without_a_page_listens_nowhere() {
    let daemon = Site::new("exempt = [\"authenticated\"]\n[status]\nlisten = \"\"\n").start();
    send(&daemon, &letter(1), 1);
    assert!(!daemon.log.lines().iter().any(|line| line.contains("metrics and status")));
}

/// Everything that a keyboard must reach.
const REACHABLE: &str = "[...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')]\
                         .filter(e => e.checkVisibility())";

/// Goes from the first to the last element by Tab and returns those it reached.
fn tab_through(browser: &mut Browser) -> Vec<String> {
    let name = "(e => e.id || e.textContent.trim().slice(0, 40))";
    let names = browser.value(&format!("{REACHABLE}.map({name})"));
    let expected: Vec<_> =
        names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    browser.value(&format!("{REACHABLE}[0].focus()"));
    let mut reached = vec![expected[0].clone()];
    while reached.len() < expected.len() {
        browser.press("Tab");
        reached.push(browser.value(&format!("{name}(document.activeElement)")).as_str().unwrap().to_owned());
        let outline = browser.value("getComputedStyle(document.activeElement).outlineStyle");
        assert_ne!(outline, "none", "one does not see where one is: {reached:?}");
    }
    assert_eq!(reached, expected);
    reached
}

/// Checks that the page sends requests to its own daemon only.
fn asks_only(browser: &mut Browser, origin: &str) {
    let own = |url: &String| url.starts_with(origin) || url.starts_with("data:");
    let strange: Vec<_> = browser.requests().into_iter().filter(|url| !own(url)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

/// Works by keyboard: a signature leads to its verdicts, the configuration opens without `token`, and the stream can be held.
fn by_keyboard(browser: &mut Browser, token: &str) {
    browser.press("Enter");
    browser.wait_for("document.activeElement.id === 'filter' && document.activeElement.value.length === 32");
    browser.wait_for("document.querySelectorAll('#recent tbody tr').length === 33");
    browser.value("document.getElementById('filter').value = ''");
    browser.value("document.getElementById('filter').dispatchEvent(new Event('input'))");
    browser.value("document.getElementById('more-recent').focus()");
    assert_eq!(browser.value("document.activeElement.textContent"), "Show all 34");
    browser.press("Enter");
    browser.wait_for("document.querySelectorAll('#recent tbody tr').length === 34");
    browser.value("document.querySelector('summary').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelector('details').open");
    let config = browser.value("document.getElementById('config').textContent").as_str().unwrap().to_owned();
    assert!(config.contains("\"token-file\": \"") && !config.contains(token), "{config}");
    let reached = tab_through(browser);
    for what in ["pause", "filter", "config", "metrics"] {
        assert!(reached.iter().any(|name| name == what), "{what} is not in {reached:?}");
    }
    browser.value("document.getElementById('pause').focus()");
    browser.press(" ");
    assert_eq!(browser.value("document.getElementById('state').textContent"), "paused");
}

#[test]
fn the_page_of_a_milter() {
    let Some(mut browser) = Browser::start() else { return };
    let server = Server::new("");
    let _server = server.start();
    let entry = server.entry("mx", "report");
    let token = std::fs::read_to_string(server.site.path("mx")).unwrap();
    let mut site = milter(&[entry]);
    let interface = site.path("http.sock").display().to_string();
    site.extra +=
        &format!("{STATUS}show = [\"subjects\"]\n[interfaces.http]\nlisten = \"unix:{interface}\"\n");
    let daemon = site.start();
    daemon.log.wait_for(0, "the interface http is at");
    mail(&daemon, 1, HOSTILE, "spam@<script>1</script>.example", 30);
    mail(&daemon, 2, "once", "friend@example.net", 1);

    browser.open(&url(&daemon), DESKTOP);
    browser.wait_for("document.getElementById('state').textContent === 'live'");
    browser.wait_for("document.querySelector('#links td:nth-child(3)')?.textContent === 'up to date'");
    browser.wait_for(&format!(
        "document.querySelector('#interfaces tbody tr')?.textContent.startsWith('httpopen at unix:{interface}')"
    ));
    for (what, value) in [
        ("document.title === 'mx.test · bulkmark milter'", true),
        ("document.getElementById('host').textContent === 'mx.test'", true),
        ("document.querySelector('#bulk tbody tr td:nth-child(2)').textContent === '30'", true),
        ("document.querySelectorAll('#recent tbody tr').length === 12", true),
        ("document.querySelector('#totals tbody tr td:nth-child(2)').textContent === '20'", true),
        ("document.getElementById('tiles').textContent.includes('messages in a day31')", true),
        // A clean message has no action.
        ("document.querySelector('#recent .clean').textContent === 'clean'", true),
        ("document.querySelector('#recent .bulk').textContent === 'bulk (mark)'", true),
        ("document.querySelectorAll('#ledger tbody tr').length >= 1", true),
        ("document.getElementById('problems').hidden", true),
        ("document.querySelectorAll('.chart canvas').length === 3", true),
        // Strings from outside are shown as text.
        ("document.querySelectorAll('main img, main script').length === 0", true),
        ("document.getElementById('bulk').textContent.includes('<script>1</script>.example')", true),
    ] {
        assert_eq!(browser.value(what), value, "{what}");
    }
    let subject = browser.value("document.querySelector('#bulk tbody tr td div + div').textContent");
    assert_eq!(subject, HOSTILE);
    // The charts are not empty.
    browser.wait_for(
        "[...document.querySelectorAll('canvas')].every(c => new Uint32Array(c.getContext('2d')\
         .getImageData(0, 0, c.width, c.height).data.buffer).some(pixel => pixel !== 0))",
    );

    // New mail appears without a reload; the keyboard focus stays.
    browser.value("document.querySelector('#bulk button').focus()");
    mail(&daemon, 1, HOSTILE, "spam@elsewhere.example", 3);
    browser.wait_for("document.querySelector('#bulk tbody tr td:nth-child(2)').textContent === '33'");
    assert_eq!(browser.value("document.activeElement === document.querySelector('#bulk button')"), true);

    by_keyboard(&mut browser, token.trim());

    // When the daemon is gone, the page shows it, and reconnects.
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
    asks_only(&mut browser, &url(&daemon));
    daemon.kill();
    browser.wait_for("document.getElementById('state').className === 'lost'");
}

#[test]
fn the_page_of_a_server() {
    let Some(mut browser) = Browser::start() else { return };
    let mut servers = Server::peers("");
    servers[0].status = STATUS.replace("[status]\n", "");
    let [one, _two] = servers.each_ref().map(Server::start);
    let site = milter(&[servers[0].entry("mx", "report")]);
    let at_site = site.start();
    send(&at_site, &letter(1), 3);
    browser.open(&url(&one), DESKTOP);
    browser.wait_for("document.querySelector('#links td:nth-child(3)')?.textContent === 'up to date'");
    browser.wait_for(
        "[...document.querySelectorAll('#clients tr')].some(r => \
         r.cells[0].textContent === 'mx' && r.cells[1].textContent === 'well' && r.cells[4].textContent > 0)",
    );
    browser.wait_for("Number(document.querySelector('#totals tbody td:nth-child(2)').textContent) > 0");
    assert_eq!(browser.value("document.getElementById('s-recent').hidden"), true);
    assert_eq!(browser.value("document.querySelector('#totals tbody td').textContent"), "signatures");
    tab_through(&mut browser);
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
}

/// The user reports of a mailing are shown, with its verdict, but never the reporters; it comes from the same mail as all other data.
#[test]
fn the_page_shows_user_reports() {
    let Some(mut browser) = Browser::start() else { return };
    let site = site("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 2\n");
    let site = Site { extra: format!("{}show = [\"subjects\"]\n", site.extra), ..site };
    let daemon = site.start();
    let text = String::from_utf8(letter(1)).unwrap().replace("Subject: x", &format!("Subject: {HOSTILE}"));
    let say = |user: &str, what: &str| {
        let mut command = Command::new(program());
        command.args(["report", "add", what, "--user", user, "--control"]).arg(site.path("control.sock"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    };
    browser.open(&url(&daemon), DESKTOP);
    browser.wait_for("document.getElementById('state').textContent === 'live'");
    assert_eq!(
        browser.value("document.getElementById('s-user-reports').hidden"),
        true,
        "nobody said anything"
    );
    for user in ["anna@box.test", "ben", "carl"] {
        say(user, "--spam");
    }
    say("dora", "--not-spam");
    mail(&daemon, 1, HOSTILE, "news@shop.example", 1);
    // Weight, nominations, revocations.
    let row = "[...document.querySelectorAll('#user-reports tbody tr:first-child td')].slice(0, 4).map(c => c.textContent)";
    let said = serde_json::json!([HOSTILE, "2", "3", "1"]);
    browser.wait_for(&format!("JSON.stringify({row}) === JSON.stringify({said})"));
    browser
        .wait_for("document.querySelector('#recent .spam')?.textContent === 'spam (mark, called spam by 2)'");
    browser.wait_for("document.getElementById('tiles').textContent.includes('spam1')");
    let colour = "getComputedStyle(document.querySelector('#recent .spam'), '::before').backgroundColor";
    let soft = "getComputedStyle(document.querySelector('#totals .exempt'), '::before').backgroundColor";
    assert_ne!(browser.value(colour), browser.value(soft));
    let spam = &status(&daemon)["recent"][0];
    assert_eq!((&spam["verdict"], &spam["spam"]), (&"spam".into(), &"2".into()), "{spam}");
    let counted =
        metrics(&daemon)["bulkmark_messages_total{verdict=\"spam\",action=\"mark\",reason=\"user-reports\"}"];
    assert!((counted - 1.0).abs() < f64::EPSILON, "{counted}");
    let told = get(&daemon, "/status.json").1;
    assert!(!told.contains("anna") && !told.contains("\"reporter\":"), "somebody is named: {told}");

    // A withdrawn report no longer counts.
    say("ben", "--not-spam");
    say("carl", "--not-spam");
    let said = serde_json::json!([HOSTILE, "0", "1", "1"]);
    browser.wait_for(&format!("JSON.stringify({row}) === JSON.stringify({said})"));
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
}

/// In a fleet: this machine's position, and at an aggregator the reporters, the state of all members, and their common bulk.
#[test]
fn the_page_of_a_fleet() {
    let Some(mut browser) = Browser::start() else { return };
    let Some(fleet) = Fleet::postgres() else { return };
    let mut server = fleet.aggregator("agg1");
    server.status = STATUS.replace("[status]\n", "");
    let mut site = fleet.milter("mx1");
    site.extra = site.extra.replace("[sync]\n", "mailings = true\n[sync]\n");
    site.extra += &format!("{STATUS}show = [\"subjects\"]\n");
    let (aggregator, at_site) = (server.start(), site.start());
    let text = String::from_utf8(letter(1)).unwrap().replace("Subject: x", &format!("Subject: {HOSTILE}"));
    send(&at_site, text.as_bytes(), 25);
    for (daemon, what) in [(&aggregator, "An aggregator"), (&at_site, "A milter")] {
        browser.open(&url(daemon), DESKTOP);
        browser.wait_for("document.querySelector('#links td:nth-child(3)')?.textContent === 'up to date'");
        let told = "document.getElementById('fleet-note').textContent";
        browser.wait_for(&format!("{told}.startsWith('{what}, in step with the log: step ')"));
        assert_eq!(browser.value("document.getElementById('h-links').textContent"), "Log of the fleet");
        let told = browser.complaints();
        assert!(told.is_empty(), "{told:#?}");
    }
    browser.open(&url(&aggregator), DESKTOP);
    browser.wait_for("document.querySelector('#fleet tbody td')?.textContent === 'mx1'");
    let wait_for = |browser: &mut Browser, table: &str, cells: [usize; 3], wanted: Value| {
        let rows = format!("[...document.querySelectorAll('#{table} tbody tr')]");
        let texts = format!("{cells:?}.map(i => row.cells[i].textContent)");
        browser
            .wait_for(&format!("{rows}.some(row => JSON.stringify({texts}) === JSON.stringify({wanted}))"));
    };
    wait_for(&mut browser, "members", [0, 1, 2], serde_json::json!(["mx1", "well", "milter"]));
    wait_for(&mut browser, "members", [0, 1, 2], serde_json::json!(["agg1", "well", "aggregator"]));
    wait_for(&mut browser, "mailings", [0, 1, 4], serde_json::json!([HOSTILE, "25", "mx1"]));
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
    at_site.kill();
    wait_for(&mut browser, "members", [0, 1, 2], serde_json::json!(["mx1", "silent", "milter"]));
}

/// The sender and the client of a message.
struct Writer<'a> {
    subject: &'a str,
    sender: &'a str,
    host: &'a str,
}

/// Sends a message so many times, each to another recipient.
fn write(daemon: &Daemon, n: usize, by: &Writer<'_>, times: usize) {
    // Words that no other message has.
    let name: String = n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
    let words: Vec<_> = ('a'..='p').map(|c| format!("w{c}{name}{c}")).collect();
    let text = format!("Subject: {}\r\n\r\n{}\r\n", by.subject, words.join(" "));
    let mut client = Client::connect(daemon);
    client.client(by.host, "192.0.2.77");
    for i in 0..times {
        let mut mail = Mail::raw(text.as_bytes());
        mail.sender = by.sender.to_owned();
        mail.id = format!("4Q{n:02X}{i:04X}");
        mail.recipients = vec![format!("reader{i}@example.net")];
        client.message(&mail);
    }
}

/// Long domains, as large senders have them.
const LONG: [&str; 5] = [
    "newsletter-delivery-department.a-company-with-a-very-long-name.example",
    "bounces-17.eu-central-2.campaigns.another-company-of-some-size.example",
    "mail-out-0099.customers-of-a-provider-of-mail-for-everybody.example",
    "notifications-and-reminders.the-society-of-friends-of-trains.example",
    "return-path-00000000000000000000000000000000.tracking.one-more.example",
];

/// Plays a month of mail at the test's pace; the last day and hour have more than before, and fifty mailings.
fn a_month_of_mail(daemon: &Daemon, clock: &Clock) {
    let known = [
        ("Your parcel waits", "news@parcel.example", "unknown"),
        ("Last chance: 70 % off", "news@shop.example", "mail.shop.example"),
        ("News of the harbour", "list@museum.example", "lists.museum.example"),
        ("Invoice 2026-11", "billing@billing.example", "out7.mailer.example"),
    ];
    let known = known.map(|(subject, sender, host)| Writer { subject, sender, host });
    let friend = Writer { subject: "hello", sender: "somebody@example.org", host: "mail.example.org" };
    let of_day = |day: usize| if day % 7 > 4 { 60 } else { 200 + day * 7 % 60 };
    let days = (0..29).map(|day| ((30 - day) * 24 * 60, of_day(day)));
    let quarters =
        (0..92).map(|quarter| (24 * 60 - 15 * quarter, if (30..70).contains(&quarter) { 12 } else { 4 }));
    let minutes = (0..60).map(|minute| (60 - minute, minute * minute % 3));
    let mut unlike = 1000;
    for (i, (ago, mails)) in days.chain(quarters).chain(minutes).enumerate() {
        clock.set(&format!("-{}m", ago - 1));
        let mut client = Client::connect(daemon);
        client.client(friend.host, "192.0.2.78");
        for _ in 0..mails {
            unlike += 1;
            client.message(&Mail { sender: friend.sender.to_owned(), ..Mail::raw(&letter(unlike)) });
        }
        let kind = i % known.len();
        write(daemon, kind, &known[kind], if i < 121 { 3 + i * 7 % 8 } else { i * i % 4 });
        if (60..106).contains(&i) {
            let sender = format!("offers@{}", LONG[i % LONG.len()]);
            let subject = format!("Offer number {i}");
            let by = Writer { subject: &subject, sender: &sender, host: "unknown" };
            write(daemon, 10 + i, &by, 20 + i % 4);
        }
        // One mailing that many hosts send, under names too long for any column.
        if (40..121).contains(&i) {
            let domain = LONG.get(i % 6).copied().unwrap_or("more.example");
            let (sender, host) = (format!("a@{domain}"), format!("out.{domain}"));
            let subject = "Act now, before it is too late for your account";
            write(daemon, 9, &Writer { subject, sender: &sender, host: &host }, 3);
        }
    }
    write(daemon, 500, &friend, 1);
    clock.set("+0");
}

/// Nothing is cut off and no word of a heading is broken, whatever names come; a phone shows the important part within a few screens, and a
/// wide screen uses its width; dark mode is dark. With BULKMARK_PICTURES=DIR, it writes the pictures there:
/// `BULKMARK_PICTURES=docs cargo test --test page looks`; three of them are kept.
#[test]
fn it_looks_well_in_all_sizes_and_lights() {
    let Some(mut browser) = Browser::start() else { return };
    let nobody = bulkmark_testing::mta::free_port();
    let upstream = format!("upstream = [{{ url = \"http://localhost:{nobody}\" }}]\n");
    let shown = "show = [\"subjects\", \"clients\", \"recipients\"]\n";
    let mut site = Site::new(&format!("exempt = [\"authenticated\"]\n{upstream}{STATUS}{shown}"));
    let Some(clock) = Clock::of(&mut site, "-43200m") else { return };
    let daemon = site.start();
    a_month_of_mail(&daemon, &clock);
    browser.open(&url(&daemon), DESKTOP);
    browser.wait_for("document.querySelectorAll('#bulk tbody tr').length === 12");
    browser.wait_for("document.querySelectorAll('.chart canvas').length === 3");
    browser
        .wait_for("document.getElementById('problems').textContent.startsWith('localhost is down since ')");
    browser.wait_for(
        "Number(document.querySelector('#totals tbody td:nth-child(4)').textContent.replace(',', '')) > 1000",
    );
    let mut backs = Vec::new();
    let looks = [("desktop", DESKTOP), ("wide", WIDE), ("phone", PHONE)];
    for (name, look) in looks.into_iter().flat_map(|(name, look)| {
        [false, true]
            .map(|dark| (format!("{name}-{}", ["light", "dark"][usize::from(dark)]), Look { dark, ..look }))
    }) {
        browser.look(look);
        // The charts are drawn again a moment after the window changed.
        let width = "document.getElementById('hour').clientWidth";
        browser.wait_for(&format!("document.querySelector('#hour canvas')?.width === {width}"));
        looks_well(&mut browser, &name, look);
        backs.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        if let Some(directory) = std::env::var_os("BULKMARK_PICTURES") {
            std::fs::write(Path::new(&directory).join(format!("page-{name}.png")), browser.picture())
                .unwrap();
        }
        if let Some(directory) = std::env::var_os("BULKMARK_WHOLE_PICTURES") {
            std::fs::write(Path::new(&directory).join(format!("whole-{name}.png")), browser.whole()).unwrap();
        }
    }
    assert_eq!((&backs[0], &backs[1]), (&backs[2], &backs[3]));
    assert_ne!(backs[0], backs[1]);
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
}

fn looks_well(browser: &mut Browser, name: &str, look: Look) {
    let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
    assert!(wide.as_i64() <= Some(0), "{name}: {wide} pixels are cut off");
    let small = browser.value(
        "[...document.querySelectorAll('main *')].filter(e => e.checkVisibility() && e.textContent.trim() && \
         parseFloat(getComputedStyle(e).fontSize) < 11).length",
    );
    assert_eq!(small, 0, "{name}: letters that are too small");
    let visible = "filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 0)";
    let broken = browser.value(&format!(
        "[...document.querySelectorAll('th, .number, .fixed')].{visible}\
         .filter(e => {{ const range = document.createRange(); range.selectNodeContents(e); \
           const tops = [...range.getClientRects()].map(line => line.top); \
           return Math.max(...tops) > Math.min(...tops) + 8 || e.scrollWidth > e.clientWidth + 1 }})\
         .map(e => e.textContent)"
    ));
    assert_eq!(broken, serde_json::json!([]), "{name}: broken or cut off");
    let height = browser.value("document.documentElement.scrollHeight").as_u64().unwrap();
    let most = if look.phone { 5500 } else { 3800 };
    assert!(height < most, "{name}: {height} pixels high");
    // The sections on the machine come before the list of verdicts, or stand beside it.
    let top = |browser: &mut Browser, id: &str| {
        let top = format!("document.getElementById('{id}').getBoundingClientRect().top + scrollY");
        browser.value(&top).as_f64().unwrap()
    };
    assert!(top(browser, "s-links") < top(browser, "s-recent"), "{name}");
    assert!(top(browser, "s-ledger") < top(browser, "s-recent"), "{name}");
    let is_bulk_first = top(browser, "s-bulk") < top(browser, "s-verdicts");
    assert_eq!(is_bulk_first, look.phone, "{name}: on a phone, mailings come before charts");
    let used = browser.value(
        "Math.max(...[...document.querySelectorAll('section')].map(e => e.getBoundingClientRect().right)) / innerWidth",
    );
    assert!(used.as_f64() > Some(0.9), "{name}: a part of {used} of the width is used");
}
