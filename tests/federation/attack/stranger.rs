// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows 14 to 20, and 22: attacks open to any sender of mail or user of the machine.

use super::{Outcome, Scale};
use bulkmark_testing::clock::Clock;
use bulkmark_testing::milter::{Client, Mail, NOREPLY_CONNECT};
use bulkmark_testing::page::{ask, port};
use bulkmark_testing::{Daemon, Site, http, program, reports};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// Both kinds of bulk, and spam, are refused.
const REFUSING: &str = "[actions]\nbulk = \"reject\"\nnear = \"reject\"\nspam = \"reject\"\n";

/// The network of a club that sends a circular for the first time.
const CLUB: &str = "198.51.100.7";

fn from(daemon: &Daemon, ip: &str) -> Client {
    let mut client = Client::connect(daemon);
    client.client("client.example.org", ip);
    client
}

fn circular() -> Mail {
    Mail::text("the circular of a club, which tells its members when they meet, and where, and what for")
}

/// Whether the club's own message is refused.
fn is_refused(daemon: &Daemon) -> bool {
    from(daemon, CLUB).message(&circular()).reply.starts_with('5')
}

/// Copies from six networks, each with a header field that could switch judging off.
pub(crate) fn header_shield(_: Scale) -> Outcome {
    let long = vec![b'a'; 90_000];
    let fields = [
        ("X-Bulkmark", vec![b"a".to_vec(); 1001]),
        ("Message-ID", vec![long.clone(); 3]),
        ("List-Id", vec![long.clone(); 3]),
        ("From", vec![long; 6]),
    ];
    let site = Site::new(REFUSING);
    let daemon = site.start();
    let mut passed = Vec::new();
    for (n, (name, values)) in fields.into_iter().enumerate() {
        let mut mail = Mail::text(&format!("a mailing with a shield, number {n}, and some more words of it"));
        mail.headers.extend(values.into_iter().map(|value| (name.as_bytes().to_vec(), value)));
        let mut reply = String::new();
        for copy in 0..25 {
            reply = from(&daemon, &format!("203.0.{}.7", 100 + copy % 6)).message(&mail).reply;
        }
        if !reply.starts_with('5') {
            passed.push(name);
        }
    }
    Outcome::new(
        "25 copies with 1,001 of our own fields, or 270 kB of Message-ID, List-Id or From",
        if passed.is_empty() { "the 25th is refused".to_owned() } else { format!("not judged: {passed:?}") },
        passed.is_empty(),
    )
}

/// Three messages to ten names each of a trap's domain, with the least weight.
pub(crate) fn trap_domain(_: Scale) -> Outcome {
    let site = Site::new(&format!("{REFUSING}[traps]\nrecipients = [\"@trap.example\"]\nweight = 0.125\n"));
    let daemon = site.start();
    for n in 0..3 {
        let recipients = (0..10).map(|i| format!("x{n}{i}@trap.example")).collect();
        from(&daemon, "203.0.113.5").message(&Mail { recipients, ..circular() });
    }
    let refused = is_refused(&daemon);
    Outcome::new(
        "a club's circular to 30 names of a trap's domain",
        if refused { "the club's own is refused" } else { "the club's own is taken" },
        !refused,
    )
}

/// One customer's networks.
pub(crate) fn one_provider(_: Scale) -> Outcome {
    let site = Site::new(REFUSING);
    let daemon = site.start();
    for n in 0..40 {
        from(&daemon, &format!("2001:db8:{:x}::{:x}", n % 16, n + 1)).message(&circular());
    }
    let refused = is_refused(&daemon);
    Outcome::new(
        "a club's circular 40 times from the sixteen /48 of an IPv6 /44",
        if refused { "the club's own is refused" } else { "the club's own is taken" },
        !refused,
    )
}

/// A local user gives dccifd twelve names.
pub(crate) fn names(_: Scale) -> Outcome {
    let site = Site::new(&format!("{REFUSING}[interfaces.dccifd]\nlisten = \"127.0.0.1:0\"\n"));
    let daemon = site.start();
    let at = daemon.log.wait_for(0, "the interface dccifd is at ");
    let port: String =
        at.rsplit(':').next().unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let mail = circular();
    for n in 0..12 {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let head = format!(
            "header spam\n192.0.2.9\rh.example\nh\na@b.example\nx@example.org\rname{n}\n\nSubject: s\n\n"
        );
        stream.write_all(&[head.as_bytes(), &mail.body].concat()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let refused = is_refused(&daemon);
    Outcome::new(
        "twelve made-up names at dccifd call a circular spam",
        if refused { "the club's own is refused" } else { "the club's own is taken" },
        !refused,
    )
}

/// Blank pictures of 16 million pixels each.
pub(crate) fn pictures(_: Scale) -> Outcome {
    let head = b"GIF89a\xA0\x0F\xA0\x0F\x80\0\0\xFF\xFF\xFF\0\0\0,\0\0\0\0\xA0\x0F\xA0\x0F\0\x02";
    let picture: String =
        [&head[..], &[0; 1500]].concat().iter().map(|byte| format!("={byte:02X}")).collect();
    let lines: Vec<&str> =
        picture.as_bytes().chunks(75).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let part = format!(
        "--b\nContent-Type: image/gif\nContent-Transfer-Encoding: quoted-printable\n\n{}\n",
        lines.join("=\n")
    );
    let site = Site::new("");
    let time = |number: usize| {
        let file = site.path("pictures.eml");
        let raw = format!("Content-Type: multipart/mixed; boundary=b\n\n{}--b--\n", part.repeat(number));
        std::fs::write(&file, raw).unwrap();
        let began = Instant::now();
        Command::new(program()).arg("signature").arg(&file).output().unwrap();
        began.elapsed()
    };
    let (few, many) = (time(4), time(200));
    Outcome::new(
        "a message with 200 white pictures of 16 million pixels",
        format!("{:.1} s; with 4 of them {:.1} s", many.as_secs_f64(), few.as_secs_f64()),
        many < 4 * few + Duration::from_secs(1),
    )
}

/// Twelve accounts vouch for each other by mail among themselves only, and report more of it 60 hours later.
pub(crate) fn vouching_accounts(_: Scale) -> Outcome {
    let mut site = Site::new("");
    let Some(clock) = Clock::of(&mut site, "+0") else {
        return Outcome::skipped("there is no faketime here");
    };
    let daemon = site.start();
    let names: Vec<String> = (0..12).map(|n| format!("account{n}")).collect();
    for n in 0..4 {
        let mail = Mail::text(&format!(
            "mailing {n} of twelve accounts to themselves, with enough words to be counted"
        ));
        let send = |copies| {
            for copy in 0..copies {
                from(&daemon, &format!("203.0.{}.7", 100 + copy % 6)).message(&mail);
            }
        };
        send(12);
        let raw = [b"Subject: s\n\n", &mail.body[..]].concat();
        for name in &names {
            reports::report(&site, &["--user", name], &raw);
        }
        send(40);
        clock.set(&format!("+{}h", 20 * (n + 1)));
    }
    let weight = |name: &String| reports::listed(&site, &["--user", name])["reporters"][0]["weight"].as_f64();
    let most = names.iter().filter_map(weight).fold(0.0, f64::max);
    Outcome::new(
        "twelve accounts report mail as spam that only they got, and weigh after 80 hours",
        format!("{most} each"),
        most <= 0.25,
    )
}

/// A local user opens all available streams of the page.
pub(crate) fn page_streams(_: Scale) -> Outcome {
    let site = Site::new("[status]\nlisten = \"127.0.0.1:0\"\n");
    let daemon = site.start();
    let mut streams = Vec::new();
    for _ in 0..80 {
        let stream = http::connect(port(&daemon));
        let _ = (&stream).write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        streams.push(stream);
    }
    let stream = http::connect(port(&daemon));
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = (&stream).write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut line = String::new();
    let is_answered =
        BufReader::new(&stream).read_line(&mut line).is_ok() && line.starts_with("HTTP/1.1 200");
    Outcome::new(
        "80 streams of the page are open",
        if is_answered { "/healthz answers" } else { "/healthz does not answer for 20 s" },
        is_answered,
    )
}

/// A web site whose name resolves to 127.0.0.1 hides that name behind one of this machine.
pub(crate) fn hidden_host(_: Scale) -> Outcome {
    let site = Site::new("[status]\nlisten = \"127.0.0.1:0\"\n");
    let daemon = site.start();
    let heads = [
        "GET /status.json HTTP/1.1\r\nHost: localhost\r\nHost: evil.example",
        "GET http://evil.example/status.json HTTP/1.1\r\nHost: localhost",
    ];
    let listed =
        heads.into_iter().filter(|head| ask(port(&daemon), head).starts_with("HTTP/1.1 200")).count();
    Outcome::new(
        "the page is asked for by evil.example, behind a Host field of this machine, and in the target",
        format!("{listed} of {} are answered", heads.len()),
        listed == 0,
    )
}

/// Sendmail's form of an IPv6 client, and other packets that a library may reject.
pub(crate) fn packets(_: Scale) -> Outcome {
    let site = Site::new("");
    let daemon = site.start();
    let mut lost = Vec::new();
    for (family, address) in [
        (b'6', "IPv6:2001:db8::25"),
        (b'6', "fe80::1%eth0"),
        (b'4', ""),
        (b'4', "nonsense"),
        (b'X', "192.0.2.7"),
    ] {
        let mut client = Client::connect(&daemon);
        let payload = [b"mail.client.example\0", &[family, 0, 25][..], address.as_bytes(), b"\0"].concat();
        client.send(b'C', &payload);
        if client.options & NOREPLY_CONNECT == 0 {
            client.receive();
        }
        if client.try_message(&Mail::text(&format!("from {address}"))).and_then(|answer| answer.count())
            != Some(1)
        {
            lost.push(address);
        }
    }
    Outcome::new(
        "a client's address as Sendmail writes it, of another family, with a zone, or none",
        if lost.is_empty() { "the message is judged".to_owned() } else { format!("not judged: {lost:?}") },
        lost.is_empty(),
    )
}
