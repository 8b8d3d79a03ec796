// SPDX-License-Identifier: GPL-3.0-or-later
//! The status page, in Chromium and byte by byte.

mod common;

use common::browser::{Browser, DESKTOP, Look, PHONE};
use common::clock::Clock;
use common::letters::{letter, send};
use common::milter::{Mail, session};
use common::page::{STATUS, get, port};
use common::server::{Server, milter};
use common::{Daemon, Site, http, wait_until};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

/// A milter that counts what the tests send.
fn site(extra: &str) -> Site {
    Site::new(&format!("exempt-loopback = false\n{extra}{STATUS}"))
}

fn url(daemon: &Daemon) -> String {
    format!("http://127.0.0.1:{}/", port(daemon))
}

fn status(daemon: &Daemon) -> Value {
    let (head, body) = get(daemon, "/status.json");
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_str(&body).unwrap()
}

/// What a stranger may write into a message.
const HOSTILE: &str = "<img src=x onerror=\"document.title='pwned'\">";

/// Sends a message of this subject and sender so many times.
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

/// A mailing of which each copy differs, some of them often enough to be bulk by themselves, is one line, and leads to all of
/// its verdicts; another mailing is another.
#[test]
fn near_replicas_are_one_line() {
    let daemon = site("").start();
    let mut client = session(&daemon);
    let copy = |name: &str| {
        let text = "the autumn prices are here for all of our guests who come by train or ship to the harbour on \
                    thursday when the first of the new boats will be shown to everybody and music is played";
        Mail::raw(common::crlf(&format!("Subject: x\n\nDear {name}!\n{text}\n")).as_slice())
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

#[test]
fn subjects_are_shown_where_that_is_wanted() {
    let site = Site::new(&format!("exempt-loopback = false\n{STATUS}subjects = true\n"));
    let daemon = site.start();
    mail(&daemon, 1, "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "news@shop.example", 20);
    assert_eq!(status(&daemon)["bulk"][0]["subject"], "Grüße");
}

/// The configuration that is shown is that in force, whatever the file says.
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

/// Values come by themselves, and only those that changed.
#[test]
fn changes_stream_in() {
    let daemon = site("").start();
    let stream = http::connect(port(&daemon));
    // In 1.0 no chunk begins in the midst of a line.
    (&stream).write_all(b"GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let head: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(head.contains(&"content-type: text/event-stream".to_owned()), "{head:?}");
    let sections = ["overview", "status", "minutes", "minute", "bulk", "recent", "config"];
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

/// Nothing is kept of messages where nobody could see it.
#[test]
fn a_milter_without_a_page_listens_nowhere() {
    let daemon = Site::new("exempt-loopback = false\n[status]\nlisten = \"\"\n").start();
    send(&daemon, &letter(1), 1);
    assert!(!daemon.log.lines().iter().any(|line| line.contains("metrics and status")));
}

/// Everything that a keyboard should reach.
const REACHABLE: &str = "[...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')]\
                         .filter(e => e.checkVisibility())";

/// Goes from the first to the last by Tab and returns what was reached.
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

/// The page asks nobody but its daemon.
fn asks_only(browser: &mut Browser, origin: &str) {
    let own = |url: &String| url.starts_with(origin) || url.starts_with("data:");
    let strange: Vec<_> = browser.requests().into_iter().filter(|url| !own(url)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn the_page_of_a_milter() {
    let Some(mut browser) = Browser::start() else { return };
    let server = Server::new("");
    let _server = server.start();
    let entry = server.entry("mx", "report");
    let token = std::fs::read_to_string(server.site.path("mx")).unwrap();
    let mut site = milter(&[entry]);
    site.extra += &format!("{STATUS}subjects = true\n");
    let daemon = site.start();
    mail(&daemon, 1, HOSTILE, "spam@<script>alert(1)</script>.example", 30);
    mail(&daemon, 2, "once", "friend@example.net", 1);

    browser.open(&url(&daemon), DESKTOP);
    browser.wait_for("document.getElementById('state').textContent === 'live'");
    browser.wait_for("document.querySelector('#links td:nth-child(3)')?.textContent === 'up to date'");
    for (what, value) in [
        ("document.title.startsWith('bulkmark milter')", true),
        ("document.querySelector('#bulk tbody tr td:nth-child(2)').textContent === '30'", true),
        ("document.querySelectorAll('#recent tbody tr').length === 31", true),
        ("document.querySelector('#totals tbody tr td:nth-child(2)').textContent === '20'", true),
        ("document.getElementById('tiles').textContent.includes('judged since the start31')", true),
        ("document.querySelectorAll('#ledger tbody tr').length >= 1", true),
        ("document.getElementById('problems').hidden", true),
        ("document.querySelectorAll('.chart canvas').length === 2", true),
        // What comes from outside is text.
        ("document.querySelectorAll('main img, main script').length === 0", true),
        ("document.getElementById('bulk').textContent.includes('<script>alert(1)</script>.example')", true),
    ] {
        assert_eq!(browser.value(what), value, "{what}");
    }
    let subject = browser.value("document.querySelector('#bulk tbody tr td:nth-child(8)').textContent");
    assert_eq!(subject, HOSTILE);
    // Something is drawn.
    browser.wait_for(
        "[...document.querySelectorAll('canvas')].every(c => new Uint32Array(c.getContext('2d')\
         .getImageData(0, 0, c.width, c.height).data.buffer).some(pixel => pixel !== 0))",
    );

    // Mail that comes is seen without a reload; where one is with the keyboard stays.
    browser.value("document.querySelector('#bulk button').focus()");
    mail(&daemon, 1, HOSTILE, "spam@elsewhere.example", 3);
    browser.wait_for("document.querySelector('#bulk tbody tr td:nth-child(2)').textContent === '33'");
    assert_eq!(browser.value("document.activeElement === document.querySelector('#bulk button')"), true);

    // A signature leads to its verdicts, the configuration opens, and the stream can be held, all by keyboard.
    browser.press("Enter");
    browser.wait_for("document.activeElement.id === 'filter' && document.activeElement.value.length === 32");
    browser.wait_for("document.querySelectorAll('#recent tbody tr').length === 33");
    browser.value("document.querySelector('summary').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelector('details').open");
    let config = browser.value("document.getElementById('config').textContent").as_str().unwrap().to_owned();
    assert!(config.contains("\"token-file\": \"") && !config.contains(token.trim()), "{config}");
    let reached = tab_through(&mut browser);
    for what in ["pause", "filter", "config", "metrics"] {
        assert!(reached.iter().any(|name| name == what), "{what} is not in {reached:?}");
    }
    browser.value("document.getElementById('pause').focus()");
    browser.press(" ");
    assert_eq!(browser.value("document.getElementById('state').textContent"), "paused");

    // When the daemon is gone, the page says so, and finds it again.
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
        "[...document.querySelectorAll('#clients td:first-child')].some(c => c.textContent === 'mx')",
    );
    browser.wait_for("Number(document.querySelector('#totals tbody td:nth-child(2)').textContent) > 0");
    assert_eq!(browser.value("document.getElementById('s-recent').hidden"), true);
    assert_eq!(browser.value("document.querySelector('#totals tbody td').textContent"), "signatures");
    tab_through(&mut browser);
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
}

/// A day of mail, at the pace of the test.
fn a_day_of_mail(daemon: &Daemon, clock: &Clock) {
    let subjects = ["Your parcel waits", "Last chance: 70 % off", "News of the harbour", "Invoice 2026-11"];
    let senders = ["parcel.example", "shop.example", "museum.example", "billing.example"];
    let steps =
        (0..92).map(|quarter| (24 * 60 - 15 * quarter, 15)).chain((0..60).map(|minute| (60 - minute, 6)));
    let mut unlike = 100;
    for (i, (ago, mails)) in steps.enumerate() {
        clock.set(&format!("-{}m", ago - 1));
        // As much as at that time of day, more or less.
        let busy = if (30..70).contains(&i) || i > 92 { mails - i * i * 31 % 5 } else { mails / 3 + i % 3 };
        for _ in 0..busy {
            unlike += 1;
            mail(daemon, unlike, "hello", "somebody@example.net", 1);
        }
        let kind = i % subjects.len();
        mail(
            daemon,
            kind,
            subjects[kind],
            &format!("news@{}", senders[kind]),
            if i < 92 { 3 + i * 7 % 8 } else { i * i % 4 },
        );
    }
    clock.set("+0");
}

/// Nothing is cut off on a phone, dark is dark, and charts have the colours of their time of day. With BULKMARK_PICTURES=DIR, the
/// pictures are put there: `BULKMARK_PICTURES=docs cargo test --test page looks`; two of them are kept.
#[test]
fn it_looks_well_in_all_sizes_and_lights() {
    let Some(mut browser) = Browser::start() else { return };
    let mut site = Site::new(&format!("exempt-loopback = false\n{STATUS}subjects = true\n"));
    let Some(clock) = Clock::of(&mut site, "-1440m") else { return };
    let daemon = site.start();
    a_day_of_mail(&daemon, &clock);
    browser.open(&url(&daemon), DESKTOP);
    browser.wait_for("document.querySelectorAll('#bulk tbody tr').length >= 4");
    browser.wait_for("document.querySelectorAll('.chart canvas').length === 2");
    let mut backs = Vec::new();
    for (dark, phone) in [(false, false), (true, false), (false, true), (true, true)] {
        let look = Look { dark, ..if phone { PHONE } else { DESKTOP } };
        browser.look(look);
        // The charts are drawn anew a moment after the window changed.
        let width = "document.getElementById('hour').clientWidth";
        browser.wait_for(&format!("document.querySelector('#hour canvas')?.width === {width}"));
        let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
        assert!(wide.as_i64() <= Some(0), "{look:?}: {wide} pixels are cut off");
        let small = browser.value(
            "[...document.querySelectorAll('main *')].filter(e => e.checkVisibility() && e.textContent.trim() && \
             parseFloat(getComputedStyle(e).fontSize) < 11).length",
        );
        assert_eq!(small, 0, "{look:?}: letters that are too small");
        backs.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        let picture = browser.picture();
        assert!(picture.starts_with(b"\x89PNG"));
        if let Some(directory) = std::env::var_os("BULKMARK_PICTURES") {
            let name = format!(
                "page-{}-{}.png",
                ["desktop", "phone"][usize::from(phone)],
                ["light", "dark"][usize::from(dark)]
            );
            std::fs::write(Path::new(&directory).join(name), picture).unwrap();
        }
    }
    assert_eq!((&backs[0], &backs[1]), (&backs[2], &backs[3]));
    assert_ne!(backs[0], backs[1]);
    let told = browser.complaints();
    assert!(told.is_empty(), "{told:#?}");
    wait_until("the day before is shown", || {
        let day = browser.value("document.querySelector('#totals tbody tr td:nth-child(3)').textContent");
        if day.as_str().is_some_and(|count| count.replace(',', "").parse::<u32>().is_ok_and(|n| n > 400)) {
            Ok(())
        } else {
            Err(day.to_string())
        }
    });
}
