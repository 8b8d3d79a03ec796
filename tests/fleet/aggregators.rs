// SPDX-License-Identifier: GPL-3.0-or-later
//! An aggregator that is cut off or killed at the worst moment, on both engines: after the log took its step but before the answer arrived,
//! and during a snapshot.

use bulkmark_counts::SpoolBatch;
use bulkmark_sync::Link;
use bulkmark_sync::log::nats::Nats;
use bulkmark_sync::log::postgres::Postgres;
use bulkmark_sync::log::{BatchId, Log, LogError};
use bulkmark_testing::fleet::{Engine, Fleet};
use bulkmark_testing::gate::Gate;
use bulkmark_testing::holders::{body_of, counts};
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::members::Members;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::server::Server;
use bulkmark_testing::{Daemon, status, wait_until};
use bulkmark_types::{FederationKey, Signature};
use serde_json::Value;
use std::sync::Arc;

on_both_logs! {
    a_step_that_was_not_acknowledged_counts_once,
    an_aggregator_dies_while_it_puts_a_snapshot,
}

/// The first bytes of every step.
const STEP: &[u8] = b"BMFS";

/// An aggregator's count of the letter.
fn counted(server: &Server) -> u32 {
    counts(&server.site.path("server.sock"), &[body_of(1)]).unwrap()[0]
}

/// The log takes a step and everybody else gets it, but its author gets no answer: first its connections break, then it is killed.
fn a_step_that_was_not_acknowledged_counts_once(fleet: &Fleet) {
    let mut server = fleet.aggregator("agg1");
    let gates = fleet.gates(&mut server);
    let mut members = Members::of(vec![server], vec![fleet.milter("mx1"), fleet.milter("mx2")]);
    let send = |members: &Members, times: usize| {
        let mut mail = Mail::raw(&letter(1));
        mail.recipients = (0..times).map(|n| format!("reader{n}@example.net")).collect();
        session(members.milter(0)).message(&mail);
    };
    for (round, is_killed) in (0..).zip([false, true]) {
        let before = round * 8;
        send(&members, 1);
        members.wait_for(1, before + 1);
        members.settle();
        gates.iter().for_each(|gate| gate.keep_answers_to(STEP));
        send(&members, 4);
        members.wait_for(1, before + 5);
        assert_eq!(u64::from(counted(&members.servers[0])), before + 1, "it heard of its step");
        if is_killed {
            members.kill_aggregators();
        }
        gates.iter().for_each(Gate::let_answers_pass);
        if is_killed {
            members.start_aggregators();
        }
        send(&members, 3);
        members.wait_for(1, before + 8);
        members.settle();
        wait_until("the aggregator", || {
            let now = counted(&members.servers[0]);
            if u64::from(now) == before + 8 { Ok(()) } else { Err(format!("{now}")) }
        });
    }
}

/// Windows are made for this many signatures, and several full batches are reported: a snapshot has some megabytes.
const CAPACITY: &str = "capacity = 1000000";
const BATCHES: u64 = 25;

/// Appends reports of a milter that does not run: the letter three times, and many signatures.
async fn report(log: &impl Log) {
    for number in 1..=BATCHES {
        let signature = |n: u64| {
            // Spread over all cells.
            let n = (number << 20 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Signature::from_bytes(
                [n.to_be_bytes(), n.wrapping_mul(n | 1).to_be_bytes()].concat().try_into().unwrap(),
            )
        };
        let reports =
            (0..8000).map(|n| (signature(n), 1)).chain([(body_of(1), 3)].into_iter().filter(|_| number == 1));
        let carried = SpoolBatch {
            key_id: FederationKey::public().id(),
            spool: 7,
            number,
            lowest: 1,
            bulk_from: 0,
            reports: reports.collect(),
        };
        let id = BatchId { spool: 7, number, attempt: 0 };
        while let Err(e) = log.append(id, carried.encode()).await {
            println!("{e}");
        }
    }
}

/// Connects to the log as one of its members.
pub(crate) fn with_log<T>(
    fleet: &Fleet,
    name: &str,
    nats: impl AsyncFn(Nats) -> T,
    postgres: impl AsyncFn(Postgres) -> T,
) -> T {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (settings, link) = (fleet.settings(name), Arc::new(Link::new("the test")));
    runtime.block_on(async {
        match fleet.log {
            Engine::Postgres(_) => postgres(Postgres::new(&settings, link).unwrap()).await,
            Engine::Nats(..) => nats(Nats::new(&settings, link).await.unwrap()).await,
        }
    })
}

/// The number of snapshot parts in the log.
fn parts(fleet: &Fleet) -> u64 {
    match fleet.log {
        Engine::Postgres(_) => fleet.sql("select count(*) from bulkmark.parts").unwrap().parse().unwrap(),
        Engine::Nats(..) => {
            let info = fleet.jetstream("STREAM.INFO.BULKMARK_SNAPSHOT", &Value::Null);
            info["state"]["messages"].as_u64().unwrap()
        }
    }
}

fn was_put(daemon: &Daemon) -> bool {
    daemon.log.lines().iter().any(|line| line.contains("was put into the log"))
}

/// Half a snapshot counts as none: a newcomer begins without it, and the next aggregator writes a complete one.
fn an_aggregator_dies_while_it_puts_a_snapshot(fleet: &Fleet) {
    with_log(fleet, "mx8", async |log| report(&log).await, async |log| report(&log).await);
    let mut server = fleet.aggregator("agg1");
    CAPACITY.clone_into(&mut server.ledger);
    let gates = fleet.gates(&mut server);
    gates.iter().for_each(|gate| gate.slow_down(true));
    let aggregator = server.start();
    wait_until("the first part", || if parts(fleet) > 0 { Ok(()) } else { Err("there is none".to_owned()) });
    assert!(!was_put(&aggregator), "it was put too soon to be killed meanwhile");
    aggregator.kill();
    gates.iter().for_each(|gate| gate.slow_down(false));
    assert!(parts(fleet) > 0, "what it left is there");
    let snapshot = with_log(
        fleet,
        "mx8",
        async |log| log.snapshot().await.map(drop),
        async |log| log.snapshot().await.map(drop),
    );
    assert!(matches!(snapshot, Err(LogError::Gone(_))), "{snapshot:?}");

    let milter = |name: &str| {
        let mut site = fleet.milter(name);
        site.extra += &format!("[ledger]\n{CAPACITY}\n");
        site
    };
    let soon = milter("mx1");
    let at_soon = soon.start();
    wait_for(&soon, &letter(1), 3);
    assert_eq!(status(&soon)["fleet"]["snapshots"], 0);
    let aggregator = server.start();
    // The author of the last step writes the snapshot.
    send(&at_soon, &letter(1), 2);
    wait_until("a snapshot", || if was_put(&aggregator) { Ok(()) } else { Err("none was put".to_owned()) });
    let late = milter("mx2");
    let _at_late = late.start();
    wait_for(&late, &letter(1), 5);
    wait_until("a milter that took the snapshot", || {
        let status = status(&late);
        if status["fleet"]["snapshots"] == 1 { Ok(()) } else { Err(status.to_string()) }
    });
}
