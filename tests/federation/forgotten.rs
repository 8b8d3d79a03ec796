// SPDX-License-Identifier: GPL-3.0-or-later
//! Reports that a server acknowledged and then lost when it was restored from an old copy.

use bulkmark_counts::{BulkMark, Mark, Origin, Receipt, Vector};
use bulkmark_sync::bulk_frame::{self, ListHead};
use bulkmark_sync::wire::{self, SnapshotHead, frame};
use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::server::{milter, parameters};
use bulkmark_testing::standin::{StandIn, answer, endless};
use bulkmark_testing::{Site, status, wait_until};
use serde_json::Value;

const ORIGIN: Origin = Origin(9);

/// A server whose receipts name a version far ahead of its own.
fn server(port: u16) -> StandIn {
    let fields = format!("Bulkmark-Parameters: {}\r\n", parameters());
    let (mut vector, mark) = (Vector::new(), BulkMark { list: 7, number: 1, hash: 3, bound: 2 });
    vector.set(ORIGIN, Mark { version: 2, ..Mark::default() });
    let nothing = SnapshotHead { id: 1, rows: 0, vector: Vector::new() };
    let list = bulk_frame::head(&ListHead { mark, rows: 0, versions: vec![(ORIGIN, 2)] });
    let snapshot = [&wire::SNAPSHOT[..], &frame(&nothing.encode())].concat();
    let updates = [&wire::UPDATES[..], &frame(&wire::encode_alive(&vector))].concat();
    let bulk = [&wire::BULK[..], &frame(&bulk_frame::alive(mark)), &frame(&list)].concat();
    let receipt = wire::encode_receipt(Receipt { origin: ORIGIN, version: 4 });
    StandIn::new(port, move |head| {
        let is = |way: &str| head.contains(&format!(" /v1/{way}"));
        match () {
            () if is("snapshot") => Some(answer("200 OK", &fields, &snapshot)),
            () if is("reports") => Some(answer("200 OK", &fields, &receipt)),
            () if is("updates") => Some(endless(&fields, &updates, &frame(b""))),
            () if is("bulk") => Some(endless(&fields, &bulk, &frame(b""))),
            () => None,
        }
    })
}

/// After a restart of the server such reports leave the spool, and so do those behind them.
fn they_leave(copy: &str) {
    let before = server(free_port());
    let mut site: Site = milter(&[format!("{{ url = \"http://127.0.0.1:{}\" }}", before.port)]);
    site.extra += &format!("copy = \"{copy}\"\n");
    let daemon = site.start();
    send(&daemon, &letter(21), 3);
    let wait_for = |what: &str, is_good: &dyn Fn(&Value) -> bool| {
        wait_until(what, || {
            let ledger = status(&site)["ledger"].take();
            if is_good(&ledger) { Ok(()) } else { Err(ledger.to_string()) }
        });
    };
    wait_for("receipts", &|ledger| {
        ledger["spool"].as_u64().is_some_and(|reports| reports > 0) && ledger["spool-oldest"].is_null()
    });
    let port = before.port;
    drop(before);
    let _after = server(port);
    wait_for("an empty spool", &|ledger| ledger["spool"] == 0);
}

#[test]
fn forgotten_reports_leave_the_spool() {
    they_leave("full");
}

#[test]
fn forgotten_reports_leave_the_spool_of_a_milter_that_holds_bulk() {
    they_leave("partial");
}
