// SPDX-License-Identifier: GPL-3.0-or-later
//! What waits at a server, and which histories it passes over.

use crate::history::past::Past;
use crate::history::vector::{Chain, Mark, Origin};
use crate::settings::Settings;
use crate::state::anomaly::tests::element;
use crate::state::limited::Limits;
use crate::state::receipts::{MAX_SPOOLS, Reporter};
use crate::state::server::{NotCounted, Server};
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

/// A client with more milters than are remembered: a batch that is sent again counts once, however many others reported meanwhile. Spools
/// that can send nothing again make place for new ones.
#[test]
fn a_batch_of_many_milters_counts_once() {
    let mut server = server(&Settings::default());
    let signature = Signature::from_bytes([7; 16]);
    let mut take = |spool, now| {
        let reporter = Reporter { client: "mx".to_owned(), spool };
        server.take_batch(reporter, 1, &[(signature, 1)], None, now, Origin(0)).is_ok()
    };
    let spools = MAX_SPOOLS as u64;
    let taken = (0..=spools).filter(|&spool| take(spool, NOW)).count() as u64;
    let again = (0..spools).filter(|&spool| take(spool, NOW + 60)).count() as u64;
    let year = 366 * 86_400;
    assert!(take(spools, NOW + year) && take(0, NOW + year));
    assert_eq!(
        (taken, again, server.count(signature, NOW)),
        (spools, spools, u32::try_from(spools).unwrap())
    );
}

/// A partner that used up its places for spools gets all of them back when its reports are withdrawn; until then, a batch that comes again
/// counts nothing, since others may still have its first count, and an old copy of a milter is known as one.
#[test]
fn a_withdrawn_client_has_all_places_again() {
    let mut server = server(&Settings::default());
    let limits = Limits { influence: 5, quota: 1_000_000 };
    let signature = Signature::from_bytes([7; 16]);
    let take = |server: &mut Server, spool, number| {
        let reporter = Reporter { client: "isp".to_owned(), spool };
        server.take_batch(reporter, number, &[(signature, 1)], Some(limits), NOW, Origin(10 + spool))
    };
    let taken = |server: &mut Server, from| {
        (from..from + 1100).filter(|&spool| take(server, spool, 2).is_ok()).count()
    };
    assert_eq!(taken(&mut server, 0), MAX_SPOOLS);
    let first = take(&mut server, 0, 2);
    assert!(server.withdraw("isp", NOW));
    assert_eq!((take(&mut server, 0, 2), server.count(signature, NOW)), (first, 0));
    assert!(matches!(take(&mut server, 0, 1), Err(NotCounted::Backwards(_))));
    assert_eq!((taken(&mut server, 2000), server.count(signature, NOW)), (MAX_SPOOLS, 5));
}
