// SPDX-License-Identifier: GPL-3.0-or-later
//! Malformed messages and packets: none may end the daemon, block it, or exhaust its memory.

use bulkmark_mail::{File, MAX_DEPTH, RawMessage, Text, Visitor};
use bulkmark_signature::Settings;
use bulkmark_testing::milter::*;
use bulkmark_testing::process::{kilobytes, processor};
use bulkmark_testing::{Daemon, Site, random::Random};
use bulkmark_types::FederationKey;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A guard against quadratic algorithms: the most CPU time that one message may take, which is about a second in a slow build, however
/// busy the machine is.
const HANG: Duration = Duration::from_secs(60);

/// The CPU time that this thread spent on some work.
fn time_of(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let before = now();
    work();
    now() - before
}

fn samples() -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mail"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Visits all parts and keeps none.
#[derive(Default)]
struct Look {
    bytes: usize,
    depth: usize,
}

impl Visitor for Look {
    fn text(&mut self, text: Text<'_>) {
        self.bytes += text.exact.len() + text.shown.len();
    }
    fn html(&mut self, html: Text<'_>) {
        self.bytes += html.exact.len() + html.shown.len();
    }
    fn file(&mut self, file: File<'_>) {
        self.bytes += file.exact.len() + file.shown.len();
    }
    fn message(&mut self, _: &[&[u8]]) {
        self.depth += 1;
        assert!(self.depth <= MAX_DEPTH);
    }
    fn message_end(&mut self) {
        self.depth -= 1;
    }
}

fn read(raw: &[u8]) -> bool {
    let message = RawMessage::from_bytes(raw);
    let mut look = Look::default();
    message.visit(&mut look);
    assert_eq!(look.depth, 0, "each enclosed message that began must end");
    let _ = message.fields();
    let signature = bulkmark_signature::body(&message, &FederationKey::public(), &Settings::default());
    assert_eq!(signature, bulkmark_signature::body(&message, &FederationKey::public(), &Settings::default()));
    signature.is_ok()
}

const CHARSETS: [&str; 14] = [
    "utf-8",
    "utf-7",
    "utf-16",
    "UTF-16LE",
    "iso-2022-jp",
    "iso-2022-kr",
    "hz-gb-2312",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-kr",
    "x-unknown",
    "",
    "\"\0\"",
];

/// Makes one mutation of a message, or of a message and another.
#[expect(clippy::too_many_lines, reason = "a list")]
fn mutate(random: &mut Random, message: &mut Vec<u8>, other: &[u8]) {
    let at = |random: &mut Random, length: usize| random.below(length.max(1));
    let lines = |bytes: &[u8]| bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    match random.below(14) {
        0 => {
            for _ in 0..=random.below(8) {
                let i = at(random, message.len());
                if let Some(byte) = message.get_mut(i) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
        1 => message.truncate(random.below(message.len() + 1)),
        2 => {
            let mut all = lines(message);
            let i = at(random, all.len());
            if let Some(line) = all.get(i).cloned() {
                all.splice(i..i, std::iter::repeat_n(line, 1 + random.below(20)));
            }
            *message = all.concat();
        }
        3 => {
            let mut all = lines(message);
            if !all.is_empty() {
                all.remove(at(random, all.len()));
            }
            *message = all.concat();
        }
        4 => {
            let (i, j) = (at(random, message.len()), at(random, other.len()));
            message.truncate(i);
            message.extend_from_slice(&other[j..]);
        }
        5 => {
            let i = at(random, message.len());
            message.splice(i..i, [b'\0', b'\r', 0xFF][..1 + random.below(3)].iter().copied());
        }
        6 => replace(message, b"charset=", CHARSETS[random.below(CHARSETS.len())].as_bytes()),
        7 => {
            let encodings =
                ["base64", "quoted-printable", "8bit", "x-uuencode", "base64, base64", "\u{fffd}"];
            replace(message, b"Encoding: ", encodings[random.below(encodings.len())].as_bytes());
        }
        8 => replace(
            message,
            b"boundary=",
            ["", "\"\"", "\"--\"", "b", "\"\\\"", "\"=_x\""][random.below(6)].as_bytes(),
        ),
        9 => {
            // Delimiter lines in the wrong places.
            let mut all = lines(message);
            let delimiters: Vec<_> = all.iter().filter(|l| l.starts_with(b"--")).cloned().collect();
            if !delimiters.is_empty() {
                for _ in 0..3 {
                    let line = delimiters[random.below(delimiters.len())].clone();
                    let i = random.below(all.len() + 1);
                    all.insert(i, line);
                }
            }
            *message = all.concat();
        }
        10 => {
            let mut field = Vec::new();
            for _ in 0..random.below(60) {
                field.push(random.next() as u8);
            }
            field.extend_from_slice(b": \xe9\xff=?utf-8?Q?=?=\r\n");
            message.splice(0..0, field);
        }
        11 => {
            // The message inside another one.
            let head = b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\n";
            message.splice(0..0, head.iter().copied());
        }
        12 => {
            let head = format!("Content-Type: multipart/mixed; boundary=\"{}\"\r\n\r\n", random.below(3));
            let delimiter = format!("\r\n--{}\r\n", random.below(3));
            *message = [head.as_bytes(), message, delimiter.as_bytes(), other].concat();
        }
        _ => message.retain(|&b| b != b'\r'),
    }
}

/// Replaces the text after `key`, up to the end of the word.
fn replace(message: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    if let Some(i) = message.windows(key.len()).position(|w| w == key) {
        let start = i + key.len();
        let end =
            message[start..].iter().position(|b| b" ;\r\n".contains(b)).map_or(message.len(), |n| start + n);
        message.splice(start..end, value.iter().copied());
    }
}

fn mutants(seed: u64, number: usize) -> Vec<Vec<u8>> {
    let samples = samples();
    let mut random = Random::new(seed);
    let mut mutant = |i: usize| {
        let mut message = samples[i % samples.len()].clone();
        for _ in 0..=random.below(4) {
            let other = random.below(samples.len());
            mutate(&mut random, &mut message, &samples[other]);
        }
        message
    };
    (0..number).map(&mut mutant).collect()
}

#[test]
fn mutants_are_read_without_a_panic() {
    let with_signature = mutants(1, 2500).iter().filter(|mutant| read(mutant)).count();
    // Most mutations must still be messages, or this would test nothing.
    assert!((1000..2500).contains(&with_signature), "{with_signature}");
}

/// Tests a directory of real mail, if the environment names one.
#[test]
fn a_corpus_is_read_without_a_panic() {
    let Some(root) = std::env::var_os("BULKMARK_CORPUS") else {
        println!("SKIPPED: BULKMARK_CORPUS is not set");
        return;
    };
    let mut directories = vec![PathBuf::from(root)];
    let (mut files, mut with_signature) = (0, 0);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else if let Ok(raw) = std::fs::read(entry.path()) {
                files += 1;
                let time = time_of(|| with_signature += usize::from(read(&raw)));
                assert!(time < HANG, "{}", entry.path().display());
            }
        }
    }
    println!("{files} files, {with_signature} with a signature");
}

/// Returns a verdict of a known kind; malformed messages have no other guarantee.
fn judged(client: &mut Client, mail: &Mail) -> String {
    let answer = client.message(mail);
    assert_eq!(answer.reply, "c");
    let verdict = answer.verdict().to_owned();
    assert!(["clean; ", "bulk; ", "exempt; reason=low"].iter().any(|v| verdict.starts_with(v)), "{verdict}");
    verdict
}

/// The first 32 MiB of a body are judged, whatever follows.
#[test]
fn a_long_message_is_judged_by_its_beginning() {
    let site = Site::new("verdict-deadline = \"4m\"\n");
    let daemon = site.start();
    let mut client = session(&daemon);
    let body = |end: &str| {
        let file = "QUJD".repeat(18) + "\r\n";
        let text = "Subject words that are different from all of these others here.\r\n";
        format!(
            "--b\r\n\r\n{text}--b\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n{}{end}",
            file.repeat(460_000)
        )
    };
    for (count, end) in (1..).zip(["", "REVG\r\n--b--\r\n", "\r\n--b\r\n\r\nAnother text.\r\n--b--\r\n"]) {
        let answer = judged(&mut client, &with_body("Content-Type: multipart/mixed; boundary=b", body(end)));
        assert!(answer.starts_with(&format!("clean; body={count};")), "{answer}");
    }
}

#[test]
fn the_daemon_judges_mutants() {
    let site = Site::new("");
    let mut daemon = site.start();
    let mut client = session(&daemon);
    for mutant in mutants(2, 400) {
        judged(&mut client, &Mail::raw(&mutant));
    }
    assert!(daemon.child.try_wait().unwrap().is_none());
    assert!(!daemon.log.lines().iter().any(|line| line.contains("panicked")));
    assert!(daemon.terminate().success());
}

/// The peak memory of the process, in MB.
fn peak_memory(daemon: &Daemon) -> u64 {
    kilobytes(daemon.pid(), "VmHWM") / 1024
}

fn with_body(head: &str, body: String) -> Mail {
    let mut mail = Mail::raw(format!("{head}\r\n\r\n").as_bytes());
    mail.body = body.into_bytes();
    mail
}

/// Many large messages, in one daemon whose memory stays below a bound that is a multiple of the largest message.
#[test]
fn extremes_are_judged_in_bounded_memory() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = session(&daemon);
    let text = "A body that says enough to be counted, in more than eight words.\r\n";

    let mut mail = Mail::text("50,000 header fields");
    for i in 0..50_000 {
        mail.headers.push((format!("X-{i}").into_bytes(), b"value".to_vec()));
    }
    assert!(judged(&mut client, &mail).starts_with("clean; body=1;"));

    let mut mail = Mail::text("a long header value");
    mail.headers.push((b"X-Long".to_vec(), vec![b'x'; 1_000_000]));
    assert!(judged(&mut client, &mail).starts_with("clean; body=1;"));
    // Nor does any relevant field suppress the verdict on the message.
    for (count, name) in (2..).zip([
        "From",
        "Message-ID",
        "List-Id",
        "DKIM-Signature",
        "To",
        "Authentication-Results",
        "Content-Language",
    ]) {
        for _ in 0..4 {
            mail.headers.push((name.as_bytes().to_vec(), vec![b'x'; 100_000]));
        }
        assert!(judged(&mut client, &mail).starts_with(&format!("clean; body={count};")), "{name}");
    }

    let parts = "--b\r\n\r\npart\r\n".repeat(10_000);
    judged(&mut client, &with_body("Content-Type: multipart/mixed; boundary=b", parts));

    let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(1000) + "\r\n" + text;
    judged(&mut client, &with_body("Content-Type: message/rfc822", nested));

    let mut nested = String::new();
    for i in 1..1000 {
        write!(nested, "--b{}\r\nContent-Type: multipart/mixed; boundary=b{i}\r\n\r\n", i - 1).unwrap();
    }
    judged(
        &mut client,
        &with_body("Content-Type: multipart/mixed; boundary=b0", nested + "--b999\r\n\r\n" + text),
    );

    // Each level makes the message a third larger; so only as many levels as fit into some megabytes.
    let mut nested = text.to_owned();
    while nested.len() < 3_000_000 {
        let head = "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n";
        nested = head.to_owned() + &bulkmark_samples::encode::base64(nested.as_bytes());
    }
    judged(&mut client, &Mail::raw(nested.as_bytes()));

    let mut mail = Mail::text("NUL bytes");
    mail.body = mail.body.iter().flat_map(|&b| [b, 0]).collect();
    mail.headers.push((b"From".to_vec(), b"a\0b".to_vec()));
    judged(&mut client, &mail);

    let peak = peak_memory(&daemon);
    assert!(peak < 300, "{peak} MB");
    assert!(processor(daemon.pid()) < HANG.as_secs_f64());
}

#[test]
fn recipients_are_bounded() {
    let site = Site::new("");
    let daemon = site.start();
    let mut client = session(&daemon);
    let mut mail = Mail::text("to very many");
    mail.recipients = (0..10_000).map(|i| format!("user{i}@example.net")).collect();
    assert!(judged(&mut client, &mail).starts_with("bulk; body=10000;"));
    // Nor do long addresses suppress it.
    let local = "x".repeat(1900);
    let long: Vec<_> = (0..1000).map(|i| format!("user+{local}{i}@a{i}.example.net")).collect();
    assert!(
        judged(&mut client, &Mail { recipients: long, ..Mail::text("long") }).starts_with("bulk; body=1000;")
    );
    mail.recipients.push("one.more@example.net".to_owned());
    assert_eq!(client.message(&mail).verdict(), "unknown; reason=too-many-recipients; host=mx.test");
}

/// HTML that makes naive parsers quadratic. Twice the size must not take four times as long: optimised, each of these takes far less than
/// a second, and minutes if it were quadratic.
#[test]
fn hostile_html_takes_linear_time() {
    let many = |piece: &str, n: usize| piece.repeat(n);
    let attributes: String = (0..40_000).fold(String::new(), |all, i| all + &format!("a{i} "));
    for (name, html) in [
        ("unclosed tags", many("<div>", 100_000)),
        ("tags that close nothing", many("<span>", 512) + &many("</b>", 1_000_000)),
        ("tags that would close their like", many("<span>", 512) + &many("<p>", 1_000_000)),
        ("a long attribute", format!("<a href=\"{}\">", many("y", 5_000_000))),
        ("entities", many("&amp;", 100_000)),
        ("unknown entities", many("&nosuchentity", 20_000)),
        ("comments that never end", many("<!--", 200_000)),
        ("half an end tag", format!("<script>{}", many("</scrip", 100_000))),
        ("attributes", format!("<p {attributes}>")),
        (
            "rules",
            format!("<style>{}</style>{}", many(".a.b{top:0}", 20_000), many("<p class='a c'>", 20_000)),
        ),
        ("more rules than are read", format!("<style>{}</style>x", many(".a{top:0}", 1_000_000))),
        ("rules in rules", format!("<style>{}</style>x", many("@media all{", 20_000))),
        ("comments in styles", format!("<style>{}</style>x", many("/*", 100_000))),
        ("styles", many("<style></style>", 100_000)),
        ("styles that never end", many("<title><style><script>", 100_000)),
        ("declarations", format!("<p style=\"{}\">x", many("top:(;", 300_000))),
    ] {
        let time =
            time_of(|| _ = read(format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}").as_bytes()));
        println!("{name}: {time:?}");
        assert!(time < HANG, "{name} took {time:?}");
    }
}

/// The same for encodings and charsets.
#[test]
fn damaged_text_takes_linear_time() {
    let base64 = "Content-Type: text/plain\r\nContent-Transfer-Encoding: base64";
    let printable = "Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable";
    for (name, head, body) in [
        ("groups of base64", base64, b"AA=!".repeat(100_000)),
        ("bytes that base64 does not have", base64, b"\x00\xffA".repeat(100_000)),
        ("escapes", printable, b"=z".repeat(100_000)),
        (
            "runs of two charsets",
            "Content-Type: text/plain; charset=iso-2022-jp",
            b"\x1b(J\x8a\xbf".repeat(30_000),
        ),
        ("bytes without a charset", "Content-Type: text/html", b"<meta charset=x>\xff".repeat(30_000)),
    ] {
        let time = time_of(|| _ = read(&[head.as_bytes(), b"\r\n\r\n", &body].concat()));
        println!("{name}: {time:?}");
        assert!(time < HANG, "{name} took {time:?}");
    }
}

/// The same for MIME structure.
#[test]
fn hostile_structure_takes_linear_time() {
    let part =
        |head: String| format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{head}\r\n\r\nx\r\n");
    let parameters: String = (0..100_000).fold(String::new(), |all, i| all + &format!(";a*{i}=b"));
    for (name, raw) in [
        ("fields", part("a:b\r\n".repeat(200_000) + "a: b")),
        ("parameters", part(format!("Content-Type: text/plain{parameters}"))),
        ("comments", part(format!("Content-Type: text/plain{}", "(".repeat(500_000)))),
        ("addresses", format!("From: {}\r\n\r\nx", "a@b,".repeat(60_000))),
        (
            "half delimiters",
            format!("Content-Type: multipart/mixed; boundary={0}\r\n\r\n{0}", "-".repeat(60))
                + &"-".repeat(600_000),
        ),
        ("line ends", format!("Content-Type: application/octet-stream\r\n\r\n{}", "\r\n".repeat(1_000_000))),
    ] {
        let time = time_of(|| _ = read(raw.as_bytes()));
        println!("{name}: {time:?}");
        assert!(time < HANG, "{name} took {time:?}");
    }
}
