// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 11, and the part of row 13 about upstream servers: false answers, and the display of a server's texts.

use super::client::{self, Http};
use super::{Outcome, Scale};
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::page::{self, STATUS};
use bulkmark_testing::server::{Server, milter, parameters};
use bulkmark_testing::standin::{StandIn, answer};
use bulkmark_testing::{Daemon, Site, program, wait_for_some};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time within which a milter must follow another server if one sends nothing.
const PATIENCE: Duration = Duration::from_secs(75);

/// The time without news after which it must report that, in the attacks.
const STALENESS: &str = "max-staleness = \"3s\"\n";

/// A frame of the protocol.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [&length, bytes, &crc32fast::hash(bytes).to_le_bytes()].concat()
}

/// A server that answers a request for a snapshot with the head of one of `rows` rows, and then, as it does for updates, with endless empty
/// frames.
fn never_ending(rows: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(&stream, rows));
        }
    });
    port
}

fn serve(mut stream: &TcpStream, rows: u64) {
    let mut request = String::new();
    let mut reader = BufReader::new(stream);
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
    }
    let body = if request.contains("/v1/snapshot") {
        [&b"BMSN\x01"[..], &frame(&[&1u64.to_le_bytes()[..], &rows.to_le_bytes()].concat())].concat()
    } else {
        b"BMUP\x01".to_vec()
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nBulkmark-Parameters: {}\r\nDate: {}\r\nConnection: close\r\n\r\n",
        parameters(),
        httpdate::fmt_http_date(std::time::SystemTime::now())
    );
    let mut next = [head.as_bytes(), &body].concat();
    while stream.write_all(&next).is_ok() {
        next = frame(b"");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// An entry in a list of servers.
fn entry(site: &Site, url: &str) -> String {
    let file = site.path("token");
    std::fs::write(&file, "bulkmark_0000").unwrap();
    format!("{{ url = \"{url}\", token-file = \"{}\" }}", file.display())
}

/// A milter with this one server.
fn follower(url: &str) -> Site {
    let keeper = Site::new("");
    let mut site = milter(&[]);
    let entry = entry(&site, url);
    site.extra = site.extra.replace("upstream = []", &format!("upstream = [{entry}]")) + STALENESS;
    drop(keeper);
    site
}

pub(crate) fn empty_frames(_: Scale) -> Outcome {
    let good = Server::new("");
    let token = client::own(&good, "mx");
    let _good_runs = good.start();
    let file = good.site.path("good-token");
    std::fs::write(&file, &token).unwrap();
    let honest = format!("{{ url = \"{}\", token-file = \"{}\" }}", good.url(), file.display());
    let marker = letter(1);
    let mail = good.site.path("marker.eml");
    std::fs::write(&mail, &marker).unwrap();
    let output = Command::new(program()).arg("signature").arg(&mail).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let line = line.lines().find(|line| line.contains("\tbody\t")).unwrap().to_owned();
    let signature = u128::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(Http::new(good.port, &token).report(&[signature], 25).status, 200);

    let mut site = milter(&[]);
    let liar = entry(&site, &format!("http://127.0.0.1:{}", never_ending(1)));
    site.extra = site.extra.replace("upstream = []", &format!("upstream = [{liar}, {honest}]"));
    let _follower_runs = site.start();
    let began = Instant::now();
    while count(&site, &marker) < 25 && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(200));
    }
    let failed_over = count(&site, &marker) >= 25;
    let seconds = began.elapsed().as_secs_f64();

    // With no other server and nothing to fetch, it must report that there is no news.
    let alone = [1, 0].map(|rows| {
        let site = follower(&format!("http://127.0.0.1:{}", never_ending(rows)));
        let daemon = site.start();
        let began = Instant::now();
        while !is_stale(&daemon) && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(500));
        }
        is_stale(&daemon)
    });
    let over = if failed_over {
        format!("fail-over after {seconds:.0} s")
    } else {
        format!("no fail-over in {seconds:.0} s")
    };
    let shown = |stale| if stale { "shows" } else { "does not show" };
    Outcome::new(
        "an upstream sends empty frames in a snapshot, and in updates",
        format!("{over}; stale= {} in the one, and {} in the other", shown(alone[0]), shown(alone[1])),
        failed_over && alone == [true; 2],
    )
}

/// Whether the header of a new message reports the lack of news.
fn is_stale(daemon: &Daemon) -> bool {
    session(daemon).message(&Mail::text("is there any news?")).header().contains("stale=")
}

pub(crate) fn escapes(_: Scale) -> Outcome {
    let why = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31mnothing to see";
    let fields = format!("Bulkmark-Error: parameters\r\nBulkmark-Parameters: {}\r\n", parameters());
    let liar = StandIn::new(0, move |_| Some(answer("409 Conflict", &fields, why.as_bytes())));
    let site = follower(&format!("http://127.0.0.1:{}", liar.port));
    let daemon = site.start();
    daemon.log.wait_for(0, "nothing to see");
    let shown = run(&site, "status") + &daemon.log.lines().join("");
    let found = ['\u{1b}', '\u{7}', '\u{9b}'].into_iter().filter(|&c| shown.contains(c)).count();
    assert!(shown.contains("nothing to see"), "{shown}");
    Outcome::new(
        "an upstream puts escapes for terminals into its errors",
        format!("status and log show {found} of 3 kinds of them"),
        found == 0,
    )
}

/// The output of `bulkmark` for a milter.
fn run(site: &Site, command: &str) -> String {
    let output = Command::new(program()).args([command, "--config"]).arg(site.config()).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

pub(crate) fn redirect(_: Scale) -> Outcome {
    let elsewhere = StandIn::new(0, |_| Some(answer("200 OK", "", b"")));
    let place = format!("Location: http://127.0.0.1:{}/v1/updates\r\n", elsewhere.port);
    let server = StandIn::new(0, move |_| Some(answer("307 Temporary Redirect", &place, b"")));
    let site = follower(&format!("http://127.0.0.1:{}", server.port));
    let daemon = site.start();
    // It has asked, and tried again.
    let asked = |server: &StandIn| server.asked.load(Ordering::Relaxed);
    wait_for_some("questions", || (asked(&server) >= 2 || asked(&elsewhere) > 0).then_some(()));
    drop(daemon);
    let asked = asked(&elsewhere);
    Outcome::new(
        "an upstream redirects to another server",
        if asked == 0 { "that is asked nothing" } else { "that is asked" },
        asked == 0,
    )
}

pub(crate) fn password(_: Scale) -> Outcome {
    let server = StandIn::new(0, |_| Some(answer("500 Internal Server Error", "", b"no")));
    let mut site = follower(&format!("http://mx:open-sesame@127.0.0.1:{}", server.port));
    site.extra += STATUS;
    let mut daemon = site.spawn();
    // It may reject the answer at once.
    wait_for_some("its end, or a second question", || {
        let is_asked = server.asked.load(Ordering::Relaxed) >= 2;
        (is_asked || daemon.child.try_wait().unwrap().is_some()).then_some(())
    });
    let mut shown = vec![("status", run(&site, "status"))];
    if daemon.child.try_wait().unwrap().is_none() {
        for path in ["/metrics", "/", "/status", "/events", "/status.json", "/snapshot"] {
            let head = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1");
            let name = if path == "/metrics" { "metrics" } else { "page" };
            if path != "/events" {
                shown.push((name, page::ask(page::port(&daemon), &head)));
            }
        }
    }
    shown.push(("log", daemon.log.lines().join("\n")));
    let mut shown: Vec<_> =
        shown.iter().filter(|(_, text)| text.contains("open-sesame")).map(|(name, _)| *name).collect();
    shown.dedup();
    let came = if shown.is_empty() {
        "it is shown nowhere".to_owned()
    } else {
        format!("it is shown by {}", shown.join(", "))
    };
    Outcome::new("a password in the URL of an upstream", came, shown.is_empty())
}
