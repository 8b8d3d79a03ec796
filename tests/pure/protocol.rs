// SPDX-License-Identifier: GPL-3.0-or-later
//! Bodies from the first version of the protocol, kept in tests/data/protocol: they are read, written the same way,
//! and give the same counts.

use bulkmark::control::DaemonStatus;
use bulkmark_counts::{Assembly, Chain, Mark, Origin, Receipt, Role, Row, Settings, Update, Vector};
use bulkmark_ledger::Ledger;
use bulkmark_sync::wire::{
    Frames, Reports, SNAPSHOT, SnapshotHead, UPDATES, decode_alive, decode_receipt, encode_alive,
    encode_receipt, frame,
};
use bulkmark_sync::{Code, Link, Parameters, Remote, Upstream};
use bulkmark_testing::http::ask;
use bulkmark_testing::server::Server;
use bulkmark_testing::standin::{StandIn, answer};
use bulkmark_testing::text_of;
use bulkmark_types::{FederationKey, Signature};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A second of the window in which all of it was counted.
const NOW: u64 = 1_795_371_667;

const ORIGIN: Origin = Origin(0x1cfe_616e_3ffc_eb90);

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/protocol").join(name)
}

fn body(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn signature(n: u8) -> Signature {
    Signature::from_bytes(std::array::from_fn(|i| {
        n.wrapping_mul(37).wrapping_add(u8::try_from(i).unwrap() * 11)
    }))
}

fn times(n: u8) -> u32 {
    [1, 2, 19, 300, 70_000][usize::from(n % 5)]
}

fn settings() -> Settings {
    Settings { capacity: NonZeroU32::new(1000).unwrap(), ..Settings::default() }
}

/// All frames of a stream.
fn frames(magic: &'static [u8; 5], stream: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Frames::new(magic);
    frames.push(stream);
    std::iter::from_fn(|| frames.take().unwrap()).collect()
}

/// The stream of these frames.
fn stream<'a>(magic: &[u8; 5], contents: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    contents.into_iter().fold(magic.to_vec(), |stream, content| [stream, frame(content)].concat())
}

#[test]
fn reports_and_receipt() {
    let reports = Reports {
        spool: 0x0123_4567_89AB_CDEF,
        number: 2,
        reports: (3..8).map(|n| (signature(n), times(n))).collect(),
    };
    assert_eq!(Reports::decode(&body("reports.bin")).as_ref(), Ok(&reports));
    assert_eq!(reports.encode(), body("reports.bin"));
    let receipt = Receipt { origin: ORIGIN, version: 2 };
    assert_eq!(decode_receipt(&body("receipt.bin")), Ok(receipt));
    assert_eq!(encode_receipt(receipt), body("receipt.bin"));
}

/// Streams are decoded completely, and encoded again to the same bytes.
#[test]
fn streams() {
    let contents = frames(SNAPSHOT, &body("snapshot.bin"));
    let (head, rows) = contents.split_first().unwrap();
    let head = SnapshotHead::decode(head).unwrap();
    assert_eq!((head.id, head.rows), (0xFEDC_BA98_7654_3210, rows.len() as u64));
    assert_eq!(head.vector.get(ORIGIN).version, 1);
    let rows: Vec<_> = rows.iter().map(|row| Row::decode(row).unwrap().encode()).collect();
    assert_eq!(stream(SNAPSHOT, [&head.encode()].into_iter().chain(&rows)), body("snapshot.bin"));

    let contents = frames(UPDATES, &body("updates.bin"));
    let (alive, updates) = contents.split_first().unwrap();
    assert!(alive.is_empty());
    let updates: Vec<_> = updates.iter().map(|update| Update::decode(update).unwrap()).collect();
    let versions: Vec<_> = updates.iter().map(|update| (update.origin(), update.version())).collect();
    assert_eq!(versions, [(ORIGIN, 1), (ORIGIN, 2)]);
    let updates: Vec<_> = updates.iter().map(Update::encode).collect();
    assert_eq!(stream(UPDATES, [alive].into_iter().chain(&updates)), body("updates.bin"));
}

/// A server's position, which is not an update.
#[test]
fn signs_of_life() {
    let contents = frames(UPDATES, &body("alive.bin"));
    let [content] = &contents[..] else { panic!("{contents:?}") };
    let mut vector = Vector::default();
    vector.set(ORIGIN, Mark { version: 2, chain: Chain([0x5a; 16]) });
    assert_eq!(decode_alive(content).as_ref(), Some(&vector));
    assert_eq!(stream(UPDATES, [&encode_alive(&vector)]), body("alive.bin"));
    assert!(Update::decode(content).is_err());
    for update in frames(UPDATES, &body("updates.bin")) {
        assert_eq!(decode_alive(&update), None);
    }
    // Ten thousand origins fit.
    let mut many = Vector::default();
    (0..10_000).for_each(|n| many.set(Origin(n), Mark { version: n + 1, chain: Chain([3; 16]) }));
    assert_eq!(decode_alive(&encode_alive(&many)).as_ref(), Some(&many));
    let long = "0123456789abcdef:1:00112233445566778899aabbccddeeff,".repeat(120_000);
    assert_eq!(decode_alive(&[&[0; 16], long.as_bytes()].concat()), None, "of more origins than there are");
}

/// A current milter that receives them has the counts of that time.
#[tokio::test]
async fn what_was_counted_counts() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(directory.path(), Role::Cache, &settings(), &FederationKey::public()).unwrap();
    let contents = frames(SNAPSHOT, &body("snapshot.bin"));
    let vector = SnapshotHead::decode(&contents[0]).unwrap().vector;
    let mut assembly = Assembly::new(&settings(), vector, bulkmark_ledger::now());
    for row in &contents[1..] {
        assert_eq!(assembly.add(&Row::decode(row).unwrap()), Ok(true));
    }
    ledger.adopt(assembly).await.unwrap().unwrap();
    for bytes in frames(UPDATES, &body("updates.bin")).into_iter().filter(|bytes| !bytes.is_empty()) {
        let update = Update::decode(&bytes).unwrap();
        ledger.apply(update, bytes.into(), NOW).await.unwrap().unwrap();
    }
    for n in 0..9 {
        let reported = [0..5, 3..8].iter().filter(|batch| batch.contains(&n)).count();
        let expected = times(n) * u32::try_from(reported).unwrap();
        assert_eq!(ledger.count(signature(n), NOW).await, Ok(expected), "signature {n}");
    }
    ledger.close().await.unwrap();
}

#[test]
fn parameters() {
    let text = text("parameters.txt");
    let ours = Parameters::new(&settings(), &FederationKey::public());
    assert_eq!(ours.to_string(), text.trim_end());
    assert_eq!(ours.check(text.trim_end(), ["here", "there"]), Ok(()));
    let (read, key) = Parameters::read(text.trim_end()).unwrap();
    assert_eq!(
        (read.capacity, read.window, key),
        (settings().capacity, settings().window, FederationKey::public().id())
    );
}

#[test]
fn status() {
    let status: DaemonStatus = serde_json::from_str(&text("status.json")).unwrap();
    assert_eq!(status.versions.get("1c4886c84c22c610"), Some(&1));
    assert_eq!(status.ledger.slices[0].signatures, Some(5));
    assert_eq!(serde_json::to_string(&status).unwrap(), text("status.json"));
}

/// Each code is in the document, with its status, and no other code is.
#[test]
fn codes_are_documented() {
    let text = text_of("docs/protocol.md");
    let (_, table) = text.split_once("\n| code | status |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let documented: BTreeMap<_, _> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            assert!(cells.len() == 6 && cells[3..5].iter().all(|cell| !cell.is_empty()), "{row}");
            (cells[1].trim_matches('`').to_owned(), cells[2].parse().unwrap())
        })
        .collect();
    let known: BTreeMap<_, _> =
        Code::ALL.iter().map(|code| (code.to_string(), code.status().as_u16())).collect();
    assert_eq!(documented, known);
    assert!(Code::ALL.iter().all(|code| code.name().parse() == Ok(*code)));
}

/// A server's code gives the reason for a refusal, whatever the text says.
#[test]
fn a_server_tells_codes() {
    let server = Server::new("");
    let tokens = ["report", "read"]
        .map(|role| server.client(&["add", "--own", role, "--role", role]).trim().to_owned());
    let _daemon = server.start();
    let parameters = bulkmark_testing::server::parameters();
    let by = |token: &str| format!("Authorization: Bearer {token}");
    let answer_to = |line: &str, fields: &str, body: &[u8]| {
        let answer = ask(server.port, &format!("{line} HTTP/1.1\r\n{fields}"), body);
        let status = answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap();
        let code = answer.lines().find_map(|line| line.strip_prefix("bulkmark-error: "));
        (status, code.unwrap_or_default().trim_end().to_owned())
    };
    let [report, read] = tokens.each_ref().map(|token| by(token));
    let batch = |number| Reports { spool: 1, number, reports: vec![(signature(1), 1)] }.encode();
    assert_eq!(answer_to("POST /v1/reports", &report, &batch(5)), (200, String::new()));
    let (mut newer, long) = (batch(6), vec![0; 1 << 20]);
    newer[4] = 2;
    let other =
        format!("{report}\r\nbulkmark-parameters: {}", parameters.replace("protocol=1", "protocol=2"));
    let late =
        format!("{report}\r\nbulkmark-parameters: {parameters}\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT");
    for (line, fields, body, expected) in [
        ("GET /v1/status", "X: y", &b""[..], Code::TokenMissing),
        ("GET /v1/status", "Authorization: Bearer guess", b"", Code::TokenInvalid),
        ("POST /v1/reports", &read, &batch(6), Code::Role),
        ("GET /metrics", &read, b"", Code::Role),
        ("POST /v1/reports", &other, &batch(6), Code::Parameters),
        ("GET /v1/updates", &late, b"", Code::Clock),
        ("GET /v1/updates?since=nonsense", &read, b"", Code::Request),
        ("POST /v1/reports", &report, b"nonsense", Code::Body),
        ("POST /v1/reports", &report, &newer, Code::BodyVersion),
        ("POST /v1/reports", &report, &long, Code::BodyTooLong),
        ("POST /v1/reports", &report, &batch(4), Code::BatchNumber),
        ("GET /v1/snapshot?id=7", &read, b"", Code::SnapshotGone),
    ] {
        let expected = (expected.status().as_u16(), expected.to_string());
        assert_eq!(answer_to(line, fields, body), expected, "{line}");
    }
    // A higher version than the server itself counted.
    let status = ask(server.port, &format!("GET /v1/status HTTP/1.1\r\n{read}"), b"");
    let origin = status.split("\"origin\":\"").nth(1).unwrap().split('"').next().unwrap();
    let ahead = format!("GET /v1/updates?since={origin}:99:{}", "0".repeat(32));
    assert_eq!(answer_to(&ahead, &read, b""), (409, "other-history".to_owned()));
    for _ in 0..10 {
        answer_to("GET /v1/status", &by("guess"), b"");
    }
    assert_eq!(answer_to("GET /v1/status", &by("guess"), b""), (429, "token-blocked".to_owned()));
    assert_eq!(answer_to("GET /v1/status", &report, b""), (200, String::new()));
}

/// A client acts by the code, whatever the text says; by the status if there is no code; and not at all by an unknown code of a newer
/// server.
#[tokio::test]
async fn a_client_goes_by_codes() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    for (status, fields, text, expected) in [
        ("409 Conflict", "Bulkmark-Error: batch-number\r\n", "something", Some(Code::BatchNumber)),
        ("409 Conflict", "Bulkmark-Error: clock\r\n", "batch 1 came after batch 2", Some(Code::Clock)),
        ("409 Conflict", "", "batch 1 came after batch 2 of the same spool", None),
        ("400 Bad Request", "", "a proxy does not like it", None),
        ("410 Gone", "", "", Some(Code::UpdatesGone)),
        ("413 Payload Too Large", "", "", Some(Code::BodyTooLong)),
        ("413 Payload Too Large", "Bulkmark-Error: of-tomorrow\r\n", "", None),
    ] {
        let stand_in = StandIn::new(0, move |_| Some(answer(status, fields, text.as_bytes())));
        let url = format!("http://127.0.0.1:{}", stand_in.port);
        let upstream =
            Upstream { url: url.clone(), token_file: None, ca_file: None, plain_http_anywhere: false };
        let client = Remote::new(&upstream, None, Arc::new(Link::new(&url))).unwrap();
        let refused = client.status().await.unwrap_err();
        assert_eq!(refused.code(), expected, "{status}, {fields}");
        let colon = if text.is_empty() { "" } else { ": " };
        assert_eq!(refused.to_string(), format!("{status}{colon}{text}"));
    }
}
