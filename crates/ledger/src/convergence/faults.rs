// SPDX-License-Identifier: GPL-3.0-or-later
//! Single schedules for earlier faults.

use super::node::{DAY, NOW, Node};
use super::world::signature;
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::vector::{MAX_ORIGINS, Mark, Origin, Vector};
use bulkmark_counts::settings::{Federation, Role, Settings};
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::receipts::{MAX_SPOOLS, Reporter};
use bulkmark_counts::state::report::Report;
use bulkmark_counts::state::server::NotCounted;
use std::num::NonZeroU32;

fn settings() -> Settings {
    Settings { capacity: NonZeroU32::new(2000).unwrap(), ..Settings::default() }
}

fn node(role: Role, number: u64) -> Node {
    Node::new(format!("{role} {number}"), role, settings(), number)
}

/// Makes a server count a signature and publish it.
fn count(server: &mut Node, number: u64, reported: usize) {
    count_at(server, number, reported, NOW);
}

fn count_at(server: &mut Node, number: u64, reported: usize, now: u64) {
    let reporter = Reporter { client: "a".to_owned(), spool: 1 };
    let taken = server.state().server().unwrap();
    taken.take_batch(reporter, number, &[(signature(reported), 1)], None, now, Origin(0)).unwrap();
    server.now = now;
    server.checkpoint(&Expired::default());
}

fn pull(from: &Node, to: &mut Node) {
    for bytes in from.updates(&to.view().vector(), usize::MAX).unwrap() {
        to.apply(&bytes).unwrap();
    }
    to.commit();
}

/// A milter takes the snapshots of two servers in turn that lack each other's news: it loses nothing that it knew.
#[test]
fn snapshots_in_turn_are_no_step_back() {
    let (mut one, mut two) = (node(Role::Server, 1), node(Role::Server, 2));
    count(&mut one, 1, 0);
    count(&mut two, 1, 1);
    pull(&two, &mut one);
    pull(&one, &mut two);
    count(&mut one, 2, 2);
    count(&mut two, 2, 3);
    let mut milter = node(Role::Cache, 3);
    let snapshot = |server: &Node| server.snapshot(&Vector::new());
    milter.adopt(snapshot(&one), false).unwrap();
    pull(&two, &mut milter);
    let counts = |milter: &Node| [0, 1, 2, 3].map(|n| milter.view().count(signature(n), NOW));
    assert_eq!(counts(&milter), [1; 4]);
    for server in [&one, &two] {
        let refused = milter.adopt(snapshot(server), false);
        assert!(matches!(refused, Err(Refusal::Behind { have: 2, version: 1, .. })), "{refused:?}");
        assert_eq!(counts(&milter), [1; 4]);
    }
    // A snapshot with everything is adopted, also after a restart.
    pull(&two, &mut one);
    one.checkpoint(&Expired::default());
    milter.adopt(snapshot(&one), false).unwrap();
    milter.commit();
    milter.restart(None);
    assert_eq!(counts(&milter), [1; 4]);
}

/// Updates are replayed in the order in which they came. The clocks of two servers are ahead: the one with the smaller name sent a fifth
/// future window, for which there was a place when the first of the other one's four had begun.
#[test]
fn updates_are_replayed_as_they_came() {
    let (mut later, mut first) = (node(Role::Server, 1), node(Role::Server, 2));
    let mut milter = node(Role::Cache, 3);
    for (day, n) in (1..).zip([0, 1, 2, 4]) {
        count_at(&mut first, day, n, NOW + day * DAY);
    }
    count_at(&mut later, 1, 5, NOW + 5 * DAY);
    pull(&first, &mut milter);
    milter.now += DAY;
    pull(&later, &mut milter);
    milter.restart(None);
    assert_eq!([0, 1, 2, 4, 5].map(|n| milter.view().count(signature(n), NOW + 5 * DAY)), [1; 5]);
}

/// Counts of unknown origins are added up: a milter that merged ledgers has counts without an origin, and a server that lost its disk has
/// a new one.
#[test]
fn a_snapshot_of_unknown_origins_is_added() {
    let (mut one, mut two, mut milter) = (node(Role::Server, 1), node(Role::Server, 2), node(Role::Cache, 3));
    count(&mut one, 1, 0);
    count(&mut two, 1, 0);
    pull(&one, &mut milter);
    milter.checkpoint(&Expired::default());
    milter.adopt(two.snapshot(&Vector::new()), false).unwrap();
    milter.commit();
    milter.restart(None);
    assert_eq!(milter.view().count(signature(0), NOW), 2);
    assert!(milter.view().vector().covers(&one.view().vector()));
}

/// A server that was restored from an old copy knows less about itself. Its milters accept that, or they would wait for ever.
#[test]
fn a_milter_follows_a_restored_server() {
    let (mut server, mut milter) = (node(Role::Server, 1), node(Role::Cache, 3));
    count(&mut server, 1, 0);
    let copy = server.copy();
    count(&mut server, 2, 1);
    pull(&server, &mut milter);
    server.restart(Some(&copy));
    let refusal = server.updates(&milter.view().vector(), usize::MAX);
    assert!(matches!(refusal, Err(Refusal::Fork { .. })), "{refusal:?}");
    milter.adopt(server.snapshot(&Vector::new()), false).unwrap_err();
    milter.adopt(server.snapshot(&Vector::new()), true).unwrap();
    count(&mut server, 2, 2);
    pull(&server, &mut milter);
    assert_eq!([0, 1, 2].map(|n| milter.view().count(signature(n), NOW)), [1, 0, 1]);
}

/// A milter has the receipt of a batch but not the update, and sees that its server forked: it stops waiting for that update, though the
/// server's next one has the same version.
#[test]
fn a_fork_forgets_a_batch_that_is_expected() {
    let (mut server, mut milter) = (node(Role::Server, 1), node(Role::Cache, 3));
    count(&mut server, 1, 0);
    let copy = server.copy();
    count(&mut server, 2, 1);
    pull(&server, &mut milter);
    send(&mut milter, &mut server, 2);
    server.restart(Some(&copy));
    count(&mut server, 2, 3);
    milter.adopt(server.snapshot(&Vector::new()), true).unwrap();
    milter.commit();
    milter.restart(None);
    assert_eq!(milter.view().spool().unwrap().held(), 0);
    assert_eq!([0, 1, 2, 3].map(|n| milter.view().count(signature(n), NOW)), [1, 0, 0, 1]);
}

/// Sends a milter's report of a signature to a server, and returns the receipt to the milter.
fn send(milter: &mut Node, server: &mut Node, reported: usize) {
    let report = Report { signatures: vec![signature(reported)], times: 1, now: NOW, ..Report::default() };
    milter.state().report(&report).unwrap();
    let (spool, batch) = milter.state().cache().unwrap().next_batch("one", true).unwrap();
    let reporter = Reporter { client: "milter".to_owned(), spool };
    let taken = server.state().server().unwrap();
    let receipt = taken.take_batch(reporter, batch.number, &batch.reports, None, NOW, Origin(0)).unwrap();
    server.state().cut(NOW);
    server.commit();
    milter.state().cache().unwrap().acknowledge("one", batch.number, receipt);
    milter.commit();
}

/// A milter gets three receipts and none of their updates, and the server is restored from a copy with the first batch. The milter must
/// not wait for the version of the last one, which may never come: all later batches would stay in the spool, too.
#[test]
fn a_forgotten_batch_leaves_the_spool() {
    let (mut server, mut milter) = (node(Role::Server, 1), node(Role::Cache, 3));
    send(&mut milter, &mut server, 0);
    let copy = server.copy();
    let expected = |milter: &Node| milter.view().spool().unwrap().expected("one");
    send(&mut milter, &mut server, 1);
    send(&mut milter, &mut server, 2);
    assert_eq!((expected(&milter), milter.view().spool().unwrap().expected("two")), (vec![1, 2, 3], vec![]));
    server.restart(Some(&copy));
    let counts = |milter: &Node| [0, 1, 2, 3].map(|n| milter.view().count(signature(n), NOW));
    let see = |milter: &mut Node, asked: &[u64]| {
        milter.state().cache().unwrap().drop_forgotten(asked, &server.view().vector());
        milter.commit();
        milter.restart(None);
        (expected(milter), counts(milter))
    };
    assert_eq!(
        see(&mut milter, &[1, 2]),
        (vec![1, 2, 3], [1, 1, 1, 0]),
        "the last one may be newer than the vector"
    );
    // The second one might be in the next update.
    assert_eq!(see(&mut milter, &[1, 2, 3]), (vec![1, 2], [1, 1, 0, 0]));
    pull(&server, &mut milter);
    assert_eq!((expected(&milter), counts(&milter)), (vec![2], [1, 1, 0, 0]));
    count(&mut server, 2, 3);
    pull(&server, &mut milter);
    assert_eq!((milter.view().spool().unwrap().held(), counts(&milter)), (0, [1, 0, 0, 1]));
}

/// A server with a report in no update is killed. While it waits for its peer, which may know more, it receives others' reports, checks
/// for updates to publish, and is killed again. The report is published all the same.
#[test]
fn reports_held_back_outlive_another_kill() {
    let federation = Federation { peers: vec!["two".to_owned()], ..Federation::default() };
    let mut one = Node::new("one".to_owned(), Role::Server, Settings { federation, ..settings() }, 1);
    let mut two = node(Role::Server, 2);
    count(&mut one, 1, 0);
    let reporter = Reporter { client: "a".to_owned(), spool: 1 };
    let taken = one.state().server().unwrap();
    taken.take_batch(reporter, 2, &[(signature(1), 1)], None, NOW, Origin(0)).unwrap();
    one.commit();
    one.restart(None);
    one.state().cut(NOW);
    count(&mut two, 1, 2);
    pull(&two, &mut one);
    one.restart(None);
    one.receive_vector("two", &two.view().vector());
    one.state().cut(NOW);
    one.commit();
    pull(&one, &mut two);
    assert_eq!([0, 1, 2].map(|n| two.counted(signature(n))), [1; 3]);
}

/// A client has as many spools as are remembered: a new one is refused while they may send their last batches again, also after a restart.
/// One that is forgotten and reports again before the commit is remembered; one that is forgotten last is not.
#[test]
fn the_last_change_of_a_reporter_is_on_disk() {
    let mut server = node(Role::Server, 1);
    let reporter = |spool| Reporter { client: "a".to_owned(), spool };
    let take = |server: &mut Node, spool, number, now| {
        let taken = server.state().server().unwrap();
        let taken = taken.take_batch(reporter(spool), number, &[(signature(0), 1)], None, now, Origin(0));
        taken.map(drop).map_err(|refusal| refusal.to_string())
    };
    let spools = MAX_SPOOLS as u64;
    assert!((0..spools).all(|spool| take(&mut server, spool, 1, NOW).is_ok()));
    for _ in 0..2 {
        let why = "1000 milters, or new ledgers of milters, reported as a within 35 days, so no other one can; give some of the milters another \
                   name (bulkmark client add)";
        assert_eq!(take(&mut server, spools, 1, NOW + 35 * DAY), Err(why.to_owned()));
        server.commit();
        server.restart(None);
    }
    assert_eq!(server.view().count(signature(0), NOW), u32::try_from(spools).unwrap());
    let first = server.state().server().unwrap().receipts.iter().map(|(of, _)| of.spool).min().unwrap();
    let now = NOW + 36 * DAY;
    take(&mut server, spools, 1, now).unwrap();
    let known = |server: &mut Node, spool| {
        let found = server.state().server().unwrap().receipts.find(&reporter(spool), 1);
        found.is_ok_and(|found| found.is_some())
    };
    let gone = (first..spools).find(|&spool| !known(&mut server, spool)).unwrap();
    take(&mut server, gone, 1, now).unwrap();
    server.commit();
    server.restart(None);
    assert!(known(&mut server, gone) && known(&mut server, spools));
    assert_eq!(server.state().server().unwrap().receipts.iter().count(), MAX_SPOOLS);
}

/// A server that knows as many others' origins as it may counts under one of its own, too: it starts again, and others read its vector.
#[test]
fn a_server_that_knows_all_origins_starts_again() {
    let mut server = node(Role::Server, 1);
    let mark = Mark { version: 1, ..Mark::default() };
    for n in 0..MAX_ORIGINS as u64 {
        server.state().counts_mut().merged.vector_mut().set(Origin(n << 33), mark);
    }
    count(&mut server, 1, 0);
    server.restart(None);
    assert_eq!(server.view().vector().len(), MAX_ORIGINS + 1);
    let vector = server.view().vector();
    assert_eq!(vector.to_string().parse(), Ok(vector));
    assert_eq!(server.snapshot(&Vector::new()).vector().len(), MAX_ORIGINS + 1);
}

/// Returns a server whose windows are made for so many signatures.
fn server_for(capacity: u32) -> Node {
    let settings = Settings { capacity: NonZeroU32::new(capacity).unwrap(), ..Settings::default() };
    Node::new(format!("server for {capacity}"), Role::Server, settings, capacity.into())
}

/// Filters of several sizes in one window are counted together, also after a restart; and their number is limited.
#[test]
fn sizes_stand_beside_one_another() {
    let mut milter = node(Role::Cache, 1);
    let mut servers = [1000, 2000, 3000, 4000, 5000].map(server_for);
    for (server, n) in servers.iter_mut().zip(1..) {
        count(server, 1, 0);
        let update = &server.updates(&milter.view().vector(), usize::MAX).unwrap()[0];
        let applied = milter.apply(update);
        milter.commit();
        assert_eq!(milter.view().count(signature(0), NOW), n.min(4));
        if n == 5 {
            let refusal = applied.unwrap_err().to_string();
            assert!(
                refusal.contains("the number of capacities in a window is 5, expected 0 to 4"),
                "{refusal}"
            );
        }
    }
    milter.checkpoint(&Expired::default());
    milter.restart(None);
    assert_eq!(milter.view().count(signature(0), NOW), 4);
}

/// A server publishes reports that are only in its journal yet, is killed, and has another capacity after the restart: its window keeps
/// the size that others know.
#[test]
fn a_window_keeps_its_size_over_a_crash() {
    let (mut server, mut milter) = (server_for(1000), node(Role::Cache, 1));
    let reporter = |n| Reporter { client: "a".to_owned(), spool: n };
    for n in 0..3 {
        let taken = server.state().server().unwrap();
        taken.take_batch(reporter(n), 1, &[(signature(0), 1)], None, NOW, Origin(0)).unwrap();
        server.state().cut(NOW);
        server.commit();
        pull(&server, &mut milter);
        server.set_capacity(5000);
        server.restart(None);
    }
    assert_eq!(milter.view().count(signature(0), NOW), 3);
    assert!(milter.cells() == server.cells());
}

/// A server has two peers, and is restored from a copy with reports in no update. One peer knows the update that came to include them,
/// the other does not: they are counted once, and so are reports from before and after the server learns of that update.
#[test]
fn reports_held_back_count_once() {
    let name = |n: u64| format!("{} {n}", Role::Server);
    let federation = Federation { peers: vec![name(2), name(3)], ..Federation::default() };
    let of_peers = Settings { federation, ..settings() };
    let mut server = Node::new(name(1), Role::Server, of_peers, 1);
    let (mut knows, mut does_not) = (node(Role::Server, 2), node(Role::Server, 3));
    let report = |server: &mut Node, number, reported| {
        let reporter = Reporter { client: "a".to_owned(), spool: 1 };
        let taken = server.state().server().unwrap();
        let receipt = taken.take_batch(reporter, number, &[(signature(reported), 1)], None, NOW, Origin(9));
        server.commit();
        receipt
    };
    report(&mut server, 1, 0).unwrap();
    server.state().cut(NOW);
    report(&mut server, 2, 1).unwrap();
    let (copy, restarted) = (server.copy(), server.copy());
    // The update has more than the copy had.
    report(&mut server, 3, 3).unwrap();
    server.state().cut(NOW);
    server.commit();
    pull(&server, &mut knows);

    server.restart(Some(&copy));
    assert_eq!(report(&mut server, 3, 2), Err(NotCounted::Waits), "no peer sent its vector");
    assert_eq!(server.view().count(signature(1), NOW), 1, "it counts here");
    server.stop_waiting();
    report(&mut server, 3, 2).unwrap();
    server.receive_vector("server 2", &knows.view().vector());
    server.receive_vector("server 3", &does_not.view().vector());
    server.checkpoint(&Expired::default());
    pull(&knows, &mut server);
    pull(&server, &mut knows);
    pull(&server, &mut does_not);
    for node in [&server, &knows, &does_not] {
        assert_eq!([0, 1, 2, 3].map(|n| node.view().count(signature(n), NOW)), [1; 4], "{}", node.name);
        assert!(node.cells() == server.cells(), "{}", node.name);
    }

    // If no peer knows it, it is published as the update that its receipt names.
    server.restart(Some(&restarted));
    let mut fresh = node(Role::Server, 4);
    server.stop_waiting();
    server.receive_vector("server 2", &Vector::new());
    assert!(
        server.updates(&Vector::new(), usize::MAX).unwrap().len() == 1,
        "not before all have sent their vectors"
    );
    server.receive_vector("server 3", &Vector::new());
    server.restart(None);
    pull(&server, &mut fresh);
    assert_eq!([0, 1, 2].map(|n| fresh.view().count(signature(n), NOW)), [1, 1, 0]);
    assert!(fresh.view().vector().iter().any(|(_, mark)| mark.version == 2));
}
