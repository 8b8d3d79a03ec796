// SPDX-License-Identifier: GPL-3.0-or-later
//! The log's speed; not run with the other tests: `make bench-log`.

use super::cluster::Fleet;
use crate::conformance::batches::join_all;
use crate::conformance::{Engine, append, append_step, batch, batches_behind, insist, own, run, take};
use bulkmark_sync::log::{Log, Place};
use bulkmark_testing::process::{kilobytes, processor};
use std::time::{Duration, Instant};

/// The number of signatures in a full batch, and its bytes.
const SIGNATURES: u64 = 8192;
const BYTES: usize = 140_000;

/// The number of batches that each of two clients appends, and of those outstanding.
const ROUNDS: u64 = 40;
const OUTSTANDING: u64 = 8;

/// The number of clients that only follow, the duration, and the interval of steps meanwhile.
const FOLLOWERS: usize = 50;
const IDLE: Duration = Duration::from_secs(20);

/// Full batches of two clients through three nodes with `sync_interval: always`, while an aggregator reads them; then the cost of an idle
/// follower.
#[test]
#[ignore = "it measures"]
fn speed() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1", "mx2"])).await else { return };
        load(&fleet).await;
        latency(&fleet).await;
        idle(&fleet).await;
        for node in &fleet.cluster.nodes {
            println!("a node has {} MB", kilobytes(node.pid(), "VmRSS") >> 10);
        }
    });
}

/// Signatures a second in the first measurement; `None` without nats-server.
pub(crate) fn rate() -> Option<f64> {
    let mut rate = None;
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1", "mx2"])).await else { return };
        rate = Some(load(&fleet).await);
    });
    rate
}

async fn load(fleet: &Fleet) -> f64 {
    let clients = [fleet.client("mx1").await, fleet.client("mx2").await];
    let log = fleet.aggregator().await;
    append(&clients[0], batch(9, 9), b"warm").await;
    let count = 2 * ROUNDS * OUTSTANDING;
    let began = Instant::now();
    let write = async |client: usize| {
        for round in 0..ROUNDS {
            let numbers = round * OUTSTANDING..(round + 1) * OUTSTANDING;
            let appends = numbers.map(async |number| {
                append(&clients[client], batch(client as u64, number), &vec![number as u8; BYTES]).await
            });
            join_all(appends.collect()).await;
        }
        began.elapsed()
    };
    let (one, other, read) = tokio::join!(write(0), write(1), batches_behind(&log, Place(1), count as usize));
    assert_eq!(read.len() as u64, count);
    let all = began.elapsed().as_secs_f64();
    let appended = one.max(other).as_secs_f64();
    let rate = (count * SIGNATURES) as f64 / appended;
    println!(
        "{count} batches of {SIGNATURES} signatures, {BYTES} bytes: {appended:.2} s, {rate:.0} signatures/s"
    );
    println!("read by an aggregator after {all:.2} s");
    rate
}

async fn latency(fleet: &Fleet) {
    let (client, log) = (fleet.client("mx1").await, fleet.aggregator().await);
    let mut follower = insist(|| client.steps(Place(0))).await;
    let mut times = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        append_step(&log, &[1; 6000]).await;
        take(&mut follower, 1).await;
        times.push(began.elapsed());
    }
    times.sort();
    println!("a step of 6 kB, from its append to a follower: median {:?}, 95 % {:?}", times[50], times[95]);
}

async fn idle(fleet: &Fleet) {
    let cost = || fleet.cluster.nodes.iter().map(|node| processor(node.pid())).sum::<f64>();
    let seconds = IDLE.as_secs_f64();
    let before = cost();
    tokio::time::sleep(IDLE).await;
    let none = (cost() - before) / seconds * 100.0;
    let mut followers = Vec::new();
    for n in 0..FOLLOWERS {
        // A member has few connections.
        let client = fleet.client(["mx1", "mx2", "mx3", "a-friend_2"][n % 4]).await;
        let after = insist(|| client.ends()).await.steps;
        followers.push((insist(|| client.steps(after)).await, client));
    }
    let (before, own) = (cost(), processor(std::process::id()));
    tokio::time::sleep(IDLE).await;
    let some = (cost() - before) / seconds * 100.0;
    let each = (processor(std::process::id()) - own) / seconds * 100.0 / FOLLOWERS as f64;
    println!(
        "idle: three nodes {none:.2} % of a core, with {FOLLOWERS} followers {some:.2} %; a follower {each:.3} %"
    );
}
