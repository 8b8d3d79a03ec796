// SPDX-License-Identifier: GPL-3.0-or-later
//! A message has the same counts and the same verdict by every way: many messages, by each way to its own daemon, are compared line by
//! line. `BULKMARK_CORPUS` may name a directory of real mail.

use crate::asking::{counts, dccifd, judge, site, start};
use bulkmark_samples::writing::{Part, Piece, Style, mail};
use bulkmark_testing::crlf;
use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::milter::{Client, Mail};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// Low thresholds, so that verdicts differ.
pub(crate) const KEYS: &str = "[thresholds]\nbody = 3\nnear = 4\n";

/// The result for a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) verdict: String,
    pub(crate) body: Option<u64>,
    pub(crate) near: Option<u64>,
}

/// Has all messages judged in one way.
type Ask = fn(&[Vec<u8>]) -> Vec<Line>;

/// The ways of a message: the name of the client, and the function that asks and returns the results.
const WAYS: [(&str, Ask); 4] =
    [("milter", by_milter), ("SpamAssassin", by_spamassassin), ("rspamd", by_rspamd), ("HTTP", by_http)];

/// The client of a message.
pub(crate) fn client(n: usize) -> String {
    format!("198.18.{}.7", n % 200)
}

/// As Postfix passes it to a milter.
pub(crate) fn by_milter(messages: &[Vec<u8>]) -> Vec<Line> {
    let site = site(KEYS, "", "");
    let daemon = start(&site);
    let of = |(n, message): (usize, &Vec<u8>)| {
        let mut session = Client::connect(&daemon);
        session.client("h.example", &client(n));
        // The first line of an mbox becomes a field at Postfix.
        let mbox: &[u8] = if message.starts_with(b"From ") { b"X-Mailbox-Line: " } else { b"" };
        let mail = Mail { id: format!("4Q{n}"), ..Mail::raw(&[mbox, &wire(message)].concat()) };
        let answer = session.message(&mail);
        let mut fields = answer.header().split("; ");
        let verdict = fields.next().unwrap().to_owned();
        let field = |name: &str| answer.header().split("; ").find_map(|field| field.strip_prefix(name));
        let count = |name| field(name).map(|count| count.parse().unwrap());
        let reason = field("reason=").map(|reason| format!(" {reason}")).unwrap_or_default();
        Line { verdict: verdict + &reason, body: count("body="), near: count("near=") }
    };
    messages.iter().enumerate().map(of).collect()
}

/// With line ends as in a file, and the envelope as its DCC plugin sends it.
fn by_spamassassin(messages: &[Vec<u8>]) -> Vec<Line> {
    by_dccifd(messages, |n, message| {
        let ip = client(n);
        (format!("cksums grey-off \n{ip}\rh.example\nh.example\n\nunknown\n\n"), file(message))
    })
}

/// As it came by SMTP, with the envelope as the dcc module of rspamd 3.4 sends it.
fn by_rspamd(messages: &[Vec<u8>]) -> Vec<Line> {
    by_dccifd(messages, |n, message| {
        let ip = client(n);
        let lines =
            format!("header\n{ip}\rh.example\nh.example\nsender@example.org\nrecipient@example.net\n\n");
        (lines, wire(message))
    })
}

fn by_dccifd(messages: &[Vec<u8>], sent: impl Fn(usize, &[u8]) -> (String, Vec<u8>)) -> Vec<Line> {
    let site = site(KEYS, "", "");
    let _daemon = start(&site);
    let of = |(n, message): (usize, &Vec<u8>)| {
        let (lines, message) = sent(n, message);
        let answer = dccifd(&site, &lines, &message);
        let told = counts(answer.lines().nth(2).unwrap_or_else(|| panic!("{answer:?}")));
        let count =
            |name| told.split(' ').find_map(|word| word.strip_prefix(name)).map(|n| n.parse().unwrap());
        let is_judged = told.contains('=');
        let verdict = if told.starts_with("bulk ") { "bulk" } else { "clean" };
        Line {
            verdict: if is_judged { verdict } else { told }.to_owned(),
            body: count("Body="),
            near: count("Fuz1="),
        }
    };
    messages.iter().enumerate().map(of).collect()
}

/// Byte for byte, as a script would send it.
fn by_http(messages: &[Vec<u8>]) -> Vec<Line> {
    let site = site(KEYS, "", "");
    let _daemon = start(&site);
    let of = |(n, message): (usize, &Vec<u8>)| {
        let query = format!(
            "?ip={}&hostname=h.example&from=sender@example.org&rcpt=recipient@example.net",
            client(n)
        );
        let told = judge(&site, &query, message);
        // The reason is a sentence there; the header field has the word.
        let field = told["header"]["value"].as_str().unwrap_or_default();
        let reason = field.split("; ").find_map(|field| field.strip_prefix("reason="));
        let reason = reason.map(|reason| format!(" {reason}")).unwrap_or_default();
        let count = |kind: &str| told[kind]["count"].as_u64();
        let verdict = told["verdict"].as_str().unwrap_or("none").to_owned();
        Line { verdict: verdict + &reason, body: count("body"), near: count("near") }
    };
    messages.iter().enumerate().map(of).collect()
}

/// With line ends of LF alone.
fn file(message: &[u8]) -> Vec<u8> {
    let is_kept = |&(n, &byte): &(usize, &u8)| byte != b'\r' || message.get(n + 1) != Some(&b'\n');
    message.iter().enumerate().filter(is_kept).map(|(_, &byte)| byte).collect()
}

/// With line ends of CRLF.
pub(crate) fn wire(message: &[u8]) -> Vec<u8> {
    file(message)
        .split_inclusive(|&byte| byte == b'\n')
        .flat_map(|line| match line.strip_suffix(b"\n") {
            Some(line) => [line, b"\r\n"].concat(),
            None => line.to_vec(),
        })
        .collect()
}

/// Contents in many encodings.
pub(crate) fn written() -> Vec<Vec<u8>> {
    let words = |from: u32| -> Vec<String> { (from..from + 40).map(|n| format!("word{n}größe")).collect() };
    let text = |from| Part::Text(vec![words(from), words(from + 7)]);
    let page = |from| {
        let pieces = words(from).into_iter().map(Piece::Word);
        Part::Html(pieces.chain([Piece::Link(format!("http://shop{from}.test/?a=1&b=2"))]).collect())
    };
    let contents = (0..6u32).flat_map(|n| {
        let from = 100 * n;
        [
            text(from),
            page(from),
            Part::Multipart("alternative", vec![text(from), page(from)]),
            Part::Multipart("mixed", vec![text(from), Part::File(vec![n as u8; 3000])]),
            Part::Message("inner".to_owned(), Box::new(text(from))),
        ]
    });
    let styled = |(n, content): (usize, Part)| mail(&content, &mut Style(vec![n as u32, 7, 31], 0));
    let contents: Vec<_> = contents.collect();
    (0..3).flat_map(|_| contents.clone()).enumerate().map(styled).collect()
}

/// Messages at the limits of validity, each with its own text.
fn odd() -> Vec<Vec<u8>> {
    let heads = [
        "\n",
        "Subject: x\n\n",
        "Subject: x\n no: field\n\n",
        " begins with a fold\nSubject: x\n\n",
        "Subject : blank before the colon\n\n",
        "Subject: x\nnot a field\nContent-Type: text/html\n\n",
        "not a field\nSubject: x\n\n",
        ": no name\nSubject: x\n\n",
        "Content-Type: text/plain;\n\tcharset=utf-8\nContent-Transfer-Encoding:\n quoted-printable\n\n",
        "From someone@example.org Mon Nov 23 12:00:00 2026\nSubject: of an mbox\n\n",
        "Subject: no empty line follows\n",
        "Subject:\n\n\n\n",
    ];
    let ends =
        ["", "\n", "\n\n\n", "\r", ".\n.\n..\n", "\0\u{1}", "\r\rx\ry", "\nFrom here on\n>From there\n"];
    let all = heads.iter().flat_map(|head| [(*head, "\n"), (*head, "")]);
    let all = all.chain(ends.iter().map(|end| ("Subject: x\n\n", *end)));
    let mut all: Vec<_> =
        all.enumerate().map(|(n, (head, end))| format!("{head}{}{end}", text(n)).into_bytes()).collect();
    all.extend(heads.iter().enumerate().map(|(n, head)| crlf(&format!("{head}{}\n", text(100 + n)))));
    all.extend([Vec::new(), b"\n".to_vec(), b"x".to_vec(), b"Subject: x\n".to_vec(), b"Subject: x".to_vec()]);
    all.push([b"Subject: x\n\n", &*text(200).replace(' ', " \u{fc} ").into_bytes(), b"\xff\xfe\n"].concat());
    all.push(format!("Subject: x\n\n{}\n", text(201).repeat(2000)).into_bytes());
    all
}

/// A text with words that no other text has.
fn text(n: usize) -> String {
    (0..20).map(|word| format!("odd{n}word{word} ")).collect()
}

/// All messages below a directory, in the order of their names.
fn below(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut directories, mut found) = (vec![directory.to_owned()], Vec::<PathBuf>::new());
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let list = if entry.file_type().unwrap().is_dir() { &mut directories } else { &mut found };
            list.push(entry.path());
        }
    }
    found.sort();
    found.into_iter().map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

/// Sends all messages in each way, and reports differences.
fn compare(messages: Vec<(String, Vec<u8>)>) {
    let (names, messages): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
    let told: Vec<Vec<Line>> = thread::scope(|scope| {
        let messages = &messages;
        let ways = WAYS.map(|(_, way)| scope.spawn(move || way(messages)));
        ways.into_iter().map(|way| way.join().unwrap()).collect()
    });
    let mut differ = Vec::new();
    for (n, name) in names.iter().enumerate() {
        if told.iter().any(|way| way[n] != told[0][n]) {
            let lines =
                WAYS.iter().zip(&told).map(|((way, _), told)| format!("\n    {way:<14}{:?}", told[n]));
            differ.push(format!("{name}:{}", lines.collect::<String>()));
        }
    }
    let of = |verdict: &str| told[0].iter().filter(|line| line.verdict.starts_with(verdict)).count();
    let kinds = ["clean", "bulk", "exempt", "unknown"].map(|verdict| format!("{} {verdict}", of(verdict)));
    let summary = format!("{} messages, {} differ: {}", names.len(), differ.len(), kinds.join(", "));
    println!("{summary}");
    assert!(differ.is_empty(), "{summary}\n{}", differ.into_iter().take(20).collect::<Vec<_>>().join("\n"));
    assert!(of("clean") > 0 && of("bulk") > 0, "{kinds:?}");
}

#[test]
fn generated_mail_is_told_alike_by_every_way() {
    let data = below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mail"));
    let letters = (0..90).map(|n| letter(n % 20));
    let offers = (0..30).map(|n| offer(["Anna", "Bert", "Carl", "Dora", "Emil"][n % 5]));
    let made = letters.chain(offers).chain(written()).chain((0..4).flat_map(|_| odd()));
    let made = made.enumerate().map(|(n, message)| {
        let begin = String::from_utf8_lossy(&message[..message.len().min(60)]).into_owned();
        (format!("{n} ({begin:?})"), message)
    });
    compare(made.chain(data.iter().cloned()).chain(data.iter().cloned()).collect());
}

#[test]
fn a_corpus_is_told_alike_by_every_way() {
    let Some(root) = std::env::var_os("BULKMARK_CORPUS") else {
        println!("SKIPPED: BULKMARK_CORPUS is not set");
        return;
    };
    compare(below(Path::new(&root)));
}
