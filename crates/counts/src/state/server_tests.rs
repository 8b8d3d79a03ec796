// SPDX-License-Identifier: GPL-3.0-or-later
//! What waits at a server, and which histories it passes over.

use crate::history::past::Past;
use crate::history::vector::{Chain, Mark, Origin};
use crate::settings::Settings;
use crate::state::anomaly::tests::element;
use crate::state::limited::Limits;
use crate::state::receipts::Reporter;
use crate::state::spool::MAX_BATCH;
use crate::state::user_reports_tests::server;
use bulkmark_types::Signature;

const NOW: u64 = 1_800_000_000;

/// However much partners report between two updates, cells of a few batches wait at most; and an update has more than one batch.
#[test]
fn what_partners_reported_waits_in_bounded_memory() {
    let mut server = server(&Settings::default());
    let limits = Limits { influence: 5, quota: 1_000_000 };
    let (mut most, mut number) = (0, 0);
    for batch in 0..12_u64 {
        number += 1;
        let first = batch * MAX_BATCH as u64;
        let reports: Vec<_> = (first..first + MAX_BATCH as u64)
            .map(|n| (Signature::from_bytes(element(n).to_le_bytes()), 1))
            .collect();
        let reporter = Reporter { client: format!("partner{}", batch % 3), spool: 1 };
        server.take_batch(reporter, number, &reports, Some(limits), NOW, Origin(10 + batch)).unwrap();
        most = most.max(server.limited.grown_cells());
    }
    let updates = server.counts.changes.updates.len();
    assert!(most < 300_000, "{most} cells waited");
    assert!((3..=9).contains(&updates), "{updates} updates of three partners");
}

/// A history that counts nowhere any more is passed over, also where this server's clock is ten minutes behind; one that still counts is not.
#[test]
fn a_history_is_passed_over_once_it_is_over() {
    let mut server = server(&Settings::default());
    let past = |origin, over_at| {
        let mark = Mark { version: 9, chain: Chain::default() };
        Past { origin: Origin(origin), mark, over_at }
    };
    server.skip_past(&[past(21, NOW - 1), past(22, NOW + 600), past(23, NOW + 601)], NOW);
    let known = |origin| server.counts.merged.vector().get(Origin(origin)).version;
    assert_eq!([21, 22, 23].map(known), [9, 9, 0]);
}
