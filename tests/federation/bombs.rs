// SPDX-License-Identifier: GPL-3.0-or-later
//! Few bytes that claim large contents: neither a server nor a client that sends them is trusted.

use bulkmark_counts::history::window::Window;
use bulkmark_counts::{Origin, Row, Vector};
use bulkmark_filter::{Counting, Delta, Refined, Scaling};
use bulkmark_sync::wire::{SNAPSHOT, SnapshotHead, UPDATES, frame};
use bulkmark_testing::http::{answer as answered, connect};
use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::process::kilobytes;
use bulkmark_testing::server::{Server, milter, parameters};
use bulkmark_testing::standin::{StandIn, answer};
use std::io::Write;

const DAY: u64 = 86_400;

/// The most memory that a daemon with default settings needs, resident and reserved, in kilobytes.
const MOST_RESIDENT: u64 = 150_000;
const MOST_RESERVED: u64 = 3_000_000;

/// The place of a slice: a current window, its capacity and the slice's number.
fn place(capacity: u32, slice: u32) -> Vec<u8> {
    let now = bulkmark_ledger::now();
    [&(now - now % DAY).to_le_bytes()[..], &DAY.to_le_bytes(), &capacity.to_le_bytes(), &slice.to_le_bytes()]
        .concat()
}

/// A snapshot whose head announces `rows` rows and which begins with `contents`.
fn snapshot(rows: u64, contents: &[Vec<u8>]) -> Vec<u8> {
    let head = SnapshotHead { id: 1, rows, vector: Vector::default() };
    let frames = contents.iter().flat_map(|row| frame(row));
    [&SNAPSHOT[..], &frame(&head.encode())].concat().into_iter().chain(frames).collect()
}

/// A row with an empty chunk of cells.
fn row(capacity: u32, slice: u32) -> Vec<u8> {
    [place(capacity, slice), 0u32.to_le_bytes().to_vec(), vec![0; 640 * 64]].concat()
}

/// A stream with one update of one part, from a new origin.
fn updates(capacity: u32, slice: u32, delta: &[u8]) -> Vec<u8> {
    let length = u32::try_from(delta.len()).unwrap().to_le_bytes();
    let head = [7u64.to_le_bytes(), 1u64.to_le_bytes(), [0; 8], [0; 8]].concat();
    let update = [&head, &place(capacity, slice)[..], &length, delta].concat();
    [&UPDATES[..], &frame(&update)].concat()
}

/// A hostile server for a milter and for a server that is its peer: both log the error, keep their memory small, and go on. Once an honest
/// server is back, all count the same.
fn bomb(told: &str, snapshot: Vec<u8>, updates: Vec<u8>) {
    let updates_are_empty = updates == UPDATES;
    let server = Server::new("");
    let mut other = Server::new("");
    let entries = [server.entry("a", "report"), server.entry("other", "peer"), other.entry("b", "report")];
    other.extra = format!("peer = [{}]", entries[1]);
    let fields = format!("bulkmark-parameters: {}\r\n", parameters());
    let stand_in = StandIn::new(server.port, move |head| {
        Some(answer("200 OK", &fields, if head.contains("/v1/snapshot") { &snapshot } else { &updates }))
    });
    let (a, b) = (milter(&entries[..1]), milter(&entries[2..]));
    let (at_a, at_b, other_runs) = (a.start(), b.start(), other.start());
    // A server takes updates from its peers, but no snapshot.
    let readers = if updates_are_empty { &[&at_a][..] } else { &[&at_a, &other_runs][..] };
    for daemon in readers {
        let line = daemon.log.wait_for(0, told);
        assert!(line.contains(&server.url()), "{line}");
        assert!(kilobytes(daemon.pid(), "VmHWM") < MOST_RESIDENT, "{} kB", kilobytes(daemon.pid(), "VmHWM"));
        assert!(
            kilobytes(daemon.pid(), "VmPeak") < MOST_RESERVED,
            "{} kB",
            kilobytes(daemon.pid(), "VmPeak")
        );
    }
    send(&at_a, &letter(1), 3);
    send(&at_b, &letter(1), 4);
    assert_eq!(count(&a, &letter(1)), 3);
    drop(stand_in);
    let _server_runs = server.start();
    wait_for(&b, &letter(1), 7);
    wait_for(&a, &letter(1), 3);
}

#[test]
fn a_row_of_a_filter_for_four_thousand_million() {
    let told = "it sent a snapshot row that is impossible: capacity is 4294967295, expected 1 to 16777216";
    bomb(told, snapshot(1 << 60, &[row(u32::MAX, 0)]), UPDATES.to_vec());
}

#[test]
fn a_row_of_the_last_slice() {
    bomb(
        "a snapshot row that is impossible: slice is 31, expected 0 to 0",
        snapshot(1 << 60, &[row(1_000_000, 31)]),
        UPDATES.to_vec(),
    );
}

/// Each slice is twice as large as the one before it; all are empty.
#[test]
fn rows_of_empty_slices() {
    let rows: Vec<_> = (0..32).map(|slice| row(1_000_000, slice)).collect();
    bomb(
        "a snapshot row that is impossible: slice is 4, expected 0 to 3",
        snapshot(32, &rows),
        UPDATES.to_vec(),
    );
}

/// The same row, as often as the head announces.
#[test]
fn a_row_that_comes_again_and_again() {
    let rows = vec![row(1_000_000, 0); 50];
    bomb(
        "a snapshot row that is impossible: the number of rows of one place is 3, expected 1 to 2",
        snapshot(1 << 60, &rows),
        UPDATES.to_vec(),
    );
}

/// A client's counts with parts that no filter of that size has.
#[test]
fn parts_of_a_layer_without_end() {
    let (_, blocks) = Scaling::<Refined>::shape(1_000_000, 0);
    let bytes = Delta::from_changes(blocks, [(7, 1)]).unwrap().encode();
    let now = bulkmark_ledger::now();
    let window = Window { start: now - now % DAY, length: DAY };
    let part = |chunk| {
        let (client, bytes) = (Some(Origin(7)), bytes.clone());
        Row { window, capacity: 1_000_000, slice: 0, chunk, client, bytes }.encode()
    };
    let rows: Vec<_> = (0..5000).map(part).collect();
    bomb("a snapshot row that is impossible: part is ", snapshot(1 << 60, &rows), UPDATES.to_vec());
}

#[test]
fn a_frame_of_four_gigabytes() {
    let stream = [&SNAPSHOT[..], &u32::MAX.to_le_bytes(), b"and no more"].concat();
    bomb("a frame that is too long", stream, UPDATES.to_vec());
}

/// A valid delta that decodes to six hundred times its size.
#[test]
fn an_update_of_millions_of_cells_that_grew_alike() {
    let (_, blocks) = Scaling::<Refined>::shape(900_000, 0);
    let mut filter = Refined::new(blocks).unwrap();
    assert!(filter.restore(0..blocks, &vec![0x11; blocks * 64]));
    let delta = Delta::between(&Refined::new(blocks).unwrap(), &filter).unwrap();
    let bytes = delta.encode();
    assert!(bytes.len() < 20_000 && delta.len() > 7_000_000);
    let told = "not a coded delta, at byte 7: its lengths do not fit one another or the filter";
    bomb(told, snapshot(0, &[]), updates(900_000, 0, &bytes));
}

/// A small delta for a slice whose preceding slices do not exist.
#[test]
fn an_update_of_a_slice_without_those_before() {
    let (_, blocks) = Scaling::<Refined>::shape(1_000_000, 2);
    let mut filter = Refined::new(blocks).unwrap();
    filter.add(7, 1);
    let delta = Delta::between(&Refined::new(blocks).unwrap(), &filter).unwrap();
    bomb("slice is 2, expected 0 to 0", snapshot(0, &[]), updates(1_000_000, 2, &delta.encode()));
}

/// A body that announces four gigabytes is refused before it arrives.
#[test]
fn a_batch_of_four_gigabytes() {
    let server = Server::new("");
    let token = server.client(&["add", "--own", "mx"]).trim().to_owned();
    let daemon = server.start();
    let stream = connect(server.port);
    write!(
        &stream,
        "POST /v1/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: 4294967296\r\n\r\nBMRP\x01"
    )
    .unwrap();
    let answer = answered(&stream);
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("expected at most 172057 bytes"),
        "{answer}"
    );
    daemon.log.wait_for(0, "client mx is refused: expected at most 172057 bytes");
    assert!(kilobytes(daemon.pid(), "VmPeak") < MOST_RESERVED);
}
